// LoopCore: starting and stopping nodes, except the inline parts.
#include "core/loop_core.h"

namespace spate {

namespace {

std::error_code error_of(long result) {
  return result == Backend::kOutOfRange ? make_error_code(Error::fd_out_of_range)
                                        : sys::error_code(result);
}

}  // namespace

// A number that no open file has is refused as usual: by the callback.
bool LoopCore::start_fd_beyond(FdNode& node) {
  const std::error_code error = fds_.ensure(node.fd);
  if (!error) return start_fd(node);
  node.head.extra = static_cast<std::uint32_t>(error.value());
  return error.value() != ENOMEM && on_ready(node, refusal_of(node));
}

std::error_code LoopCore::start_fd_now(FdNode& node) {
  if (node.head.active != 0) return {};
  if (is_foreign()) return Error::loop_forked;
  if (!fds_.holds(node.fd)) {
    if (const std::error_code error = fds_.ensure(node.fd)) return error;
  }
  if (is_on_fast_path() && fds_.is_watched(node.fd)) queue_rest();
  fds_.start(node);
  const long result = fds_.reconcile_now(*backend_, node.fd);
  if (result < 0) {
    fds_.stop(node);
    return error_of(result);
  }
  count_in(node);
  return {};
}

bool LoopCore::start_fd_slowly(FdNode& node) {
  if (!fds_.holds(node.fd)) return start_fd_beyond(node);
  // A ready event in the fast path's list is not for the new watcher.
  if (fds_.is_watched(node.fd)) leave_fast_path();
  count_in(node);
  fds_.start(node);
  return true;
}

// A node with a priority must be known before the first call; a direct one is called before timers.
void LoopCore::count_special(const FdNode& node, int change) {
  if (node.head.priority != kDirect) refs_ += change;
  if (&node == &wakeup_node_) return request_slow_turn();  // The backend may refuse it.
  count_slow_reason(change);
}

void LoopCore::count_slow_reason(int change) {
  leave_fast_path();
  slow_reasons_ += change;
}

void LoopCore::modify_fd(FdNode& node, Events events) {
  const Events dropped = kIoEvents & ~events;
  if (node.head.active == 0) {
    if (node.head.pending != 0) pending_.drop(node.head, dropped);
    node.events = (node.events & kFdIsNew) | static_cast<std::uint32_t>(events);
    return;
  }
  // Drops queued events that are no longer asked for, even if they are asked for again later.
  // Events in the fast path's list belong to the old interest, or to another watcher of the
  // descriptor, so the list is queued first.
  const bool drops = any(static_cast<Events>(node.events) & dropped);
  if (is_on_fast_path() && !is_being_served(node.fd) && (drops || fds_.is_shared(node)))
    queue_rest();
  if (node.head.pending != 0) pending_.drop(node.head, dropped);
  fds_.modify(node, events);
}

// A descriptor that was stopped since the last wait is still registered with the kernel.
void LoopCore::stop_fd_before_close(FdNode& node) {
  forget_pending(node.head);
  const bool was_active = node.head.active != 0;
  if (was_active) stop_fd(node);
  if (was_active || fds_.was_last_watched_by(node)) fds_.forget(*backend_, node.fd);
}

void LoopCore::stop_fd_now(FdNode& node) {
  stop_fd(node);
  if (!is_foreign() && fds_.was_last_watched_by(node)) fds_.reconcile_now(*backend_, node.fd);
}

void LoopCore::stop_fd_slowly(FdNode& node) {
  forget_pending(node.head);
  if (node.head.active == 0) return;
  count_out(node);
  fds_.stop(node);
}

void LoopCore::stop_timer_slowly(TimerNode& node) {
  forget_pending(node.head);
  if (node.head.active == 0) return;
  timers_.stop(node);
  if (node.head.priority == kDirect) ref();
}

void LoopCore::park_queued(TimerNode& node) {
  forget_pending(node.head);
  return node.head.priority == kDirect ? stop_timer(node) : park_timer(node);
}

bool LoopCore::move_timer(TimerNode& node, std::int64_t deadline) {
  if (node.head.active != 0) return timers_.restart(node, deadline);
  node.deadline = deadline;
  return start_inactive(node);
}

// Turns without timers do not advance the queue's time.
bool LoopCore::start_timer_slowly(TimerNode& node) {
  timers_.keep_up(now_.count());
  if (!timers_.start(node)) return false;
  if (node.head.priority == kDirect) unref();
  return true;
}

bool LoopCore::start_hook(Hook hook, Node& node) {
  if (node.active != 0) return true;
  if (!hooks(hook).add(node)) return false;
  if (keeps_alive(hook)) ref();
  if (hook == Hook::idle) count_slow_reason(1);
  request_slow_turn();
  return true;
}

void LoopCore::stop_hook(Hook hook, Node& node) {
  forget_pending(node);
  if (node.active == 0) return;
  hooks(hook).remove(node);
  if (keeps_alive(hook)) unref();
  if (hook == Hook::idle) count_slow_reason(-1);
}

bool LoopCore::start_async(AsyncNode& node) {
  if (node.head.active != 0) return true;
  if (!asyncs_.add(node.head)) return false;
  ref();
  return true;
}

// A sent node is on a lock-free stack, from which single nodes cannot be removed.
void LoopCore::stop_async(AsyncNode& node) {
  forget_pending(node.head);
  if (node.head.active != 0) {
    asyncs_.remove(node.head);
    unref();
  }
  if (node.sent.load() != AsyncNode::kUnsent) queue_asyncs();
}

void LoopCore::send(AsyncNode& node) noexcept {
  if (node.sent.exchange(AsyncNode::kSent) != AsyncNode::kUnsent) return;
  node.next = sent_.load(std::memory_order_relaxed);
  while (!sent_.compare_exchange_weak(node.next, &node)) {
  }
  wakeup_.wake();
}

}  // namespace spate
