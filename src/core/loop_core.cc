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

bool LoopCore::has_something_queued() const { return !pending_.empty() || posts_.has_posts(); }

// Whether other threads or signal handlers have left something.
bool LoopCore::has_messages() const {
  return posts_.has_posts() || sent_.load() != nullptr || signals_.has_raised();
}

bool LoopCore::is_kept_alive() const { return active_count() > 0; }

// How long nothing of the loop's own can become due.
Nanos LoopCore::wait_time() noexcept {
  if (has_something_queued() || !hooks(Hook::idle).empty() || fds_.has_always_ready() ||
      fds_.has_changes() || paths_.has_unreported()) {
    return Nanos{0};
  }
  const bool is_deaf = wakeup_node_.head.active == 0;
  const Nanos longest = std::min(periodics_.longest_wait(), is_deaf ? kDeafSleep : kForever);
  timers_.advance(now_.count());  // So that it is a deadline that comes next, if it is near.
  const std::int64_t deadline = timers_.next_deadline();
  if (deadline <= now_.count()) return Nanos{0};
  if (deadline == INT64_MAX || is_suspended()) return longest;
  return std::min(Nanos{deadline} - now_, longest);
}

// A wait that ends only because timers have to be sorted more finely goes on: nobody is to see it.
std::error_code LoopCore::wait(bool may_block) noexcept {
  if (!may_block || !is_kept_alive()) return wait_once(Nanos{0});
  for (;;) {
    update_now();  // The callbacks may have taken their time.
    const Nanos began = now_;
    const Nanos timeout = wait_time();
    const bool spins = busy_poll_ > Nanos{0} && !is_suspended();  // For which time has to pass.
    const std::error_code error = timeout <= Nanos{0} ? wait_once(timeout)
                                  : spins             ? spin_and_sleep(timeout)
                                                      : sleep(timeout);
    const bool timed_out = timeout > Nanos{0} && now_ - began >= timeout;
    if (error || !timed_out || !ready_.empty() || has_messages()) return error;
    timers_.advance(now_.count());
    if (timers_.next_deadline() <= now_.count() || !periodics_.empty()) return {};
  }
}

std::error_code LoopCore::spin_and_sleep(Nanos timeout) noexcept {
  const Nanos began = now_;
  const Nanos window = std::min(busy_poll_, timeout);
  while (now_ - began < window) {
    const std::error_code error = wait_once(Nanos{0});
    if (error || !ready_.empty() || has_messages()) return error;
  }
  const Nanos left = timeout - (now_ - began);
  return left > Nanos{0} ? sleep(left) : std::error_code();
}

std::error_code LoopCore::sleep(Nanos timeout) noexcept {
  wakeup_.announce_sleep();
  const Nanos began = now_;
  metrics_.busy += began - std::min(woke_up_, began);
  const std::error_code error = wait_once(has_messages() ? Nanos{0} : timeout);
  wakeup_.announce_awake();
  metrics_.blocked += now_ - began;
  woke_up_ = now_;
  return error;
}

std::error_code LoopCore::wait_once(Nanos timeout) noexcept {
  if (dispatcher_ != nullptr) dispatcher_->before_wait(*this);
  ready_.clear();
  const std::error_code error = backend_->wait(timeout, ready_);
  if (dispatcher_ != nullptr) dispatcher_->after_wait(*this);
  update_now();
  return error;
}

// ---- what is due

void LoopCore::queue_ready() {
  bool stale = false;
  const std::size_t count = ready_.size();
  const bool is_out_of_cache = fds_.is_large();
  if (is_out_of_cache) {
    for (const Ready& ready : ready_) fds_.prefetch_slot(ready.fd);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_out_of_cache && i + kAhead < count) fds_.prefetch_watcher(ready_[i + kAhead].fd);
    if (fds_.deliver(ready_[i], delivery_)) continue;
    ++metrics_.stale_events;
    stale = true;
  }
  // A file that lives on behind a closed number, through a duplicate, cannot be taken out of the
  // kernel's set. Once may be a coincidence within one batch; twice running is such a file, and it
  // would keep the loop from ever sleeping.
  rebuild_ = rebuild_ || (stale && saw_stale_);
  saw_stale_ = stale;
  if (fds_.has_always_ready()) fds_.deliver_always_ready(delivery_);
}

void LoopCore::queue_timers() {
  if (!periodics_.empty()) periodics_.check_clock();
  while (TimerNode* node = timers_.pop_due(now_.count())) on_expired(*node);
}

void LoopCore::queue_asyncs() {
  if (sent_.load(std::memory_order_relaxed) == nullptr) return;
  for (AsyncNode* node = sent_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    AsyncNode* next = node->next;
    // From here on it can be sent anew, and its `next` belongs to the sender.
    const bool is_owed = node->sent.exchange(AsyncNode::kUnsent) == AsyncNode::kSent;
    if (is_owed && node->head.active != 0 && !deliver(node->head, Events::async)) send(*node);
    node = next;
  }
}

void LoopCore::queue_idle() {
  if (!hooks(Hook::idle).empty()) hooks(Hook::idle).feed_highest(pending_, Events::idle);
}

void LoopCore::read_wakeup() {
  ++metrics_.wakeups;
  if (!backend_->knows_edges()) wakeup_.drain();
}

bool LoopCore::deliver(Node& node, Events events) {
  if (node.priority != kDirect) return pending_.feed(node, events);
  node.callback(node.context, node, events);
  return true;
}

bool LoopCore::on_ready(FdNode& node, Events events) {
  return dispatcher_ == nullptr ? deliver(node.head, events) : dispatch_ready(node, events);
}

