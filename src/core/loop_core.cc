// LoopCore: construction and destruction, run(), the turn, and calling. Start reading at turn().
// Its steps are in loop_wait.cc and loop_due.cc, the functions of programs in loop_start.cc.
#include "core/loop_core.h"

#include <algorithm>
#include <cerrno>

#include "core/user_code.h"
#include "sys/process.h"

namespace spate {

namespace {

constinit thread_local Loop* current_loop = nullptr;  // The loop of the innermost run().

}  // namespace

Loop* LoopCore::current() { return current_loop; }

LoopCore::LoopCore(OpenedBackend backend, const LayerOptions& options)
    : clock_(options.loop.clock != nullptr ? *options.loop.clock : system_clock()),
      dispatcher_(options.dispatcher),
      backend_(std::move(backend.backend)),
      backend_reason_(std::move(backend.reason)),
      budget_(options.loop.budget > 0 ? options.loop.budget : 1),
      spinner_(options.loop.clock == nullptr ? options.loop.spin : Spin{}),
      guarded_(options.guarded),
      orphans_(options.orphans),
      slow_reasons_(options.dispatcher != nullptr ? 1 : 0),
      fork_generation_(sys::fork_generation()) {
  wakeup_node_.head.priority = kDirect;
  wakeup_node_.head.context = this;
  wakeup_node_.head.callback = [](void* context, Node&, Events) {
    static_cast<LoopCore*>(context)->read_wakeup();
  };
  post_node_.callback = &internal;
  post_node_.context = static_cast<Internal*>(&post_runner_);
  update_now();
}

std::error_code LoopCore::open() {
  if (!ready_.reserve(kLeastReady)) return sys::error_code(-ENOMEM);
  if (const std::error_code error = wakeup_.open()) return error;
  if (const std::error_code error = fds_.ensure(wakeup_.fd())) return error;
  wakeup_node_.fd = wakeup_.fd();
  const Events events = backend_->knows_edges() ? Events::read | kEdge : Events::read;
  wakeup_node_.events = static_cast<std::uint32_t>(events) | kFdIsNew;
  return start_fd_now(wakeup_node_);
}

LoopCore::~LoopCore() { end(); }

void LoopCore::end() {
  SPATE_ASSERT(
      depth_ == 0,
      "a Loop was destroyed inside its run(): call stop(), and destroy it after run() returns");
  pending_.clear();
  call_hooks(Hook::cleanup, Events::cleanup);
  posts_.close();  // A task's destructor may use locals, such as watchers of C, and one-shot calls.
  locals_.end();
  stop_everything();
}

// Marks every node as stopped, so that watchers that outlive the loop do not use it.
void LoopCore::stop_everything() {
  // With `orphans`, the program may have freed nodes; only signals have process-wide state.
  if (orphans_) return signals_.stop_all();
  one_shots_.clear();
  children_.stop_all();
  paths_.stop_all();
  periodics_.stop_all();
  signals_.stop_all();
  queue_asyncs();
  asyncs_.remove_all();
  for (HookList& list : hooks_) list.remove_all();
  timers_.stop_all();
  fds_.stop_all();
  pending_.clear();
}

// ---- running

LoopCore::Inside::Inside(LoopCore& loop) : loop_(loop), outer_(std::exchange(current_loop, &loop)) {
  if (!loop.guarded_) loop.runner_ = sys::thread_identity();
  loop.wakeup_.announce_awake();
  if (loop.depth_++ > 0) loop.locals_.on_handover();
  if (outer_ != nullptr && outer_ != &loop) locals_of(*outer_).on_handover();
}

LoopCore::Inside::~Inside() {
  if (loop_.leave_from_ == loop_.depth_) loop_.leave_from_ = INT_MAX;
  if (!loop_.pending_.empty()) loop_.locals_.on_handover();
  --loop_.depth_;
  current_loop = outer_;
}

std::error_code LoopCore::run(Run mode) {
  if (!pending_.give_back()) return sys::error_code(-ENOMEM);
  const Inside inside{*this};
  const bool is_outermost = depth_ == 1;
  if (is_outermost) {
    may_be_timed_ = mode != Run::no_wait;
    begin_timing();
  }
  long result;
  do {
    result = turn(mode != Run::no_wait);
  } while (result == 0 && mode == Run::until_done && !is_leaving() &&
           (is_kept_alive() || has_something_queued()));
  if (is_outermost) end_timing();
  return to_error(result);
}

void LoopCore::leave(bool all) {
  if (depth_ > 0) leave_from(all ? 1 : depth_);
}

// The limit is a timer that does not keep the loop alive.
std::error_code LoopCore::run_for(Nanos span) {
  if (span >= kForever) return run(Run::until_done);
  struct Limit {
    LoopCore& loop;
    int depth;
  } limit{*this, depth_ + 1};
  TimerNode end{};
  end.head.priority = kDirect;
  end.head.context = &limit;
  end.head.callback = [](void* context, Node&, Events) {
    const Limit& reached = *static_cast<Limit*>(context);
    reached.loop.leave_from(reached.depth);
  };
  end.deadline = deadline_after(loop_time(), span).count();
  if (!start_timer(end)) return sys::error_code(-ENOMEM);
  const std::error_code error = run(Run::until_done);
  stop_timer(end);
  return error;
}

long LoopCore::turn(bool may_block) noexcept {
  leave_fast_path();
  if (is_foreign()) return kForked;
  ++metrics_.turns;
  if (needs_slow_turn_) {
    if (const long result = begin_slowly()) return result;
  }
  if (is_leaving()) return 0;
  if (needs_slow_turn_ || fds_.has_changes()) reconcile();
  const long result = may_block && is_kept_alive() ? wait() : look();
  take_ready();
  if (timers_.size() != 0) queue_timers();
  if (has_messages_) queue_messages();
  if (needs_slow_turn_) end_slowly();
  call_pending();
  return result;
}

long LoopCore::begin_slowly() {
  needs_slow_turn_ = has_slow_work();
  if (fork_hooks_due_) fork_hooks_due_ = !call_hooks(Hook::fork, Events::fork);
  if (!hooks(Hook::prepare).empty()) call_hooks(Hook::prepare, Events::prepare);
  if (is_leaving()) return 0;
  if (is_foreign()) return kForked;  // A hook has called fork(), and this is the child.
  if (rebuild_) return rebuild_backend();
  return 0;
}

void LoopCore::end_slowly() {
  if (paths_.has_unreported()) paths_.report_again();
  if (!hooks(Hook::idle).empty()) hooks(Hook::idle).feed_highest(pending_, Events::idle);
  if (!hooks(Hook::check).empty()) hooks(Hook::check).feed_all(pending_, Events::check);
}

long LoopCore::rebuild_backend() {
  if (const std::error_code error = backend_->start_over()) return -error.value();
  fds_.register_all_again();
  rebuild_ = false;
  return 0;
}

// The wake-up descriptor may have been lost with a backend's set that was rebuilt.
void LoopCore::reconcile() {
  if (is_wakeup_stopped()) {
    wakeup_node_.events |= kFdIsNew;
    fds_.start(wakeup_node_);
  }
  fds_.reconcile(*backend_, delivery_);
  if (fds_.has_always_ready() || is_wakeup_stopped()) request_slow_turn();
}

// ---- calling

void LoopCore::call_queued() noexcept {
  if (dispatcher_ != nullptr) {
    dispatcher_->run_pending(*this);
  } else {
    default_dispatch();
  }
}

// Fast path: calls ready descriptors directly, as the first events of priority 0, without queueing
// them. It may be used while nothing must be called before them, and no code inspects the queue.
// The watcher of an event is looked up at the time of the call, so one that was destroyed meanwhile
// is not found.
void LoopCore::call_ready() noexcept {
  const bool is_out_of_cache = fds_.is_large();
  while (is_on_fast_path()) {
    if (pending_.has_urgent()) [[unlikely]] {
      call_urgent();
      continue;
    }
    const Ready& ready = *next_ready_++;
    if (is_out_of_cache && ready_end_ - next_ready_ > kAhead) {
      fds_.prefetch_watcher(next_ready_[kAhead].fd);
    }
    FdNode* const node = fds_.plain_watcher(ready);
    const Events events = node == nullptr ? Events::none : FdTable::plain_events(*node, ready);
    if (any(events)) [[likely]] {
      call(node->head, events);
    } else {
      call_slowly(ready);
    }
  }
}

void LoopCore::call_urgent() {
  Due due;
  while (pending_.take_urgent(due)) call(*due.node, due.events);
}

// Slow path: for the wake-up, a node that was fed, and descriptors with several watchers, which are
// queued.
void LoopCore::call_slowly(const Ready& ready) {
  const FdTable::Found found = fds_.look(ready);
  switch (found.what) {
    case FdTable::Found::nobody:
      return;
    case FdTable::Found::one: {
      Node& head = found.node->head;
      if (head.priority == kDirect) return head.callback(head.context, head, found.events);
      return call(head, found.events | pending_.remove(head));
    }
    case FdTable::Found::several:
      --next_ready_;
      return queue_rest();
    case FdTable::Found::stale:
      return note_stale();
  }
}

bool LoopCore::call_hooks(Hook hook, Events events) {
  if (hooks(hook).empty()) return true;
  const bool fed = hooks(hook).feed_all(pending_, events);
  call_pending();
  return fed;
}

void LoopCore::default_dispatch() {
  Due due;
  if (measuring_) {
    while (pending_.take(due)) call_measured(due);
  } else {
    while (pending_.take(due)) call(*due.node, due.events);
  }
}

// The callback may run the loop, which measures others meanwhile.
void LoopCore::call_measured(const Due& due) {
  const std::string_view kind = due.node == &post_node_ ? "post()" : kind_of(due.events);
  const Nanos before = clock_.monotonic();
  const RunningNote::Called outer = calling_.replace({before.count(), kind.data(), due.node});
  call(*due.node, due.events);
  calling_.replace(outer);
  metrics_.last_callback = clock_.monotonic() - before;
  if (metrics_.last_callback <= metrics_.longest_callback) return;
  metrics_.longest_callback = metrics_.last_callback;
  metrics_.longest_kind = kind;
}

bool LoopCore::take(Due& due) {
  while (pending_.take(due)) {
    if (due.node->callback != &internal) {
      ++metrics_.events;
      return true;
    }
    call(*due.node, due.events);
  }
  return false;
}

void LoopCore::PostRunner::on_event(Events) {
  const std::size_t count = loop_.posts_.run(kPostsPerTurn);
  loop_.metrics_.posts += count;
  loop_.metrics_.events += count - 1;  // Their common event was counted already.
}

// Only calls from the queue are measured, so measuring prevents the fast path.
void LoopCore::measure_callbacks(bool on) {
  if (measuring_ == on) return;
  count_slow_reason(on ? 1 : -1);
  measuring_ = on;
}

// Begins measuring of a run() that waits; `woke_up_` is then the begin of its busy time.
void LoopCore::begin_timing() {
  is_timed_ = measuring_waits_ && may_be_timed_;
  woke_up_ = is_timed_ ? loop_time() : kForever;
}

void LoopCore::end_timing() {
  if (std::exchange(is_timed_, false)) metrics_.busy += loop_time() - woke_up_;
}

void LoopCore::measure_waits(bool on) {
  if (std::exchange(measuring_waits_, on) == on || depth_ == 0) return;
  on ? begin_timing() : end_timing();
}

std::optional<RunningCallback> LoopCore::running_callback() const {
  const RunningNote::Called called = calling_.get();
  if (called.kind == nullptr) return std::nullopt;
  return RunningCallback{.kind = called.kind,
                         .watcher = called.watcher,
                         .since = clock_.monotonic() - Nanos{called.began}};
}

bool LoopCore::has_work() {
  leave_fast_path();
  return is_kept_alive() || pending_.size() != 0 || posts_.has_posts();
}

Metrics LoopCore::metrics() {
  Metrics metrics = metrics_;
  metrics.kernel_calls = backend_->kernel_calls();
  metrics.kernel_calls.wake_write = wakeup_.writes();
  metrics.active_timers = timers_.size();
  metrics.active_fds = fds_.active_fds() - 1;  // Without that of the wake-up.
  metrics.pending = pending_count();
  if (depth_ > 0 && is_timed_) metrics.busy += loop_time() - woke_up_;
  return metrics;
}

}  // namespace spate
