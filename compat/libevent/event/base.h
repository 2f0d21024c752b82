// event_base: one spate loop, and the parts of libevent beyond it.
//
// Semantics: event2/event.h; order, return values and counts: probes.
//
// The base is the Dispatcher of its loop. Ready and expired events are only queued as active while
// spate runs; callbacks are called afterwards (loop.cc), without the lock.
//
// Threads: the caller of a function below holds the base's lock, if it has one; between
// before_wait() and after_wait() the loop's own thread does not.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "compat/libevent/event/active_queue.h"
#include "compat/libevent/event/common_timeouts.h"
#include "compat/libevent/event/config.h"
#include "compat/libevent/event/signals.h"
#include "compat/libevent/threads.h"
#include "spate/layer/layer.h"

namespace spate::libevent {

// The base of event_init(), which the functions without a base use.
extern constinit event_base* current_base;

struct OnceEvent;

// The deadline of an event without a timeout.
inline constexpr std::int64_t kNever = INT64_MAX;

// How event_del() treats a callback of the event that runs on another thread.
enum class Running { ignore, wait, wait_unless_finalized };

// The current number, and the maximum.
struct Count {
  int now = 0;
  int max = 0;
  void increment() {
    if (++now > max) max = now;
  }
  void decrement() { --now; }
};

}  // namespace spate::libevent

struct event_base final : public spate::Dispatcher {
 public:
  using Closure = spate::libevent::Closure;
  using Running = spate::libevent::Running;

  // Returns null, with a warning, if no method is available, or without memory.
  static event_base* create(const event_config* config);
  event_base(const event_base&) = delete;
  event_base& operator=(const event_base&) = delete;
  // Afterwards no event is pending; their memory stays the program's.
  ~event_base() override;

  // ---- events (events.cc)

  // `timeout` may be null. Returns -1 on failure, without any change.
  [[nodiscard]] int add(event& ev, const timeval* timeout) {
    return timeout == nullptr ? add_without_timeout(ev) : add_for(ev, *timeout);
  }
  int del(event& ev, Running running);
  void remove_timer(event& ev);
  void forget_descriptor(event& ev) { loop_->stop_before_close(spate::libevent::fd_node(ev)); }
  // Queues an event, or adds to the events that its callback gets.
  void activate(event& ev, short what, int calls);
  bool activate_deferred(event& ev);
  // Does not wait; makes `closure` the event's last action.
  void finalize(event& ev, event_finalize_callback_fn callback, Closure closure);
  void finalize_deferred(event& ev, event_finalize_callback_fn callback);

  // ---- the loop (loop.cc)

  [[nodiscard]] int loop(int flags);
  void leave_at_once() { is_breaking_ = true; }
  void leave_after_active() { is_exiting_ = true; }
  void look_again() { continues_ = true; }
  bool is_breaking() const { return is_breaking_; }
  bool is_exiting() const { return is_exiting_; }
  event* running_event() const;
  // Called before the base is freed, instead of the loop: calls only pending finalizers.
  void call_finalizers();

  // ---- time: nanoseconds of the monotonic clock (base_time.cc)

  std::int64_t now() const { return time_is_cached_ ? loop_->now().count() : read_clock(); }
  void refresh_time();
  // Returns the offset from the monotonic clock to the time of day; stays the same for a while.
  std::int64_t to_wall_clock();
  bool time_is_cached() const { return time_is_cached_; }

  // ---- looking in, and settings

  const char* method_name() const;
  int features() const { return method_.features; }
  int priorities() const { return active_.priorities(); }
  [[nodiscard]] bool set_priorities(int count) { return active_.set_priorities(count); }
  bool has_active() const { return activated_.now > 0; }
  spate::libevent::Count& added() { return added_; }
  spate::libevent::Count& activated() { return activated_; }
  spate::libevent::CommonTimeouts& common_timeouts() { return common_timeouts_; }
  event* first_of_signal(int number) const { return signals_.first(number); }
  spate::libevent::OnceEvent*& once_events() { return once_events_; }
  [[nodiscard]] bool reinit();
  void make_notifiable() { is_notifiable_ = true; }

  // All events that are added or active, each once: descriptors, signals, timers by deadline, then
  // those that are only active. The caller frees the list; null if there are no events, or no
  // memory.
  event** list_events(std::size_t& count) const;
  // Activates the pending events of `fd`, or with EV_TIMEOUT the timeouts of events with that `fd`.
  void activate_by_fd(int fd, short what);
  void activate_by_signal(int number);

  void* lock() const { return lock_; }
  // Wakes the loop if another thread is waiting in it.
  void notify() {
    if (is_elsewhere()) loop_->wake();
  }

 private:
  event_base(const spate::libevent::Method& method, const event_config* config);
  [[nodiscard]] bool open();

