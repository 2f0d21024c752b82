// ev_run: turns, and the events that they take from core.
//
// Semantics: ev(3) "ev_run", "ev_break", "ev_set_loop_release_cb"; probed: the order of calls.
#include <unistd.h>

#include <cerrno>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"
#include "compat/libev/seconds.h"

namespace {

constexpr std::int64_t kWallStaysFor = 500'000'000;
constexpr std::int64_t kWallJump = 1'000'000'000;

}  // namespace

int ev_loop::run(int run_flags) {
  ++depth;
  break_how = EVBREAK_CANCEL;
  invoke_pending(this);  // Events that an outer run() has queued come first.
  do {
    turn(run_flags);
  } while (core->active_count() != 0 && break_how == EVBREAK_CANCEL &&
           (run_flags & (EVRUN_ONCE | EVRUN_NOWAIT)) == 0);
  if (break_how == EVBREAK_ONE) break_how = EVBREAK_CANCEL;
  --depth;
  return static_cast<int>(core->active_count());
}

void ev_loop::turn(int run_flags) {
  if (known_pid != 0) look_for_fork();
  if (fork_due && !forks.empty()) call_all(forks, EV_FORK);
  if (!prepares.empty()) call_all(prepares, EV_PREPARE);
  if (break_how != EVBREAK_CANCEL) return;
  if (fork_due) refork();
  ++iteration;
  const bool blocks = (run_flags & EVRUN_NOWAIT) == 0 && idle_count == 0 && !has_work();
  wait(blocks && !has_slept() ? spate::Run::once : spate::Run::no_wait);
  feed_all();
  invoke_pending(this);
}

void ev_loop::look_for_fork() {
  if (known_pid == getpid()) return;
  known_pid = getpid();
  fork_due = true;
}

void ev_loop::call_all(const spate::libev::WatcherList& watchers, int events) {
  watchers.feed_all(pending, events);
  invoke_pending(this);
}

// Queues events other than those of descriptors. Queued first is called last.
void ev_loop::feed_all() {
  if (has_messages() || rereads_messages) pending.feed(messenger, EV_CUSTOM);
  rereads_messages = false;
  has_refused = false;
  polled_at_ = core->now().count();
  if (polled_at_ - wall_read_at_ >= kWallStaysFor || periodics.clock_was_set()) update_wall();
  if (!timers_due.empty()) timers_due.feed_all(pending);
  if (!periodics.empty()) periodics.feed_due();
  if (idle_count != 0) feed_idle();
  if (!checks.empty()) checks.feed_all(pending, EV_CHECK);
}

// If a program removes more references than there are, its loop waits instead of ending.
void ev_loop::wait(spate::Run mode) {
  int lent = 0;
  if (core->active_count() < 0) {
    for (; core->active_count() <= 0; ++lent) core->ref();
  }
  std::error_code error = core->run(mode);
  // A child continues with its parent's loop without calling ev_loop_fork().
  while (error == spate::Error::loop_forked) {
    refork();
    error = core->run(mode);
  }
  for (; lent > 0; --lent) core->unref();
  if (!error) return;
  errno = error.value();
  spate::libev::report_system_error("(libev) waiting for events");
}

void ev_loop::refork() {
  fork_due = false;
  while (const std::error_code error = core->after_fork()) {
    errno = error.value();
    spate::libev::report_system_error("(libev) starting over after a fork");
  }
  periodics.after_fork();
  rereads_messages = gets_messages;
}

void ev_loop::feed_idle() {
  for (int priority = EV_MAXPRI; priority >= EV_MINPRI; --priority) {
    if (pending.has_from(priority)) return;
    const spate::libev::WatcherList& watchers = idles[priority - EV_MINPRI];
    if (!watchers.empty()) return watchers.feed_all(pending, EV_IDLE);
  }
}

// ---- from core

void ev_loop::ready(spate::Loop&, spate::FdNode& node, spate::Events events) {
  if (any(events & spate::Events::error)) return refuse(node);
  pending.feed(spate::libev::watcher_of(node), static_cast<int>(events));
}

void ev_loop::refuse(spate::FdNode& node) {
  pending.feed(spate::libev::watcher_of(node), EV_ERROR | EV_READ | EV_WRITE);
  has_refused = true;
}

void ev_loop::run_pending(spate::Loop& loop) {
  spate::Due due;
  while (loop.take(due)) {
  }
}

// Work that arrived since run() was entered must not wait for the sleep to end.
void ev_loop::before_wait(spate::Loop& loop) {
  if (has_work()) loop.wake();
  if (release != nullptr) release(this);
}

void ev_loop::after_wait(spate::Loop&) {
  if (acquire != nullptr) acquire(this);
}

// ---- messages

void ev_loop::raise(std::atomic<bool>& flag) noexcept {
  if (!flag.exchange(true)) core->wake();
}

void ev_loop::read_messages(struct ev_loop* loop, ev_watcher*, int) {
  if (loop->signal_raised.exchange(false)) loop->feed_signals();
  if (loop->async_raised.exchange(false)) loop->feed_asyncs();
}

// ---- time

double ev_loop::wall_now() const {
  return spate::libev::to_seconds(core->now().count() + wall_offset_);
}

// The wall clock is not read in each turn: it is slewed by less than can be noticed.
void ev_loop::update_wall() {
  const bool was_set = periodics.clock_was_set() && periodics.rearm_clock();
  if (was_set || core->now().count() - wall_read_at_ >= kWallStaysFor) read_wall(was_set);
}

void ev_loop::read_wall(bool was_set) {
  wall_read_at_ = core->now().count();
  const std::int64_t before = wall_offset_;
  wall_offset_ = core->wall_now().time_since_epoch().count() - wall_read_at_;
  const std::int64_t jump = wall_offset_ - before;
  periodics.on_wall_read(was_set || jump >= kWallJump || jump <= -kWallJump);
}

// ---- exported functions

int ev_run(struct ev_loop* loop, int flags) { return loop->run(flags); }

void ev_break(struct ev_loop* loop, int how) noexcept { loop->break_how = how; }

void ev_invoke_pending(struct ev_loop* loop) {
  spate::libev::PendingQueue::Entry entry;
  while (loop->pending.pop(entry)) entry.watcher->cb(loop, entry.watcher, entry.events);
}

unsigned int ev_pending_count(struct ev_loop* loop) noexcept {
  return static_cast<unsigned int>(loop->pending.size());
}

void ev_set_invoke_pending_cb(struct ev_loop* loop, ev_loop_callback callback) noexcept {
  loop->invoke_pending = callback;
}

void ev_set_loop_release_cb(struct ev_loop* loop, void (*release)(struct ev_loop*) noexcept,
                            void (*acquire)(struct ev_loop*) noexcept) noexcept {
  loop->release = release;
  loop->acquire = acquire;
}
