// LoopCore: the implementation of a Loop. Each kind of event has an object; all of them feed one
// queue, and user code is called in one place.
#pragma once

#include <climits>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "core/children.h"
#include "core/fd_table.h"
#include "core/hook_list.h"
#include "core/internal.h"
#include "core/loop_local.h"
#include "core/one_shots.h"
#include "core/path_watch.h"
#include "core/pending_queue.h"
#include "core/periodics.h"
#include "core/post_queue.h"
#include "core/running_note.h"
#include "core/signals.h"
#include "core/spinner.h"
#include "core/timer_queue.h"
#include "core/user_code.h"
#include "core/wakeup.h"
#include "spate/active.h"
#include "spate/assert.h"
#include "spate/async.h"
#include "spate/layer/layer.h"
#include "sys/process.h"

namespace spate {

class LoopCore final : public Loop {
 public:
  LoopCore(OpenedBackend backend, const LayerOptions& options);
  ~LoopCore();
  using Loop::operator new;

  // The second half of construction, which can fail.
  std::error_code open();
  // Begins the destruction.
  void end();

  // The functions of Loop with these names.
  static Loop* current();
  std::error_code run(Run mode);
  bool has_work();
  std::error_code run_for(Nanos span);
  std::error_code collect(Nanos longest);
  void leave(bool all);
  Nanos prepare_to_wait();
  std::error_code after_fork();
  Metrics metrics();
  std::vector<ActiveInfo> list_active();
  void suspend();
  void resume();

  void update_now() { now_ = loop_time(); }
  // Returns the monotonic clock, less the time for which the loop was suspended.
  Nanos loop_time() const {
    return (is_suspended() ? suspended_at_ : clock_.monotonic()) - suspended_;
  }
  bool is_suspended() const { return suspended_at_ >= Nanos{0}; }
  WallTime wall_now() { return clock_.wall(); }

  bool start_fd(FdNode& node) {
    if (node.head.active != 0) return true;
    if (!fds_.holds(node.fd) || node.head.priority != 0 ||
        (node.events & kFdIsNewUnlessWatched) != 0 ||
        (is_on_fast_path() && fds_.is_watched(node.fd))) {
      return start_fd_slowly(node);
    }
    ref();
    fds_.enter(node);
    return true;
  }
  void stop_fd(FdNode& node) {
    if ((node.head.pending | static_cast<std::uint32_t>(node.head.priority)) != 0)
      return stop_fd_slowly(node);
    if (node.head.active == 0) return;
    unref();
    fds_.stop(node);
  }
  void modify_fd(FdNode& node, Events events);
  std::error_code start_fd_now(FdNode& node);
  void stop_fd_before_close(FdNode& node);
  void stop_fd_now(FdNode& node);
  bool start_timer(TimerNode& node) { return node.head.active != 0 || start_inactive(node); }
  void stop_timer(TimerNode& node) {
    if (node.head.pending != 0 || node.head.priority == kDirect) return stop_timer_slowly(node);
    if (node.head.active != 0) timers_.stop(node);
  }
  void park_timer(TimerNode& node) {
    if (node.head.pending != 0 || node.head.priority == kDirect) return park_queued(node);
    timers_.park(node);
  }
  bool restart_timer(TimerNode& node, std::int64_t deadline) {
    return timers_.postpone(node, deadline) || move_timer(node, deadline);
  }
  bool start_hook(Hook hook, Node& node);
  void stop_hook(Hook hook, Node& node);
  bool start_async(AsyncNode& node);
  void stop_async(AsyncNode& node);
  void send(AsyncNode& node) noexcept;

  // Deactivates a one-shot node; its queued event is still delivered.
  void retire(ChildNode& node) {
    children_.stop(node);
    unref();
  }
  void retire(PeriodicNode& node) {
    periodics_.stop(node);
    unref();
  }

  // Queues an event, or calls a direct node at once. False when memory runs out.
  bool deliver(Node& node, Events events);
  Signals& signals() { return signals_; }
  LoopLocals& locals() { return locals_; }

  bool for_each_fd(bool (*show)(void* context, FdNode& node), void* context) const {
    return fds_.for_each(
        [=](FdNode& node) { return is_internal(node.head) || show(context, node); });
  }
  bool for_each_timer(bool (*show)(void* context, TimerNode& node), void* context) const {
    return timers_.for_each(
        [=](TimerNode& node) { return is_internal(node.head) || show(context, node); });
  }

  const Children& children() const { return children_; }

