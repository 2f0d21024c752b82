// ev_signal. The handler marks the signal and wakes the loop that owns it; the watchers are queued
// when the loop reads its messages.
//
// Semantics: ev(3) "ev_signal", "ev_feed_signal", "ev_feed_signal_event", "EVFLAG_NOSIGMASK";
// probed: the order of the calls, SIG_DFL after the last stop. EVFLAG_SIGNALFD only requests an
// attempt, and is ignored.
#include "compat/libev/signals.h"

#include <pthread.h>

#include <cerrno>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"

using spate::libev::base;

namespace {

struct Slot {
  std::atomic<bool> raised;
  std::atomic<struct ev_loop*> loop;
  ev_signal* newest;
};

Slot slots[_NSIG];

bool is_signal(int signum) { return signum > 0 && signum < _NSIG; }

ev_signal* next_of(const ev_signal& signal) { return reinterpret_cast<ev_signal*>(signal.next); }

void handle(int signum) {
  const int saved = errno;
  ev_feed_signal(signum);
  errno = saved;
}

void install(int signum, bool may_unblock) {
  struct sigaction action{};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(signum, &action, nullptr);
  if (!may_unblock) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signum);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Returns false if it is missing: its loop was destroyed.
bool unlink_from(Slot& slot, ev_signal& signal) {
  ev_signal* before = nullptr;
  for (ev_signal* at = slot.newest; at != nullptr; before = at, at = next_of(*at)) {
    if (at != &signal) continue;
    if (before != nullptr) {
      before->next = signal.next;
    } else {
      slot.newest = next_of(signal);
    }
    return true;
  }
  return false;
}

void feed_watchers(struct ev_loop& loop, Slot& slot) {
  slot.raised.store(false);
  for (ev_signal* signal = slot.newest; signal != nullptr; signal = next_of(*signal)) {
    loop.pending.feed(base(*signal), EV_SIGNAL);
  }
}

}  // namespace

void spate::libev::forget_signals_of(const struct ev_loop& loop) {
  for (Slot& slot : slots) {
    if (slot.loop.load() != &loop) continue;
    slot.loop.store(nullptr);
    slot.newest = nullptr;
  }
}

struct ev_loop* spate::libev::loop_of_signal(int signum) {
  return is_signal(signum) ? slots[signum].loop.load() : nullptr;
}

// Feeds the highest number first, so that it is called last.
void ev_loop::feed_signals() {
  for (int signum = _NSIG - 1; signum > 0; --signum) {
    Slot& slot = slots[signum];
    if (slot.raised.load() && slot.loop.load() == this) feed_watchers(*this, slot);
  }
}

void ev_feed_signal(int signum) noexcept {
  struct ev_loop* loop = spate::libev::loop_of_signal(signum);
  if (loop == nullptr) return;
  slots[signum].raised.store(true);
  loop->raise(loop->signal_raised);
}

void ev_feed_signal_event(struct ev_loop* loop, int signum) noexcept {
  if (is_signal(signum) && slots[signum].loop.load() == loop) feed_watchers(*loop, slots[signum]);
}

void ev_signal_start(struct ev_loop* loop, ev_signal* signal) noexcept {
  if (signal->active != 0) return;
  spate::libev::require(is_signal(signal->signum), "ev_signal_start: there is no such signal");
  Slot& slot = slots[signal->signum];
  struct ev_loop* owner = slot.loop.load();
  spate::libev::require(owner == nullptr || owner == loop,
                        "ev_signal_start: the signal belongs to another loop");
  loop->begin(base(*signal));
  loop->gets_messages = true;
  signal->active = 1;
  signal->next = reinterpret_cast<ev_watcher_list*>(slot.newest);
  slot.newest = signal;
  slot.loop.store(loop);
  if (signal->next == nullptr) install(signal->signum, (loop->flags & EVFLAG_NOSIGMASK) == 0);
}

void ev_signal_stop(struct ev_loop* loop, ev_signal* signal) noexcept {
  if (!loop->end(base(*signal))) return;
  signal->active = 0;
  Slot& slot = slots[signal->signum];
  unlink_from(slot, *signal);
  if (slot.newest != nullptr) return;
  slot.loop.store(nullptr);
  ::signal(signal->signum, SIG_DFL);
}
