// NodeLoop: the part of a Loop's interface that starts and stops nodes, for watchers and layers.
//
// For layers with their own structs (layer.h): every Loop is a NodeLoop. Programs that use Io,
// Timer and the rest call nothing here.
//
// Ownership: none; nodes belong to their owner (node.h). Threads and callbacks: as for Loop; send()
// from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/layer/node.h"
#include "spate/time.h"

namespace spate {

class Backend;
class Loop;
struct AsyncNode;
struct ChildNode;
struct LayerOptions;
struct PeriodicNode;
struct SignalNode;
struct StatNode;

class SPATE_EXPORT NodeLoop {
 public:
  // As Loop::create(), with the options of layers. Any thread.
  [[nodiscard("a discarded Loop is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(const LayerOptions& options);
  // As above, with a backend supplied by the caller; for tests. options.loop.backend is ignored.
  [[nodiscard("a discarded Loop is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(std::unique_ptr<Backend> backend,
                                              const LayerOptions& options);

  NodeLoop(const NodeLoop&) = delete;
  NodeLoop& operator=(const NodeLoop&) = delete;

  // start() does nothing to an active node; stop() of an inactive node only drops its queued
  // events. Neither makes a system call. start() returns false when memory runs out; the node is
  // then inactive.
  bool start(FdNode& node);
  void stop(FdNode& node);
  // Starts and updates the kernel at once. On an error the node is inactive. Errors: EBADF, EPERM
  // (the file has no readiness, as regular files on epoll), ENOSPC, ENOMEM, Error::fd_out_of_range,
  // Error::loop_forked.
  std::error_code start_now(FdNode& node);
  // Stops without the system call. The caller must close `node.fd` before the loop waits again.
  // Other nodes of the same descriptor must have been stopped.
  void stop_before_close(FdNode& node);
  // Stops and updates the kernel at once: for a descriptor that moves to another loop.
  void stop_now(FdNode& node);
  // Changes the events, also while active. Drops queued events that are no longer requested.
  void modify(FdNode& node, Events events);

  bool start(TimerNode& node);
  void stop(TimerNode& node);
  // Stops, but may leave the node linked, so that park() and a later restart() are a store each.
  // Call stop() before freeing the node.
  void park(TimerNode& node);
  // Moves the deadline, and starts the node if it is inactive. Moving it to a later time is a
  // store. False when memory runs out.
  bool restart(TimerNode& node, std::int64_t deadline);

  bool start(Hook hook, Node& node);
  void stop(Hook hook, Node& node);

  bool start(AsyncNode& node);
  void stop(AsyncNode& node);
  void send(AsyncNode& node) noexcept;  // Any thread; async-signal-safe.
  bool start(PeriodicNode& node);
  void stop(PeriodicNode& node);
  std::error_code start(SignalNode& node);
  void stop(SignalNode& node);
  std::error_code start(ChildNode& node);
  void stop(ChildNode& node);
  std::error_code start(StatNode& node);
  void stop(StatNode& node);
  void refresh(StatNode& node);

  bool feed(Node& node, Events events);
  // Drops the queued events of a node (fed, expired, ended, arrived) and returns them.
  Events clear_pending(Node& node);
  // Ready descriptors are normally called without being queued. Calling one of these inside a
  // callback queues the rest of the turn's ready descriptors.
  Events clear_pending(FdNode& node);
  bool is_pending(const FdNode& node);

  // Calls `show` for each started node that is not the loop's own, until it returns false; returns
  // its last result. Descriptors come in numerical order, and the nodes of one descriptor newest
  // first; timers come in no order. `show` must not start or stop anything.
  bool for_each(bool (*show)(void* context, FdNode& node), void* context) const;
  bool for_each(bool (*show)(void* context, TimerNode& node), void* context) const;

  // Returns the next due event, whose node is no longer pending; false when the turn is over. For a
  // Dispatcher.
  bool take(Due& due);

  // ---- replacing run()
  //
  // collect() is a turn without the calls; take() then returns the due events, at most `most` at a
  // time, until it returns 0. Nodes for which `wants` returns false are called inside take(). Fork
  // and prepare hooks are collected alone, without a wait, so call collect() again until there is
  // an event. It waits for at most `longest`. Errors: as Loop::run(); ENOMEM, before anything was
  // done.
  std::error_code collect(Nanos longest);
  // claim() must be called for each entry in order; it returns nullptr if the node was stopped
  // meanwhile. The array must stay valid until all entries are claimed or returned: by give_back(),
  // or by the next run(), collect() or take(), which deliver them again.
  std::size_t take(Due* batch, std::size_t most, bool (*wants)(const Node& node));
  Node* claim(Due& entry);
  bool give_back();  // False when memory runs out.

  // Implement the defaults of Dispatcher.
  void default_expiry(TimerNode& node);
  void default_dispatch();

 protected:
  NodeLoop() = default;
  ~NodeLoop() = default;
};

}  // namespace spate