  bool feed(Node& node, Events events) { return pending_.feed(node, events); }
  Events clear_pending(Node& node) { return pending_.remove(node); }
  Events clear_pending(FdNode& node) {
    leave_fast_path();
    return pending_.remove(node.head);
  }
  bool is_pending(const FdNode& node) {
    leave_fast_path();
    return node.head.pending != 0;
  }
  std::size_t pending_count() {
    leave_fast_path();
    return pending_.size();
  }
  void measure_callbacks(bool on);
  void measure_waits(bool on);
  std::optional<RunningCallback> running_callback() const;
  // Forces the next turn onto the slow path. Called when a rarely used feature is started.
  void request_slow_turn() { needs_slow_turn_ = true; }
  bool take(Due& due);
  std::size_t take(Due* batch, std::size_t most, bool (*wants)(const Node& node));
  void default_dispatch();
  void default_expiry(TimerNode& node);

  // Returns how many objects keep run() from returning: started watchers, references, and timers.
  // Timers count themselves, and direct ones are subtracted.
  std::int64_t active_count() const { return refs_ + static_cast<std::int64_t>(timers_.size()); }
  void ref() { ++refs_; }
  void unref() { --refs_; }

  // The callback of every internal node: Dispatchers never see one.
  static void internal(void* context, Node&, Events events) {
    static_cast<Internal*>(context)->on_event(events);
  }

  static bool is_internal(const Node& node) {
    return node.priority == kDirect || node.callback == &internal;
  }

  // The first step of every stop.
  void forget_pending(Node& node) {
    if (node.pending != 0) pending_.remove(node);
  }

  // True on the thread that runs the loop, or if none does.
  bool may_touch() const { return guarded_ || depth_ == 0 || runner_ == sys::thread_identity(); }
  bool is_foreign() const { return fork_generation_ != sys::fork_generation(); }

 private:
  friend class Loop;
  friend class NodeLoop;

  // While it exists, its thread is inside the loop.
  class Inside {
   public:
    explicit Inside(LoopCore& loop);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    LoopCore& loop_;
    Loop* outer_;
  };

  // Calls posted tasks, a bounded number per turn.
  class PostRunner final : public Internal {
   public:
    explicit PostRunner(LoopCore& loop) : loop_(loop) {}
    void on_event(Events) override;

   private:
    LoopCore& loop_;
  };

  // Receives results of the descriptor table.
  class Delivery final : public FdTable::Sink {
   public:
    explicit Delivery(LoopCore& loop) : loop_(loop) {}
    void on_ready(FdNode& node, Events events) override { loop_.on_ready(node, events); }
    void on_refused(FdNode& node, int error) override { loop_.on_refused(node, error); }

   private:
    LoopCore& loop_;
  };
  // For the events of one wait when a layer gets them.
  class LayerDelivery final : public FdTable::Sink {
   public:
    LayerDelivery(LoopCore& loop, Dispatcher& layer) : loop_(loop), layer_(layer) {}
    void on_ready(FdNode& node, Events events) override {
      if (is_internal(node.head)) {
        loop_.deliver(node.head, events);
      } else {
        layer_.ready(loop_, node, events);
      }
    }
    void on_refused(FdNode& node, int error) override { loop_.on_refused(node, error); }

   private:
    LoopCore& loop_;
    Dispatcher& layer_;
  };
  // For the fast path: a node that was fed meanwhile keeps its position there.
  class FrontDelivery final : public FdTable::Sink {
   public:
    explicit FrontDelivery(LoopCore& loop) : loop_(loop) {}
    void on_ready(FdNode& node, Events events) override {
      const bool was_fed = node.head.pending != 0;
      loop_.deliver(node.head, was_fed ? events | loop_.clear_pending(node.head) : events);
    }
    void on_refused(FdNode& node, int error) override { loop_.on_refused(node, error); }

   private:
    LoopCore& loop_;
  };

  static constexpr std::size_t kPostsPerTurn = 1024;
  static constexpr Nanos kDeafSleep{10'000'000};  // While the wake-up is refused.
  static constexpr std::ptrdiff_t kAhead = 8;     // How many events ahead watchers are prefetched.

  static bool keeps_alive(Hook hook) { return hook != Hook::fork && hook != Hook::cleanup; }
  HookList& hooks(Hook hook) { return hooks_[static_cast<int>(hook)]; }
  const HookList& hooks(Hook hook) const { return hooks_[static_cast<int>(hook)]; }
  bool is_wakeup_stopped() const { return wakeup_node_.head.active == 0; }
  bool has_slow_work() const;

