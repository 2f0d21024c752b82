// Io: calls back while a file descriptor is ready for reading, writing, or both. Level-triggered:
// while the condition holds, it is reported in every turn.
//
// Ownership: the descriptor stays the caller's. Io neither opens, closes nor changes it. Several
// Ios may watch one descriptor; within a priority, the one started last is called first.
//
// Start and stop only record the change. Just before the loop waits, it updates the kernel once,
// and only if the resulting set of events differs. So stopping and starting in one turn costs no
// system call. Stop an Io before closing its descriptor. Call set() before it watches another file,
// even under the same number.
//
// If the kernel refuses the descriptor (it is closed, or has no readiness), the Io is stopped and
// called back with Events::error; see error(). Regular files on epoll are treated as always ready.
//
// Threads: the loop's thread only.
#pragma once

#include "spate/watcher.h"

namespace spate {

class Io : public Watcher<Io, FdNode> {
 public:
  // `fd` may be -1 if set() is called before start(). `events` is any set of read, write, urgent
  // and peer_closed.
  Io(Loop& loop, int fd, Events events, Delegate<Io> callback) : Watcher(loop, callback) {
    set(fd, events);
  }
  Io(Loop& loop, Delegate<Io> callback) : Io(loop, -1, Events::none, callback) {}
  ~Io() { stop(); }

  int fd() const { return node_.fd; }
  Events events() const { return static_cast<Events>(node_.events & ~kFdIsNew); }

  // Sets the descriptor. Must also be called when the same number now refers to another file. Not
  // while active.
  void set(int fd, Events events) {
    SPATE_ASSERT(!is_active(), "stop() the Io before set(), or modify() its events");
    SPATE_ASSERT(!any(events & ~kIoEvents), kNotForAnIo);
    node_.fd = fd;
    node_.events = static_cast<std::uint32_t>(events) | kFdIsNew;
  }
  // Changes the events. May be called while active; Events::none then pauses the Io. Drops queued
  // events that are no longer requested.
  void modify(Events events) {
    SPATE_ASSERT(!any(events & ~kIoEvents), kNotForAnIo);
    if (is_known()) {
      loop_->modify(node_, events);
    } else {
      node_.events = (node_.events & kFdIsNew) | static_cast<std::uint32_t>(events);
    }
  }
  // As Watcher::set_priority(). While active, a change has the effect of stop() and start().
  void set_priority(int priority) {
    const bool was_active = is_active();
    if (was_active) loop_->stop(node_);
    Watcher::set_priority(priority);
    // Cannot fail: the descriptor had a table entry a moment ago.
    if (was_active) loop_->start(node_);
  }

  // As in Watcher. Ready descriptors are normally called without being queued; calling either
  // function inside a callback queues the rest of them, which makes this turn slightly slower.
  bool is_pending() const { return is_known() && loop_->is_pending(node_); }
  Events clear_pending() { return is_known() ? loop_->clear_pending(node_) : Events::none; }

  // Activates the watcher, which needs a descriptor and at least one event. False when memory runs
  // out (never after Loop::reserve()).
  bool start() {
    SPATE_ASSERT(node_.fd >= 0 && any(events()), "set() a descriptor and an event first");
    return loop_->start(node_);
  }
  // Starts and updates the kernel at once, so that an error is returned here instead of being
  // passed to the callback later. Errors: EBADF, EPERM (no readiness: a regular file), ENOMEM,
  // ENOSPC, Error::fd_out_of_range, Error::loop_forked.
  std::error_code start_now() {
    SPATE_ASSERT(node_.fd >= 0 && any(events()), "set() a descriptor and an event first");
    return loop_->start_now(node_);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }
  // Stops without the system call that would remove the descriptor from the kernel's set. The
  // caller must close the descriptor before the loop waits again. No other Io may be watching it.
  void stop_before_close() {
    if (is_known()) loop_->stop_before_close(node_);
  }

  // Stops and updates the kernel at once: for a descriptor that moves to another loop or process.
  void stop_now() {
    if (is_known()) loop_->stop_now(node_);
  }

  // Returns the kernel's reason after Events::error.
  std::error_code error() const {
    return {static_cast<int>(node_.head.extra), std::system_category()};
  }

 private:
  static constexpr const char* kNotForAnIo =
      "an Io watches for read, write, urgent and peer_closed, and reports the rest unasked";
};

static_assert(sizeof(Io) <= 56);

}  // namespace spate
