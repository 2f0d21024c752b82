// NodeLoop: the interface of a Loop for watchers and layers, which start and stop nodes.
//
// Programs that use Io, Timer and the rest call nothing here. Layers with their own structs do
// (layer.h): every Loop is a NodeLoop.
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
#include "spate/node.h"
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
  [[nodiscard("a Loop that nobody keeps is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(const LayerOptions& options);
  // With a backend of the caller's; for tests. options.loop.backend is not read.
  [[nodiscard("a Loop that nobody keeps is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(std::unique_ptr<Backend> backend,
                                              const LayerOptions& options);

  NodeLoop(const NodeLoop&) = delete;
  NodeLoop& operator=(const NodeLoop&) = delete;

  // start() does nothing to an active node; stop() only drops what is queued for an inactive one.
  // Neither makes a system call. False when memory runs out; the node is then inactive.
  bool start(FdNode& node);
  void stop(FdNode& node);
  // Starts and tells the kernel at once. On an error the node is inactive. Errors: EBADF, EPERM
  // (the file has no readiness, as regular files on epoll), ENOSPC, ENOMEM, Error::fd_out_of_range,
  // Error::loop_forked.
  std::error_code start_now(FdNode& node);
  // Stops, and promises that `node.fd` is closed before the loop waits again: saves the kernel
  // call. Other nodes of the same descriptor must have been stopped.
  void stop_before_close(FdNode& node);
  // Stops, and tells the kernel at once: the descriptor goes to another loop.
  void stop_now(FdNode& node);
  // Asks for other events, also while active, and forgets what is due of those no longer asked for.
  void modify(FdNode& node, Events events);

  bool start(TimerNode& node);
  void stop(TimerNode& node);
  // Stops, but may leave the node linked, so that this and a later restart() are a store each. Call
  // stop() before freeing the node.
  void park(TimerNode& node);
  // Moves the deadline, of an inactive node too, which it starts. To a later one this is a store.
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
  // Forgets what was fed to a node, or has expired, ended, arrived.
  Events clear_pending(Node& node);
  // Of descriptors, readiness is not queued as long as nobody asks for it; these two do.
  Events clear_pending(FdNode& node);
  bool is_pending(const FdNode& node);

  // Calls `show` for each started node that is not the loop's own, until it returns false; returns
  // its last result. Descriptors come in numerical order, of one the newest node first; timers in
  // no order. Nothing may be started or stopped meanwhile.
  bool for_each(bool (*show)(void* context, FdNode& node), void* context) const;
  bool for_each(bool (*show)(void* context, TimerNode& node), void* context) const;

  // For a Dispatcher: the next due event, its node already marked as no longer pending; false when
  // the turn is over.
  bool take(Due& due);

  // For those who call by themselves, in place of run(): collect() is a turn without the calling,
  // and take() hands out what is due, `most` at a time, until it returns 0. Nodes that `wants`
  // says no to are called from in there. Fork and prepare hooks are collected alone,
  // without a wait; so collect() until there is something, for at most as long as `longest`.
  // Errors: as Loop::run(); ENOMEM, before anything is done.
  std::error_code collect(Nanos longest);
  // The entries are claimed one after the other; one whose node was stopped meanwhile is not there
  // any more. The array has to stay until all are claimed, or given back: by give_back(), or by
  // the next run(), collect() or take(), which hand them out once more.
  std::size_t take(Due* batch, std::size_t most, bool (*wants)(const Node& node));
  Node* claim(Due& entry);
  bool give_back();  // False when memory runs out.

  // What Dispatcher's defaults do.
  void default_expiry(TimerNode& node);
  void default_dispatch();

 protected:
  NodeLoop() = default;
  ~NodeLoop() = default;
};

}  // namespace spate