  // The fast path: ready descriptors are called directly from the list that the wait has filled
  // (loop_core.cc). An operation that needs the complete queue leaves it: the rest of the list is
  // queued.
  bool is_on_fast_path() const { return next_ready_ != ready_end_; }
  void leave_fast_path() {
    if (is_on_fast_path()) queue_rest();
  }
  [[gnu::noinline]] void queue_rest();
  // Returns whether the descriptor is the one being called: it has no more events in the list.
  bool is_being_served(int fd) const {
    return next_ready_ != ready_.begin() && next_ready_[-1].fd == fd;
  }

  // A started descriptor keeps the loop alive, unless its node is direct. A nonzero priority
  // prevents the fast path.
  void count_in(const FdNode& node) {
    if (node.head.priority == 0) return ref();
    count_special(node, 1);
  }
  void count_out(const FdNode& node) {
    if (node.head.priority == 0) return unref();
    count_special(node, -1);
  }
  [[gnu::noinline]] void count_special(const FdNode& node, int change);
  void count_slow_reason(int change);

  // The slow paths of the most frequently called functions.
  [[gnu::noinline]] bool start_fd_slowly(FdNode& node);
  [[gnu::noinline]] void stop_fd_slowly(FdNode& node);
  bool start_inactive(TimerNode& node) {
    if (node.head.priority == kDirect || !timers_.has_kept_up(now_.count()))
      return start_timer_slowly(node);
    return timers_.start(node);
  }
  [[gnu::noinline]] bool start_timer_slowly(TimerNode& node);
  [[gnu::noinline]] void stop_timer_slowly(TimerNode& node);
  [[gnu::noinline]] void park_queued(TimerNode& node);
  bool move_timer(TimerNode& node, std::int64_t deadline);
  bool start_fd_beyond(FdNode& node);
  // The results of these are 0, a negated errno as in src/sys, or kForked.
  static constexpr long kForked = LONG_MIN;
  static std::error_code to_error(long result) {
    return result == kForked ? make_error_code(Error::loop_forked) : sys::error_code(result);
  }
  long turn(bool may_block) noexcept;
  long begin_slowly();
  long collect_turn(bool may_block) noexcept;
  bool feed_hooks_before_wait();
  void end_slowly();
  long rebuild_backend();
  std::error_code open_again();
  void resend_asyncs();
  void reconcile();
  static Events refusal_of(const FdNode& node) {
    return Events::error | (static_cast<Events>(node.events) & kIoEvents);
  }
  void leave_from(int depth) { leave_from_ = std::min(leave_from_, depth); }
  bool is_leaving() const { return leave_from_ <= depth_; }
  Nanos wait_time() noexcept;
  long wait() noexcept {
    const bool is_plain = !needs_slow_turn_ && timers_.size() == 0 && pending_.empty();
    return is_plain && !fds_.has_changes() ? sleep(kForever) : wait_by_the_clock();
  }
  long wait_by_the_clock() noexcept;
  long spin_and_sleep(Nanos timeout) noexcept;
  long sleep(Nanos timeout) noexcept;
  long look() noexcept;
  [[gnu::always_inline]] long wait_once(Nanos timeout) noexcept {
    if (dispatcher_ != nullptr) dispatcher_->before_wait(*this);
    ready_.clear();
    const long result = backend_->wait(timeout, ready_);
    if (dispatcher_ != nullptr) dispatcher_->after_wait(*this);
    update_now();
    return result;
  }
  bool has_found_something() const { return !ready_.empty() || has_messages_; }
  void begin_sleep();
  void end_sleep();
  // Enters the fast path, if nothing must be called before the ready descriptors.
  void take_ready() {
    if (fds_.is_large()) prefetch_slots();
    if (slow_reasons_ == 0 && pending_.empty()) {
      next_ready_ = ready_.begin();
      ready_end_ = ready_.end();
    } else {
      queue_ready();
    }
    if (needs_slow_turn_) queue_always_ready();
  }
  [[gnu::noinline]] void prefetch_slots();
  [[gnu::noinline]] void queue_always_ready();
  [[gnu::noinline]] void queue_ready();
  void call_layer(Dispatcher& layer);
  bool tell(Dispatcher& layer, const Ready& ready);
  [[gnu::noinline]] void tell_all(Dispatcher& layer, const Ready& ready);
  [[gnu::noinline]] void queue_for_all(const Ready& ready);
  void queue_timers();
  void queue_messages();
  void queue_asyncs();
  [[gnu::always_inline]] void call_pending() noexcept {
    pending_.begin_turn(budget_);
    if (is_on_fast_path()) call_ready();
    if (!pending_.empty()) call_queued();
  }
  void call_ready() noexcept;
  void call_queued() noexcept;
  void call_urgent();
  [[gnu::noinline]] void call_slowly(const Ready& ready);
  bool call_hooks(Hook hook, Events events);
  [[gnu::always_inline]] void call(Node& node, Events events) {
    ++metrics_.events;
    call_user(events, [&] { node.callback(node.context, node, events); });
  }
  void call_measured(const Due& due);
  void begin_timing();
  void end_timing();
  bool has_something_queued() const { return !pending_.empty() || posts_.has_posts(); }
  // Returns whether other threads or signal handlers have sent something.
  bool has_messages() const {
    return posts_.has_posts() || sent_.load() != nullptr || signals_.has_raised();
  }
  bool is_kept_alive() const { return active_count() > 0; }
  void list_nodes(ActiveList& list) const;
  void list_hooks(ActiveList& list, Hook hook, ActiveKind kind) const;
  void read_wakeup();
  void stop_everything();

