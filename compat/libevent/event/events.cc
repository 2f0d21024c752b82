// Adding, deleting and activating events.
//
// Semantics: event2/event.h (event_add, event_del, event_active); probed: the combinations (an
// active event is added, a readable one times out).
#include <cerrno>
#include <utility>

#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"

using spate::Events;
using namespace spate::libevent;

namespace {

constexpr short kDescriptorEvents = EV_READ | EV_WRITE | EV_CLOSED;
constexpr short kWatched = kDescriptorEvents | EV_SIGNAL;
constexpr unsigned kDescriptorsMost = 1U << 27;  // The size of libevent's table.

std::uint32_t wanted_by(const event& ev, short supported) {
  static_assert(EV_READ == 2 && EV_WRITE == 4 && EV_CLOSED == 0x80 && EV_ET == 0x20);
  static_assert(static_cast<std::uint32_t>(spate::kEdge) == EV_ET >> 1);
  const auto events = static_cast<std::uint32_t>(ev.ev_events & supported);
  return (events >> 1 & 0x13) | (events & EV_CLOSED) >> 4;
}

short what_of(Events events) {
  static_assert(static_cast<int>(Events::read) == 1 && static_cast<int>(Events::write) == 2 &&
                static_cast<int>(Events::peer_closed) == 8);
  const auto bits = static_cast<std::uint32_t>(events);
  return static_cast<short>((bits & 3) << 1 | (bits & 8) << 4);
}

void forget(event& ev) {
  clear_flag(ev, EVLIST_TIMEOUT | EVLIST_INSERTED | EVLIST_ACTIVE);
  if (debug::is_on) debug::note_added(&ev, false);
}

}  // namespace

// ---- activating

inline void event_base::enqueue(event& ev) {
  set_flag(ev, EVLIST_ACTIVE);
  active_.push(ev.ev_evcallback);
  added_.increment();
  activated_.increment();
  if (ev.ev_evcallback.evcb_pri < running_priority_) continues_ = true;
}

inline void event_base::activate_inline(event& ev, short what, int calls) {
  if (has_flag(ev, EVLIST_ACTIVE | EVLIST_FINALIZING)) {
    if (!has_flag(ev, EVLIST_FINALIZING)) ev.ev_res = static_cast<short>(ev.ev_res | what);
    return;
  }
  ev.ev_res = what;
  if ((ev.ev_events & EV_SIGNAL) != 0) {
    raises_of(ev) = static_cast<std::uint32_t>(calls);
  }
  enqueue(ev);
}

void event_base::activate(event& ev, short what, int calls) { activate_inline(ev, what, calls); }

// At most 33 in a turn, so that they do not keep others waiting. A more urgent one does not end the
// calls of the present priority.
bool event_base::activate_deferred(event& ev) {
  constexpr int kDeferredMost = 32;
  const bool is_late = deferred_in_turn_ > kDeferredMost;
  if (has_flag(ev, EVLIST_ACTIVE)) {
    if (has_flag(ev, EVLIST_ACTIVE_LATER) && !is_late) active_.admit(ev.ev_evcallback);
    return false;
  }
  ev.ev_res = EV_TIMEOUT;
  set_flag(ev, EVLIST_ACTIVE);
  added_.increment();
  activated_.increment();
  if (is_late) {
    active_.push_later(ev.ev_evcallback);
  } else {
    ++deferred_in_turn_;
    active_.push(ev.ev_evcallback);
  }
  return true;
}

int event_base::admit_later() {
  int admitted = 0;
  while (event_callback* callback = active_.first_later()) {
    active_.admit(*callback);
    ++admitted;
  }
  return admitted;
}

void event_base::ready(spate::Loop&, spate::FdNode& node, Events events) {
  event& ev = event_of(node);
  if (any(events & Events::error)) [[unlikely]] {
    return on_refused(ev);
  }
  activate_inline(ev, static_cast<short>(what_of(events) | (ev.ev_events & supported_ & EV_ET)), 1);
}

