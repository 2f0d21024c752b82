// Io: calls back while a file descriptor is ready for reading, writing, or both. Level-triggered:
// as long as the condition holds, it is reported in every turn.
//
// The descriptor stays the caller's: Io neither opens nor closes nor changes it. Several Ios may
// watch one descriptor; within a priority, the one started last is called first. Start and stop
// only record the change; the kernel is told once, just before the loop waits, and only if the
// result has changed. So stopping and starting in one turn costs no system call. Stop an Io before
// closing its descriptor. Before it watches another file, even under the same number, call set().
//
// If the kernel refuses the descriptor (closed, or of a kind that has no readiness), the Io is
// stopped and called back with Events::error; see error(). Regular files on epoll are treated as
// always ready.
#pragma once

#include "spate/watcher.h"

namespace spate {

class Io : public Watcher<Io, FdNode> {
 public:
  // `fd` may be -1 if set() is called before start(). `events`: any of read, write, urgent,
  // peer_closed.
  Io(Loop& loop, int fd, Events events, Delegate<Io> callback) : Watcher(loop, callback) {
    set(fd, events);
  }
  Io(Loop& loop, Delegate<Io> callback) : Io(loop, -1, Events::none, callback) {}
  ~Io() { stop(); }

  int fd() const { return node_.fd; }
  Events events() const { return static_cast<Events>(node_.events & ~kFdIsNew); }

  // Sets the descriptor, also when the same number is now another file. Not while active.
  void set(int fd, Events events) {
    SPATE_ASSERT(!is_active(), "stop() the Io before it is aimed anew, or modify() its events");
    SPATE_ASSERT(!any(events & ~kIoEvents), kNotForAnIo);
    node_.fd = fd;
    node_.events = static_cast<std::uint32_t>(events) | kFdIsNew;
  }
  // Changes the events; also while active, when Events::none is a pause. Queued events that are no
  // longer asked for are dropped.
  void modify(Events events) {
    SPATE_ASSERT(!any(events & ~kIoEvents), kNotForAnIo);
    if (is_known()) {
      loop_->modify(node_, events);
    } else {
      node_.events = (node_.events & kFdIsNew) | static_cast<std::uint32_t>(events);
    }
  }
  // As Watcher's; a change while active counts as stopping and starting.
  void set_priority(int priority) {
    const bool was_active = is_active();
    if (was_active) loop_->stop(node_);
    Watcher::set_priority(priority);
    if (was_active) loop_->start(node_);  // Has room: it was there a moment ago.
  }

  // As Watcher's. Asked in a callback, both cost the rest of the turn a little: as long as nobody
  // looks, what is ready is called without being queued.
  bool is_pending() const { return is_known() && loop_->is_pending(node_); }
  Events clear_pending() { return is_known() ? loop_->clear_pending(node_) : Events::none; }

  // Needs a descriptor and at least one event. False when memory runs out (never after
  // Loop::reserve()).
  bool start() {
    SPATE_ASSERT(node_.fd >= 0 && any(events()), "set() a descriptor and an event first");
    return loop_->start(node_);
  }
  // Starts and tells the kernel at once, so that an error is returned here instead of passed to the
  // callback later. Errors: EBADF, EPERM (no readiness: a regular file), ENOMEM, ENOSPC,
  // Error::fd_out_of_range, Error::loop_forked.
  std::error_code start_now() {
    SPATE_ASSERT(node_.fd >= 0 && any(events()), "set() a descriptor and an event first");
    return loop_->start_now(node_);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }
  // Stops, and saves the system call that would remove the descriptor. The caller must close it
  // before the loop waits again, and no other Io may be watching it.
  void stop_before_close() {
    if (is_known()) loop_->stop_before_close(node_);
  }

  // Stops and tells the kernel at once: for a descriptor that moves to another loop or process.
  void stop_now() {
    if (is_known()) loop_->stop_now(node_);
  }

  // After Events::error: the kernel's reason.
  std::error_code error() const {
    return {static_cast<int>(node_.head.extra), std::system_category()};
  }

 private:
  static constexpr const char* kNotForAnIo =
      "an Io watches for read, write, urgent and peer_closed, and reports the rest unasked";
};

static_assert(sizeof(Io) <= 56);

}  // namespace spate
