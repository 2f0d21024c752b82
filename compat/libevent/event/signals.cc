#include "compat/libevent/event/signals.h"

#include <cerrno>

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

// Read by the handler, on any thread.
constinit std::atomic<Signals*> owner{nullptr};

}  // namespace

Signals::~Signals() {
  Signals* self = this;
  owner.compare_exchange_strong(self, nullptr);
  for (int number = 0; number < kSignals; ++number) {
    if (replaced_[number] != nullptr) restore(number);
  }
}

void Signals::on_signal(int number) {
  const int error = errno;
  if (Signals* signals = owner.load()) {
    signals->raised_[number].fetch_add(1);
    signals->has_raised_.store(true);
    signals->loop_->wake();
  }
  errno = error;
}

bool Signals::add(event& ev) {
  const int number = ev.ev_fd;
  if (number < 0 || number >= kSignals) return false;
  if (events_[number] == nullptr && !install(number)) return false;
  link_first(events_[number], ev);
  return true;
}

void Signals::remove(event& ev) {
  unlink(ev);
  if (events_[ev.ev_fd] == nullptr) restore(ev.ev_fd);
}

bool Signals::install(int number) {
  auto* replaced = static_cast<struct sigaction*>(allocate(sizeof(struct sigaction)));
  if (replaced == nullptr) return false;
  become_owner();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  if (sigaction(number, &action, replaced) != 0) {
    warn("signal %d cannot be handled", number);
    release(replaced);
    return false;
  }
  replaced_[number] = replaced;
  ++handled_;
  return true;
}

void Signals::restore(int number) {
  if (sigaction(number, replaced_[number], nullptr) != 0) {
    warn("the handler of signal %d cannot be restored", number);
  }
  release(replaced_[number]);
  replaced_[number] = nullptr;
  --handled_;
}

void Signals::become_owner() {
  const Signals* before = owner.exchange(this);
  if (before == nullptr || before == this || before->handled_ == 0) return;
  warnx(
      "signals were added to a second event base: only the base that was last given one, or "
      "whose loop was last entered, gets them");
}

void Signals::claim() {
  if (handled_ > 0) become_owner();
}

void Signals::forget_raised() {
  has_raised_.store(false);
  for (std::atomic<int>& raises : raised_) raises.store(0);
}

}  // namespace spate::libevent