// A timeout ends all other waits of the event, and its callback gets only the timeout.
void event_base::expired(spate::Loop&, spate::TimerNode& node) {
  event& ev = event_of(node);
  queue_signals();
  clear_flag(ev, EVLIST_TIMEOUT);
  added_.decrement();
  remove(ev);
  activate_inline(ev, EV_TIMEOUT, 1);
}

// Signals are queued with the most urgent priority, after descriptors and before timeouts. Their
// events are determined only when that is called.
void event_base::queue_signals() {
  if (!signals_.has_raised() || has_flag(signals_due_, EVLIST_ACTIVE)) [[likely]] {
    return;
  }
  set_flag(signals_due_, EVLIST_ACTIVE);
  active_.push(signals_due_.ev_evcallback);
  activated_.increment();
}

void event_base::collect_signals() {
  clear_flag(signals_due_, EVLIST_ACTIVE);
  active_.remove(signals_due_.ev_evcallback);
  activated_.decrement();
  signals_.collect([this](event& ev, int raises) { activate(ev, EV_SIGNAL, raises); });
}

void event_base::finalize(event& ev, event_finalize_callback_fn callback, Closure closure) {
  if (has_flag(ev, EVLIST_FINALIZING)) return;
  del(ev, Running::ignore);
  set_closure(ev, closure);
  ev.ev_evcallback.evcb_cb_union.evcb_evfinalize = callback;
  activate(ev, EV_FINALIZE, 1);
  set_flag(ev, EVLIST_FINALIZING);
  notify();
}

void event_base::finalize_deferred(event& ev, event_finalize_callback_fn callback) {
  const bool continues = continues_;
  finalize(ev, callback, Closure::finalize);
  continues_ = continues;
}

// ---- adding

// An active event is not inserted again now: either its callback's end does that, or it stays out.
inline bool event_base::is_to_be_inserted(event& ev) const {
  return (ev.ev_events & kWatched) != 0 && !has_flag(ev, EVLIST_INSERTED | EVLIST_ACTIVE);
}

int event_base::add_without_timeout(event& ev) {
  if (has_flag(ev, EVLIST_FINALIZING)) return -1;
  return !is_to_be_inserted(ev) || insert(ev, true) ? 0 : -1;
}

int event_base::add_for(event& ev, const timeval& timeout) {
  const timeval duration = common_timeouts_.duration_of(timeout);
  const int result = add_until(ev, deadline_after(now(), duration), true);
  if (result == 0 && closure_of(ev) == Closure::persist) {
    set_interval(ev, interval_of(duration));
  }
  return result;
}

int event_base::add_until(event& ev, std::int64_t deadline, bool may_be_another_file) {
  if (has_flag(ev, EVLIST_FINALIZING)) return -1;
  const bool inserts = is_to_be_inserted(ev);
  if (inserts && !insert(ev, may_be_another_file)) return -1;
  if (deadline == kNever || set_timer(ev, deadline)) return 0;
  if (inserts) take_out(ev);
  return -1;
}

inline bool event_base::insert(event& ev, bool may_be_another_file) {
  const bool is_signal = (ev.ev_events & EV_SIGNAL) != 0;
  if (!(is_signal ? signals_.add(ev) : watch(ev, may_be_another_file))) return false;
  set_flag(ev, EVLIST_INSERTED);
  added_.increment();
  return true;
}

inline void event_base::take_out(event& ev) {
  if ((ev.ev_events & EV_SIGNAL) != 0) {
    signals_.remove(ev);
  } else if (fd_node(ev).head.active != 0) {
    loop_->stop(fd_node(ev));
  } else {
    unlink(ev);
  }
  clear_flag(ev, EVLIST_INSERTED);
  added_.decrement();
}

