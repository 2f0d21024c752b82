// LoopCore: a turn without calls, for callers that replace run(). Due events are queued, and taken
// in batches.
#include <cerrno>

#include "core/loop_core.h"

namespace spate {

// The limit is a timer that does not keep the loop alive.
std::error_code LoopCore::collect(Nanos longest) {
  if (!pending_.give_back()) return sys::error_code(-ENOMEM);
  const Inside inside{*this};
  if (depth_ == 1) may_be_timed_ = is_timed_ = false;
  if (longest <= Nanos{0} || longest >= kForever) return to_error(collect_turn(longest > Nanos{0}));
  TimerNode end{};
  end.head.priority = kDirect;
  end.head.callback = [](void*, Node&, Events) {};
  end.deadline = deadline_after(loop_time(), longest).count();
  if (!start_timer(end)) return sys::error_code(-ENOMEM);
  const long result = collect_turn(true);
  stop_timer(end);
  return to_error(result);
}

// As turn(), but without the fast path. Hooks that run before the wait must be called before it,
// because they may start watchers for it.
long LoopCore::collect_turn(bool may_block) noexcept {
  leave_fast_path();
  if (is_foreign()) return kForked;
  if (!std::exchange(has_fed_hooks_, false) && needs_slow_turn_ && feed_hooks_before_wait()) {
    has_fed_hooks_ = true;
    pending_.begin_turn(budget_);
    return 0;
  }
  ++metrics_.turns;
  if (needs_slow_turn_) needs_slow_turn_ = has_slow_work();
  if (rebuild_) {
    if (const long result = rebuild_backend()) return result;
  }
  if (needs_slow_turn_ || fds_.has_changes()) reconcile();
  ++slow_reasons_;
  const long result = may_block && is_kept_alive() ? wait() : look();
  take_ready();
  --slow_reasons_;
  if (timers_.size() != 0) queue_timers();
  if (has_messages_) queue_messages();
  if (needs_slow_turn_) end_slowly();
  pending_.begin_turn(budget_);
  return result;
}

bool LoopCore::feed_hooks_before_wait() {
  const std::size_t before = pending_.size();
  if (fork_hooks_due_) fork_hooks_due_ = !hooks(Hook::fork).feed_all(pending_, Events::fork);
  hooks(Hook::prepare).feed_all(pending_, Events::prepare);
  return pending_.size() != before;
}

// A node called from here may take a batch, too: entries that were held before belong to that one.
std::size_t LoopCore::take(Due* batch, std::size_t most, bool (*wants)(const Node& node)) {
  if (is_foreign() || !pending_.begin_batch(batch)) return 0;
  const Inside inside{*this};
  Due due;
  while (pending_.batch_size() < most && pending_.take(due)) {
    ++metrics_.events;
    if (wants(*due.node)) {
      pending_.hold(due);
      continue;
    }
    call(*due.node, due.events);
    if (!pending_.is_batch(batch) && !pending_.begin_batch(batch)) return 0;
  }
  if (pending_.batch_size() > 0) locals_.on_handover();
  return pending_.batch_size();
}

}  // namespace spate