  void ready(spate::Loop& loop, spate::FdNode& node, spate::Events events) override;
  void expired(spate::Loop& loop, spate::TimerNode& node) override;
  void run_pending(spate::Loop& loop) override;
  void before_wait(spate::Loop& loop) override;
  void after_wait(spate::Loop& loop) override;

  // Only epoll does.
  bool knows_edges() const { return (supported_ & EV_ET) != 0; }
  // Returns true if another thread is in the loop.
  bool is_elsewhere() const {
    return is_notifiable_ && is_running_ && spate::libevent::threads.id != nullptr &&
           spate::libevent::threads.id() != runner_;
  }

  [[nodiscard]] int add_without_timeout(event& ev);
  [[nodiscard]] int add_for(event& ev, const timeval& timeout);
  [[nodiscard]] int add_until(event& ev, std::int64_t deadline, bool may_be_another_file);
  bool is_to_be_inserted(event& ev) const;
  [[nodiscard]] bool insert(event& ev, bool may_be_another_file);
  void take_out(event& ev);
  [[nodiscard]] bool watch(event& ev, bool may_be_another_file);
  [[gnu::noinline]] bool watch_none(event& ev);
  [[nodiscard]] bool watch_now(event& ev);
  [[gnu::noinline]] bool watch_after(event& ev, std::error_code error);
  [[gnu::noinline]] bool watch_later(event& ev);
  void on_refused(event& ev);
  void watch_again();
  void activate_refused();
  void activate_timeouts(int fd);
  [[nodiscard]] bool mixes_edges(const event& ev) const;
  [[nodiscard]] bool set_timer(event& ev, std::int64_t deadline);
  void stop_timer(event& ev);
  void activate_inline(event& ev, short what, int calls);
  void enqueue(event& ev);
  // Queues the events that were put off. Returns how many there were.
  [[nodiscard]] int admit_later();
  void queue_signals();
  void collect_signals();
  void dequeue(event& ev) {
    spate::libevent::clear_flag(ev, EVLIST_ACTIVE);
    active_.remove(ev.ev_evcallback);
    added_.decrement();
    activated_.decrement();
  }
  void remove(event& ev);
  [[gnu::noinline]] void remove_but_watched(event& ev);
  [[gnu::noinline]] int del_with_care(event& ev, Running running);
  void remove_for_call(event& ev);
  void wait_for_callback(event& ev);
  void forget_all_events();
  [[nodiscard]] bool unwatch_closed();

  bool turn(bool may_block);
  void log_end(int result) const;
  [[nodiscard]] int call_active();
  [[nodiscard]] int call_line(int priority);
  void call(event& ev);
  void invoke(event& ev);
  void call_signal(event& ev);
  void call_finalizer(event& ev);
  void add_again(event& ev);
  void end_call() {
    current_ = nullptr;
    if (waiting_ != 0) [[unlikely]] {
      wake_waiting();
    }
  }
  void wake_waiting();
  [[nodiscard]] bool is_enough(int called, std::int64_t end);

  static std::int64_t read_clock() { return spate::system_clock().monotonic().count(); }

  // Members in the order of use: those on the path of a callback come first.
  std::unique_ptr<spate::Loop> loop_;
  void* lock_ = nullptr;
  spate::libevent::ActiveQueue active_;
  spate::libevent::Count added_;      // Once for a descriptor or signal, a timeout, a turn.
  spate::libevent::Count activated_;  // The events in the queue.
  bool watches_at_once_;              // Adding a descriptor registers it with the kernel.
  bool may_cache_time_;
  bool time_is_cached_ = false;
  bool is_notifiable_ = false;
  bool is_running_ = false;
  bool is_exiting_ = false;
  bool is_breaking_ = false;
  bool continues_ = false;  // The loop must poll before it calls more events.
  short supported_;         // EV_READ, EV_WRITE, and other events of the method.
  int running_priority_ = -1;
  event_callback* current_ = nullptr;  // The event whose callback runs.
  std::uint32_t calls_left_ = 0;       // In the signal event whose callback runs.
  int deferred_in_turn_ = 0;           // Deferred events activated since the last turn.
  int waiting_ = 0;                    // Threads that wait for the current callback.
  void* callback_ended_ = nullptr;     // The condition that they wait for.
  unsigned long runner_ = 0;           // The thread in the loop.

  event* unwatched_ = nullptr;  // Added, but without a descriptor that can become ready.
  event* refused_ = nullptr;    // Added, with a descriptor that counts as ready (watch_again()).
  event* being_watched_ = nullptr;  // The event whose descriptor is being registered.
  spate::libevent::OnceEvent* once_events_ = nullptr;
  const spate::libevent::Method& method_;
  int flags_;
  spate::libevent::DispatchLimits limits_;
  std::int64_t wall_offset_ = 0;
  std::int64_t wall_read_at_ = INT64_MIN;
  spate::libevent::CommonTimeouts common_timeouts_;
  spate::libevent::Signals signals_;  // After the loop, which they wake.
  event signals_due_{};               // Queued when signals were raised.
};