// A program may have closed the descriptor since the event was last added, and opened another under
// its number. libevent registers each addition and deletion with the kernel, so it does not notice;
// here the descriptor is registered again, unless the base itself adds the event again. A deletion
// is only noted, and costs nothing if the event is added again before the next wait.
inline bool event_base::watch(event& ev, bool may_be_another_file) {
  if (static_cast<unsigned>(ev.ev_fd) >= kDescriptorsMost) [[unlikely]] {
    return watch_none(ev);
  }
  if (debug::is_on) [[unlikely]] {
    if (mixes_edges(ev)) return false;
  }
  spate::FdNode& node = fd_node(ev);
  node.fd = ev.ev_fd;
  node.events =
      wanted_by(ev, supported_) | (may_be_another_file ? spate::kFdIsNewUnlessWatched : 0);
  return watches_at_once_ ? watch_now(ev) : watch_later(ev);
}

bool event_base::watch_none(event& ev) {
  if (ev.ev_fd >= 0) return false;
  link_first(unwatched_, ev);
  return true;
}

bool event_base::watch_later(event& ev) {
  spate::FdNode& node = fd_node(ev);
  being_watched_ = &ev;
  const bool has_memory = loop_->start(node);
  being_watched_ = nullptr;
  if (!has_memory) return false;
  if (node.head.active == 0) link_first(knows_edges() ? unwatched_ : refused_, ev);
  notify();
  return true;
}

inline bool event_base::watch_now(event& ev) {
  const std::error_code error = loop_->start_now(fd_node(ev));
  return !error || watch_after(ev, error);
}

bool event_base::watch_after(event& ev, std::error_code error) {
  // The child of a fork that continues with its parent's base, as a daemon does.
  if (error == spate::Error::loop_forked) {
    error = loop_->after_fork();
    if (!error) error = loop_->start_now(fd_node(ev));
    if (!error) return true;
  }
  errno = error.value();
  if (errno != ENOMEM) warn("event_add: epoll refuses descriptor %d", ev.ev_fd);
  return false;
}

// Handles a descriptor that the kernel refused, found out late. With epoll it is not watched; other
// methods report it as ready, as poll() does. If it is being added, watch() does the rest.
void event_base::on_refused(event& ev) {
  if (being_watched_ != &ev) link_first(knows_edges() ? unwatched_ : refused_, ev);
  if (!knows_edges()) return;
  errno = static_cast<int>(fd_node(ev).head.extra);
  warn("epoll refuses descriptor %d", ev.ev_fd);
}

// Before a turn, registers refused descriptors again, since they may be open by now. After it,
// those that still fail count as ready.
void event_base::watch_again() {
  event* first = std::exchange(refused_, nullptr);
  while (first != nullptr) {
    event& ev = *first;
    first = links(ev).next;
    if (!watch(ev, true)) link_first(unwatched_, ev);
  }
}

void event_base::activate_refused() {
  for (event* ev = refused_; ev != nullptr; ev = links(*ev).next) {
    const short what = ev->ev_events & (EV_READ | EV_WRITE);
    if (what != 0) activate(*ev, what, 1);
  }
}

// All events of a descriptor must be edge-triggered, or none. Only debug mode checks this, and
// warns.
bool event_base::mixes_edges(const event& ev) const {
  const event* known = &ev;
  bool (*is_alike)(void*, spate::FdNode&) = [](void* context, spate::FdNode& node) {
    const event& added = *static_cast<const event*>(context);
    const event& other = event_of(node);
    return other.ev_fd != added.ev_fd || ((other.ev_events ^ added.ev_events) & EV_ET) == 0;
  };
  if (loop_->for_each(is_alike, const_cast<event*>(known))) return false;
  warnx("event_add: descriptor %d has events with EV_ET and without", ev.ev_fd);
  return true;
}

