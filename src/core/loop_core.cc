// LoopCore: its beginning and end, run(), the turn, and the calling. Start reading at turn(); what
// it is made of is in loop_wait.cc and loop_due.cc, what programs ask for in between in
// loop_start.cc.
#include "core/loop_core.h"

#include <algorithm>
#include <cerrno>

#include "core/user_code.h"
#include "sys/process.h"

namespace spate {

namespace {

constinit thread_local Loop* current_loop = nullptr;  // Whose run() is the innermost.

}  // namespace

Loop* LoopCore::current() { return current_loop; }

LoopCore::LoopCore(OpenedBackend backend, const LayerOptions& options)
    : clock_(options.loop.clock != nullptr ? *options.loop.clock : system_clock()),
      dispatcher_(options.dispatcher),
      backend_(std::move(backend.backend)),
      backend_reason_(std::move(backend.reason)),
      budget_(options.loop.budget > 0 ? options.loop.budget : 1),
      busy_poll_(options.loop.clock == nullptr ? options.loop.busy_poll : Nanos{0}),
      guarded_(options.guarded),
      orphans_(options.orphans),
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
  SPATE_ASSERT(depth_ == 0,
               "a Loop was destroyed inside its run(): stop() it, and destroy it after run()");
  pending_.clear();
  call_hooks(Hook::cleanup, Events::cleanup);
  locals_.end();
  stop_everything();
}

// Whoever outlives the loop finds itself stopped, and will not ask it for anything.
void LoopCore::stop_everything() {
  if (orphans_) return signals_.stop_all();  // The process knows of these.
  errands_.clear();
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

std::error_code LoopCore::run(Run mode) {
  if (!guarded_) runner_ = sys::thread_identity();
  wakeup_.announce_awake();
  const bool is_outermost = depth_++ == 0;
  Loop* const outer = std::exchange(current_loop, this);
  if (!is_outermost) locals_.on_handover();
  // A layer with a lock calls its callbacks between turns: nothing to measure, two clocks less.
  const bool measures = is_outermost && mode != Run::no_wait && !guarded_;
  if (is_outermost) woke_up_ = measures ? loop_time() : kForever;
  std::error_code error;
  do {
    error = turn(mode != Run::no_wait);
  } while (!error && mode == Run::until_done && !is_leaving() && has_work());
  if (leave_from_ == depth_) leave_from_ = INT_MAX;
  if (!pending_.empty()) locals_.on_handover();
  --depth_;
  current_loop = outer;
  if (measures) metrics_.busy += loop_time() - woke_up_;
  return error;
}

void LoopCore::leave(bool all) {
  if (depth_ > 0) leave_from(all ? 1 : depth_);
}

// The end of the time is a timer that does not count as something left.
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

std::error_code LoopCore::turn(bool may_block) noexcept {
  if (is_foreign()) return Error::loop_forked;
  ++metrics_.turns;
  if (fork_hooks_due_) fork_hooks_due_ = !call_hooks(Hook::fork, Events::fork);
  if (!hooks(Hook::prepare).empty()) call_hooks(Hook::prepare, Events::prepare);
  if (is_leaving()) return {};
  if (is_foreign()) return Error::loop_forked;  // A hook has forked, and this is the child.
  if (rebuild_) {
    if (const std::error_code error = rebuild_backend()) return error;
  }
  reconcile();
  const std::error_code error = wait(may_block);
  queue_ready();
  queue_timers();
  if (signals_.has_raised()) signals_.collect();
  queue_asyncs();
  if (paths_.has_unreported()) paths_.report_again();
  if (posts_.has_posts()) feed(post_node_, Events::custom);
  queue_idle();
  if (!hooks(Hook::check).empty()) hooks(Hook::check).feed_all(pending_, Events::check);
  call_pending();
  return error;
}

std::error_code LoopCore::rebuild_backend() {
  if (const std::error_code error = backend_->start_over()) return error;
  fds_.register_all_again();
  rebuild_ = false;
  return {};
}

// The wake-up may have been refused, with a set that had to be built anew.
void LoopCore::reconcile() {
  if (wakeup_node_.head.active == 0) {
    wakeup_node_.events |= kFdIsNew;
    fds_.start(wakeup_node_);
  }
  fds_.reconcile(*backend_, delivery_);
}

// ---- calling

void LoopCore::call_pending() noexcept {
  if (pending_.empty()) return;
  pending_.begin_turn(budget_);
  if (dispatcher_ != nullptr) {
    dispatcher_->run_pending(*this);
  } else {
    default_dispatch();
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
    while (pending_.take(due)) call(due);
  }
}

void LoopCore::call(const Due& due) {
  ++metrics_.events;
  call_user(due.events, [&due] { due.node->callback(due.node->context, *due.node, due.events); });
}

void LoopCore::call_measured(const Due& due) {
  const Nanos before = clock_.monotonic();
  call(due);
  metrics_.last_callback = clock_.monotonic() - before;
  if (metrics_.last_callback > metrics_.longest_callback)
    metrics_.longest_callback = metrics_.last_callback;
}

bool LoopCore::take(Due& due) {
  while (pending_.take(due)) {
    if (due.node->callback != &internal) {
      ++metrics_.events;
      return true;
    }
    call(due);
  }
  return false;
}

void LoopCore::PostRunner::on_event(Events) {
  const std::size_t count = loop_.posts_.run(kPostsPerTurn);
  loop_.metrics_.posts += count;
  loop_.metrics_.events += count - 1;  // Their one common event has been counted.
}

Metrics LoopCore::metrics() const {
  Metrics metrics = metrics_;
  metrics.kernel_calls = backend_->kernel_calls();
  metrics.kernel_calls.wake_write = wakeup_.writes();
  metrics.active_timers = timers_.size();
  metrics.active_fds = fds_.active_fds() - 1;  // Without the wake-up's own.
  metrics.pending = pending_.size();
  if (depth_ > 0 && woke_up_ < kForever) metrics.busy += loop_time() - woke_up_;
  return metrics;
}

}  // namespace spate