bool LoopCore::dispatch_ready(FdNode& node, Events events) {
  if (is_internal(node.head)) {
    return deliver(node.head, events);
  }
  dispatcher_->ready(*this, node, events);
  return true;
}

// One that cannot be told for want of memory stays, to be refused again in the next turn.
void LoopCore::on_refused(FdNode& node, int error) {
  node.head.extra = static_cast<std::uint32_t>(error);
  if (node.head.priority != kDirect) unref();
  if (on_ready(node, refusal_of(node))) return;
  node.events |= kFdIsNew;
  start_fd(node);
}

void LoopCore::on_expired(TimerNode& node) {
  const bool direct = node.head.priority == kDirect;
  if (direct) ref();
  if (dispatcher_ != nullptr && !direct && node.head.callback != &internal) {
    dispatcher_->expired(*this, node);
  } else {
    default_expiry(node);
  }
}

// A timer that cannot be queued for want of memory is due again in the next turn; it never gets
// lost.
void LoopCore::default_expiry(TimerNode& node) {
  if (node.repeat > 0) {
    const std::int64_t repeat = std::min(node.repeat, kForever.count());
    const std::int64_t missed = (now_.count() - node.deadline) / repeat;
    node.deadline += (missed + 1) * repeat;
    start_timer(node);  // Has room: it was there a moment ago.
  }
  if (node.head.priority == kDirect)
    return node.head.callback(node.head.context, node.head, Events::timer);
  if (!pending_.feed(node.head, Events::timer) && node.head.active == 0) {
    node.deadline = now_.count() + 1;  // Not in this turn again, which would never end.
    start_timer(node);
  }
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

// ---- starting and stopping

// A number that no open file has is refused where everybody looks for it: in a callback.
bool LoopCore::start_fd_beyond(FdNode& node) {
  const std::error_code error = fds_.ensure(node.fd);
  if (!error) return start_fd(node);
  node.head.extra = static_cast<std::uint32_t>(error.value());
  return error.value() != ENOMEM && on_ready(node, refusal_of(node));
}

std::error_code LoopCore::start_fd_now(FdNode& node) {
  if (node.head.active != 0) return {};
  if (is_foreign()) return Error::loop_forked;
  if (const std::error_code error = fds_.ensure(node.fd)) return error;
  fds_.start(node);
  const std::error_code error = fds_.reconcile_now(*backend_, node.fd);
  if (error) {
    fds_.stop(node);
  } else if (node.head.priority != kDirect) {
    ref();
  }
  return error;
}

// One that has been stopped since the last wait is still known to the kernel, too.
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

void LoopCore::stop_queued(FdNode& node) {
  forget_pending(node.head);
  stop_fd(node);
}

void LoopCore::park_queued(TimerNode& node) {
  forget_pending(node.head);
  return node.head.priority == kDirect ? stop_timer(node) : park_timer(node);
}

bool LoopCore::move_timer(TimerNode& node, std::int64_t deadline) {
  if (node.head.active != 0) return timers_.restart(node, deadline);
  node.deadline = deadline;
  return start_timer(node);
}

bool LoopCore::start_hook(Hook hook, Node& node) {
  if (node.active != 0) return true;
  if (!hooks(hook).add(node)) return false;
  if (keeps_alive(hook)) ref();
  return true;
}

void LoopCore::stop_hook(Hook hook, Node& node) {
  forget_pending(node);
  if (node.active == 0) return;
  hooks(hook).remove(node);
  if (keeps_alive(hook)) unref();
}

bool LoopCore::start_async(AsyncNode& node) {
  if (node.head.active != 0) return true;
  if (!asyncs_.add(node.head)) return false;
  ref();
  return true;
}

// A node that was sent lies on the stack, which can only be emptied whole.
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

// ---- time, fork, embedding, looking in

void LoopCore::suspend() {
  if (!is_suspended()) suspended_at_ = clock_.monotonic();
}

void LoopCore::resume() {
  if (is_suspended()) suspended_ += clock_.monotonic() - suspended_at_;
  suspended_at_ = Nanos{-1};
  update_now();
}

// Until all is there, the loop is the parent's.
std::error_code LoopCore::after_fork() {
  const std::uint32_t before = std::exchange(fork_generation_, sys::fork_generation());
  const std::error_code error = open_again();
  if (error) {
    fork_generation_ = before;
    return error;
  }
  resend_asyncs();
  children_.stop_all();
  paths_.after_fork();
  periodics_.after_fork();
  fork_hooks_due_ = true;
  return {};
}

std::error_code LoopCore::open_again() {
  if (const std::error_code error = backend_->reopen()) return error;
  fds_.register_all_again();
  if (wakeup_node_.head.active != 0) fds_.stop(wakeup_node_);
  return open();
}

// A thread that was about to put its node on the stack does not exist here: what is marked as sent
// has been sent, and goes there now.
void LoopCore::resend_asyncs() {
  for (AsyncNode* node = sent_.exchange(nullptr); node != nullptr;) {
    AsyncNode* next = node->next;
    if (node->head.active == 0) node->sent.store(AsyncNode::kUnsent);
    node = next;
  }
  asyncs_.for_each([this](Node& head) {
    auto& node = *reinterpret_cast<AsyncNode*>(&head);
    if (node.sent.exchange(AsyncNode::kUnsent) == AsyncNode::kSent) send(node);
  });
}

Nanos LoopCore::prepare_to_wait() {
  if (is_foreign()) return Nanos{0};  // run() says what is the matter.
  if (depth_ > 0) locals_.on_handover();
  reconcile();
  update_now();
  const Nanos timeout = wait_time();
  if (timeout == Nanos{0}) return timeout;
  wakeup_.announce_sleep();
  return has_messages() ? Nanos{0} : timeout;
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
