// struct ev_loop: one loop of libev's. It consists of a spate::Loop that waits, its own queue of
// events, and the kinds of watchers that core does not have.
//
// One turn polls core once (Loop::run(Run::once), or no_wait), during which core passes ready and
// expired watchers to this object, which only queues them. The program's callbacks are called after
// that, by invoke_pending, when nothing of core's is on the stack: they may throw, longjmp(), run
// the loop once more or destroy it.
//
// Threads: as in ev(3), the program's own lock makes several possible; between the release and the
// acquire callback the loop sleeps and may be changed. raise() is safe anywhere at any time.
//
// Semantics: ev(3) "FUNCTIONS CONTROLLING EVENT LOOPS"; the order of a turn is that of its list
// under "ev_run".
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "compat/libev/overlay.h"
#include "compat/libev/pending_queue.h"
#include "compat/libev/periodics.h"
#include "compat/libev/stats.h"
#include "spate/layer/layer.h"

namespace spate::libev {

// Watchers whose `active` is their place plus one.
class WatcherList {
 public:
  void add(ev_watcher& watcher) {
    watchers_.push_back(&watcher);
    watcher.active = static_cast<int>(watchers_.size());
  }
  void remove(ev_watcher& watcher) {
    ev_watcher* last = watchers_.back();
    watchers_[static_cast<std::size_t>(watcher.active) - 1] = last;
    last->active = watcher.active;
    watchers_.pop_back();
    watcher.active = 0;
  }
  void feed_all(PendingQueue& pending, int events) const {
    for (ev_watcher* watcher : watchers_) pending.feed(*watcher, events);
  }
  bool empty() const { return watchers_.empty(); }
  const std::vector<ev_watcher*>& all() const { return watchers_; }
  bool is_consistent() const;

 private:
  std::vector<ev_watcher*> watchers_;
};

// The timers that expired in a wait, in order; the earliest is queued last.
class DueTimers {
 public:
  DueTimers() = default;
  ~DueTimers();
  DueTimers(const DueTimers&) = delete;
  DueTimers& operator=(const DueTimers&) = delete;

  void push(ev_watcher& timer) {
    if (size_ == capacity_) [[unlikely]]
      make_room();
    timers_[size_++] = &timer;
  }
  bool empty() const { return size_ == 0; }
  void feed_all(PendingQueue& pending) {
    for (; size_ > 0; --size_) pending.feed(*timers_[size_ - 1], EV_TIMER);
  }

 private:
  [[gnu::cold, gnu::noinline]] void make_room();

  ev_watcher** timers_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace spate::libev

struct ev_loop final : spate::Dispatcher {
 public:
  using Release = void (*)(struct ev_loop*) noexcept;

  // Uses one of the backends in `flags`. Returns false if none is available.
  [[nodiscard]] bool open(unsigned int flags);
  void destroy();

  [[nodiscard]] int run(int flags);

  // Starts or stops a watcher of any kind. begin() returns false if it is active already.
  bool begin(ev_watcher& watcher);
  [[nodiscard]] bool end(ev_watcher& watcher);

  // Returns true if it must not sleep, though core would.
  bool has_work() const { return has_refused || has_messages(); }

  // Any thread, any signal handler: sets the flag, and makes the loop check it soon.
  void raise(std::atomic<bool>& flag) noexcept;
  void feed_asyncs();
  void feed_signals();

  // Returns the wall clock at the start of this turn.
  double wall_now() const;
  // Reads the clock if the last reading is old, or always.
  void update_wall();
  void read_wall(bool was_set);

  void refork();

  // Called by core.
  void ready(spate::Loop&, spate::FdNode& node, spate::Events events) override;
  void expired(spate::Loop&, spate::TimerNode& node) override;
  void run_pending(spate::Loop&) override;
  void before_wait(spate::Loop&) override;
  void after_wait(spate::Loop&) override;

  spate::libev::Stats stats{*this};  // Outlives core.
  std::unique_ptr<spate::Loop> core;
  spate::libev::PendingQueue pending;
  spate::libev::DueTimers timers_due;
  spate::libev::Periodics periodics{*this};
  spate::libev::WatcherList prepares;
  spate::libev::WatcherList checks;
  spate::libev::WatcherList forks;
  spate::libev::WatcherList cleanups;
  spate::libev::WatcherList asyncs;
  spate::libev::WatcherList idles[spate::kPriorityLevels];
  int idle_count = 0;
  bool has_refused = false;  // A refused descriptor's watcher is in the queue.

  std::atomic<bool> async_raised{false};
  std::atomic<bool> signal_raised{false};
  bool gets_messages = false;
  bool rereads_messages = false;  // After a fork.
  // Queued in place of messages of other threads and of signal handlers.
  ev_watcher messenger = spate::libev::watcher_with(EV_MAXPRI, read_messages);

  unsigned int flags = 0;
  unsigned int backend = 0;
  int break_how = EVBREAK_CANCEL;
  bool fork_due = false;
  int known_pid = 0;  // With EVFLAG_FORKCHECK.
  unsigned int depth = 0;
  unsigned int iteration = 0;
  void* userdata = nullptr;
  ev_loop_callback invoke_pending = ev_invoke_pending;
  Release release = nullptr;
  Release acquire = nullptr;
  double io_interval = 0;
  double timeout_interval = 0;

 private:
  [[gnu::cold, gnu::noinline]] void refuse(spate::FdNode& node);
  [[gnu::noinline]] static void repeat(spate::Loop& loop, ev_timer& timer);
  static void read_messages(struct ev_loop* loop, ev_watcher*, int);

  void turn(int flags);
  bool has_messages() const { return async_raised.load() || signal_raised.load(); }
  void call_all(const spate::libev::WatcherList& watchers, int events);
  void look_for_fork();
  void wait(spate::Run mode);
  // Applies the collect intervals. Returns true if it slept.
  bool has_slept() { return (io_interval > 0 || timeout_interval > 0) && sleep_first(); }
  [[nodiscard]] bool sleep_first();
  [[nodiscard]] bool sleep_on_descriptor(std::int64_t nanos);
  void feed_all();
  void feed_idle();

  std::int64_t wall_offset_ = 0;
  std::int64_t wall_read_at_ = 0;
  std::int64_t polled_at_ = 0;
};

namespace spate::libev {

// If the watcher is queued, removes it, and then calls a function that stops or restarts it. A
// separate function, so that the callers need not save registers.
template <class Watcher>
[[gnu::noinline]] void clear_and(void (*function)(struct ev_loop*, Watcher*) noexcept,
                                 struct ev_loop& loop, Watcher& watcher) {
  loop.pending.clear(base(watcher));
  function(&loop, &watcher);
}

}  // namespace spate::libev