  void note_stale();
  bool on_ready(FdNode& node, Events events);
  [[gnu::noinline]] bool dispatch_ready(FdNode& node, Events events);
  void on_refused(FdNode& node, int error);
  void on_expired(TimerNode& node);

  Clock& clock_;
  Dispatcher* dispatcher_;
  std::unique_ptr<Backend> backend_;
  std::string backend_reason_;
  std::uint32_t budget_;
  Spinner spinner_;
  bool guarded_;  // By a lock of the layer.
  bool orphans_;

  PendingQueue pending_;
  FdTable fds_;
  Delivery delivery_{*this};
  HookList hooks_[kHookKinds];
  PostQueue posts_;
  Wakeup wakeup_;
  FdNode wakeup_node_{};
  PostRunner post_runner_{*this};
  Node post_node_{};
  HookList asyncs_;
  std::atomic<AsyncNode*> sent_{nullptr};
  Signals signals_{*this, wakeup_};
  Children children_{*this};
  PathWatch paths_{*this};
  Periodics periodics_{*this};
  OneShots one_shots_{*this};

  LoopLocals locals_;

  ReadyList ready_;
  const Ready* next_ready_ = nullptr;  // The rest of the list in the fast path,
  const Ready* ready_end_ = nullptr;   // empty outside of it.
  int slow_reasons_ = 0;               // The number of reasons not to use the fast path.
  std::int64_t refs_ = 0;
  int depth_ = 0;
  int leave_from_ = INT_MAX;  // run() calls of this depth or deeper must return.
  std::uintptr_t runner_ = 0;
  std::uint32_t fork_generation_;
  bool has_messages_ = false;  // Messages may have been sent before the wait ended.
  bool needs_slow_turn_ = true;  // The next turn checks has_slow_work().
  bool may_be_timed_ = false;  // This run() may wait,
  bool is_timed_ = false;      // and its waits are measured.
  bool measuring_waits_ = false;
  bool fork_hooks_due_ = false;
  bool has_fed_hooks_ = false;  // collect() has fed hooks, and waits the next time.
  std::uint64_t last_stale_turn_ = 0;
  bool rebuild_ = false;
  bool measuring_ = false;
  Nanos suspended_{0};  // How far loop time is behind the clock.
  Nanos suspended_at_{-1};
  Nanos woke_up_{0};  // When the last sleep of this run() ended.
  Metrics metrics_;
  RunningNote calling_;                // The callback of call_measured().
  TimerQueue timers_{parked_timers_};  // Last, because it is large: the other members stay close
                                       // together.
};

// Return the implementation of a loop.
inline LoopCore& core_of(NodeLoop& loop) { return static_cast<LoopCore&>(loop); }
inline const LoopCore& core_of(const NodeLoop& loop) { return static_cast<const LoopCore&>(loop); }

// As core_of(), for all functions that only the loop's thread may call; asserts that.
inline LoopCore& own(
    NodeLoop& loop, [[maybe_unused]] std::source_location where = std::source_location::current()) {
  SPATE_ASSERT_IN(where, core_of(loop).may_touch(), kWrongThread);
  return core_of(loop);
}
inline const LoopCore& own(const NodeLoop& loop, [[maybe_unused]] std::source_location where =
                                                     std::source_location::current()) {
  SPATE_ASSERT_IN(where, core_of(loop).may_touch(), kWrongThread);
  return core_of(loop);
}

// As own(), for functions that inspect the queue.
inline LoopCore& own_whole(const NodeLoop& loop,
                           std::source_location where = std::source_location::current()) {
  return own(const_cast<NodeLoop&>(loop), where);
}

}  // namespace spate
