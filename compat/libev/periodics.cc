#include "compat/libev/periodics.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"
#include "compat/libev/seconds.h"

namespace spate::libev {

namespace {

// A smaller step would be lost in rounding today's date.
constexpr double kMinInterval = 1.0 / 8192;
// How long a jump of the clock may go unnoticed without a timerfd.
constexpr double kBlindFor = 59.743;
// The two clocks are compared through doubles, which are that exact today.
constexpr double kRounding = 1e-6;

// Far in the future; only a change of the clock ends the wait.
constexpr itimerspec kNever{{0, 0}, {std::int64_t{1} << 40, 0}};

int open_clock() {
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) return -1;
  timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &kNever, nullptr);
  return fd;
}

}  // namespace

Periodics::Periodics(struct ev_loop& loop) : loop_(loop) {
  alarm_.head.priority = kDirect;
  alarm_.head.callback = [](void*, Node&, Events) {};
  clock_.fd = -1;
  clock_.head.priority = kDirect;
  clock_.head.context = this;
  clock_.head.callback = [](void* context, Node&, Events) {
    static_cast<Periodics*>(context)->clock_was_set_ = true;
  };
}

void Periodics::start(ev_periodic& periodic) {
  if (!loop_.begin(head(periodic))) return;
  if (heap_.empty() && clock_.fd < 0) watch_clock();
  reschedule(periodic);
  heap_.push_back(nullptr);
  sift_up(heap_.size() - 1, &periodic);
  if (heap_.front() == &periodic) set_alarm();
}

void Periodics::stop(ev_periodic& periodic) {
  if (!loop_.end(head(periodic))) return;
  const bool was_first = heap_.front() == &periodic;
  remove(periodic);
  if (was_first) set_alarm();
}

void Periodics::remove(ev_periodic& periodic) {
  const auto hole = static_cast<std::size_t>(periodic.active) - 1;
  periodic.active = 0;
  ev_periodic* last = heap_.back();
  heap_.pop_back();
  if (hole == heap_.size()) return;
  if (hole > 0 && last->at < heap_[(hole - 1) / 2]->at) {
    sift_up(hole, last);
  } else {
    sift_down(hole, last);
  }
}

void Periodics::feed_due() {
  const double now = loop_.wall_now();
  while (!heap_.empty() && heap_.front()->at < now) {
    ev_periodic* periodic = heap_.front();
    due_.push_back(periodic);
    advance(*periodic);
  }
  for (std::size_t i = due_.size(); i > 0; --i) {
    loop_.pending.feed(head(*due_[i - 1]), EV_PERIODIC);
  }
  due_.clear();
  if (heap_.empty() || heap_.front()->at != alarm_at_ || alarm_.head.active == 0) set_alarm();
}

// Moves it to its next time, or removes it from the heap.
void Periodics::advance(ev_periodic& periodic) {
  if (periodic.reschedule_cb == nullptr && !(periodic.interval > 0)) {
    loop_.core->unref();
    return remove(periodic);
  }
  reschedule(periodic);
  require(!(periodic.at < loop_.wall_now()), "an ev_periodic was rescheduled to the past");
  sift_down(0, &periodic);
}

void Periodics::on_wall_read(bool has_jumped) {
  if (heap_.empty()) return;
  if (has_jumped) reschedule_all();
  set_alarm();
}

void Periodics::reschedule_all() {
  for (ev_periodic* periodic : heap_) reschedule(*periodic);
  for (std::size_t i = heap_.size() / 2; i > 0; --i) sift_down(i - 1, heap_[i - 1]);
}

// Computes the next time after now. A watcher that is called once keeps its time.
void Periodics::reschedule(ev_periodic& periodic) {
  const double now = loop_.wall_now();
  if (periodic.reschedule_cb != nullptr) {
    periodic.at = periodic.reschedule_cb(&periodic, now);
  } else if (periodic.interval > 0) {
    const double interval = std::max(periodic.interval, kMinInterval);
    periodic.at = periodic.offset + interval * std::floor((now - periodic.offset) / interval);
    while (periodic.at <= now) {
      const double next = periodic.at + periodic.interval;
      if (next == periodic.at) {  // The step is too small for a double.
        periodic.at = now;
        break;
      }
      periodic.at = next;
    }
  } else {
    periodic.at = periodic.offset;
  }
}

// ---- the alarm

void Periodics::set_alarm() {
  Loop& core = *loop_.core;
  if (heap_.empty()) return core.stop(alarm_);
  alarm_at_ = heap_.front()->at;
  double wait = std::max(alarm_at_ - loop_.wall_now(), 0.0) + kRounding;
  if (clock_.fd < 0) wait = std::min(wait, kBlindFor);
  const std::int64_t deadline = core.now().count() + to_nanos(wait);
  core.restart(alarm_, deadline);
}

void Periodics::watch_clock() {
  if ((loop_.flags & EVFLAG_NOTIMERFD) != 0) return;
  clock_.fd = open_clock();
  if (clock_.fd < 0) return;
  clock_.events = static_cast<std::uint32_t>(Events::read) | kFdIsNew;
  if (!loop_.core->start(clock_)) forget_clock();
}

void Periodics::forget_clock() {
  loop_.core->stop(clock_);
  if (clock_.fd >= 0) ::close(clock_.fd);
  clock_.fd = -1;
}

// Armed before the clock is read, so that no change falls between the two.
bool Periodics::rearm_clock() {
  clock_was_set_ = false;
  std::uint64_t count;
  if (clock_.head.active == 0) {  // Refused by the backend.
    forget_clock();
  } else if (::read(clock_.fd, &count, sizeof(count)) < 0) {
    timerfd_settime(clock_.fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &kNever, nullptr);
  }
  return true;
}

// The parent keeps its own timerfd.
void Periodics::after_fork() {
  if (clock_.fd < 0) return;
  forget_clock();
  watch_clock();
  clock_was_set_ = true;
}

void Periodics::close() { forget_clock(); }

// ---- the heap

void Periodics::set(std::size_t i, ev_periodic* periodic) {
  heap_[i] = periodic;
  periodic->active = static_cast<int>(i) + 1;
}

void Periodics::sift_up(std::size_t hole, ev_periodic* periodic) {
  for (; hole > 0; hole = (hole - 1) / 2) {
    ev_periodic* parent = heap_[(hole - 1) / 2];
    if (parent->at <= periodic->at) break;
    set(hole, parent);
  }
  set(hole, periodic);
}

void Periodics::sift_down(std::size_t hole, ev_periodic* periodic) {
  for (std::size_t child = 2 * hole + 1; child < heap_.size(); child = 2 * hole + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1]->at < heap_[child]->at) ++child;
    if (periodic->at <= heap_[child]->at) break;
    set(hole, heap_[child]);
    hole = child;
  }
  set(hole, periodic);
}

bool Periodics::is_consistent() const {
  for (std::size_t i = 0; i < heap_.size(); ++i) {
    if (heap_[i]->active != static_cast<int>(i) + 1) return false;
    if (i > 0 && heap_[(i - 1) / 2]->at > heap_[i]->at) return false;
  }
  return true;
}

}  // namespace spate::libev

void ev_periodic_start(struct ev_loop* loop, ev_periodic* periodic) noexcept {
  loop->periodics.start(*periodic);
}

void ev_periodic_stop(struct ev_loop* loop, ev_periodic* periodic) noexcept {
  loop->periodics.stop(*periodic);
}

void ev_periodic_again(struct ev_loop* loop, ev_periodic* periodic) noexcept {
  ev_periodic_stop(loop, periodic);
  ev_periodic_start(loop, periodic);
}