bool event_base::set_timer(event& ev, std::int64_t deadline) {
  // Adding an event whose timeout is queued cancels that timeout.
  if (has_flag(ev, EVLIST_ACTIVE) && (ev.ev_res & EV_TIMEOUT) != 0) {
    if (current_ == &ev.ev_evcallback) calls_left_ = 0;
    dequeue(ev);
  }
  if (!loop_->restart(timer_node(ev), deadline)) return false;
  if (has_flag(ev, EVLIST_TIMEOUT)) {
    added_.decrement();  // Counted again, in case the maximum was reset.
  } else {
    set_flag(ev, EVLIST_TIMEOUT);
  }
  added_.increment();
  notify();
  return true;
}

// ---- deleting

void event_base::stop_timer(event& ev) {
  loop_->stop(timer_node(ev));
  clear_flag(ev, EVLIST_TIMEOUT);
  added_.decrement();
}

void event_base::remove_timer(event& ev) {
  if (!has_flag(ev, EVLIST_TIMEOUT)) return;
  stop_timer(ev);
  set_interval(ev, 0);
}

void event_base::remove(event& ev) {
  if (has_flag(ev, EVLIST_TIMEOUT | EVLIST_ACTIVE)) remove_but_watched(ev);
  if (has_flag(ev, EVLIST_INSERTED)) take_out(ev);
}

void event_base::remove_but_watched(event& ev) {
  if (has_flag(ev, EVLIST_TIMEOUT)) stop_timer(ev);
  if (has_flag(ev, EVLIST_ACTIVE)) dequeue(ev);
}

int event_base::del(event& ev, Running running) {
  if (has_flag(ev, EVLIST_FINALIZING)) return 0;
  if (current_ == &ev.ev_evcallback) calls_left_ = 0;
  if (is_notifiable_) return del_with_care(ev, running);
  remove(ev);
  return 0;
}

// Another thread may be in the loop.
int event_base::del_with_care(event& ev, Running running) {
  remove(ev);
  if (!is_elsewhere()) return 0;
  if (added_.now == 0) loop_->wake();  // Nothing is left, so the loop must end.
  const bool waits = running == Running::wait || (running == Running::wait_unless_finalized &&
                                                  (ev.ev_events & EV_FINALIZE) == 0);
  if (waits) wait_for_callback(ev);
  return 0;
}

// The callback may have added its event again.
void event_base::wait_for_callback(event& ev) {
  if (callback_ended_ == nullptr || current_ != &ev.ev_evcallback) return;
  while (current_ == &ev.ev_evcallback) {
    ++waiting_;
    threads.conditions.wait_condition(callback_ended_, lock_, nullptr);
  }
  if (!has_flag(ev, EVLIST_FINALIZING)) remove(ev);
}

// The events keep their contents; the loop, which is destroyed next, drops their nodes.
void event_base::forget_all_events() {
  using spate::FdNode;
  using spate::TimerNode;
  bool (*forget_fd)(void*, FdNode&) = [](void*, FdNode& node) {
    forget(event_of(node));
    return true;
  };
  bool (*forget_timer)(void*, TimerNode&) = [](void*, TimerNode& node) {
    forget(event_of(node));
    return true;
  };
  loop_->for_each(forget_fd, nullptr);
  loop_->for_each(forget_timer, nullptr);
  for (event* ev = unwatched_; ev != nullptr; ev = links(*ev).next) forget(*ev);
  for (event* ev = refused_; ev != nullptr; ev = links(*ev).next) forget(*ev);
  for (int number = 0; number < Signals::kSignals; ++number) {
    for (event* ev = signals_.first(number); ev != nullptr; ev = links(*ev).next) forget(*ev);
  }
  for (event_callback* later; (later = active_.first_later()) != nullptr;) {
    active_.remove(*later);
    forget(event_of(*later));
  }
  for (int priority = 0; priority < active_.priorities(); ++priority) {
    for (event_callback* callback = active_.first(priority); callback != nullptr;
         callback = active_.after(*callback)) {
      forget(event_of(*callback));
    }
  }
}
