#include "core/signals.h"

#include <bit>
#include <cerrno>
#include <mutex>

#include "core/loop_core.h"
#include "sys/process.h"

namespace spate {

Signals::Disposition Signals::dispositions[kMaxSignal + 1];

namespace {

using Disposition = Signals::Disposition;

std::mutex guard;
std::atomic<int> handlers_running{0};

void handle(int signum) {
  const int saved = errno;
  handlers_running.fetch_add(1);
  for (const std::atomic<Signals*>& entry : Signals::dispositions[signum].loops) {
    if (Signals* signals = entry.load()) signals->raise(signum);
  }
  handlers_running.fetch_sub(1);
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handle;
}

std::error_code install(Disposition& disposition, int signum) {
  struct sigaction ours{};
  ours.sa_handler = handle;
  ours.sa_flags = SA_RESTART;
  sigfillset(&ours.sa_mask);
  return sys::error_code(sys::set_signal_action(signum, &ours, &disposition.found));
}

void put_back(Disposition& disposition, int signum) {
  struct sigaction now{};
  if (sys::set_signal_action(signum, nullptr, &now) < 0 || !is_ours(now)) return;
  sys::set_signal_action(signum, &disposition.found, nullptr);
}

std::error_code add_loop(Signals* signals, int signum) {
  const std::lock_guard lock(guard);
  Disposition& disposition = Signals::dispositions[signum];
  for (std::atomic<Signals*>& entry : disposition.loops) {
    if (entry.load() != nullptr) continue;
    if (disposition.users == 0) {
      if (const std::error_code error = install(disposition, signum)) return error;
    }
    ++disposition.users;
    entry.store(signals);
    return {};
  }
  return {ENOSPC, std::system_category()};
}

void remove_loop(Signals* signals, int signum) {
  const std::lock_guard lock(guard);
  Disposition& disposition = Signals::dispositions[signum];
  for (std::atomic<Signals*>& entry : disposition.loops) {
    if (entry.load() == signals) entry.store(nullptr);
  }
  if (--disposition.users == 0) put_back(disposition, signum);
  // A handler in another thread may have read the entry just before.
  while (handlers_running.load() != 0) {
  }
}

// A thread that was inside the handler does not exist in the child; what was raised and not yet
// reported is the parent's.
void settle_in_child() {
  handlers_running.store(0);
  for (Disposition& disposition : Signals::dispositions) {
    for (std::atomic<Signals*>& entry : disposition.loops) {
      if (Signals* signals = entry.load()) signals->forget_raised();
    }
  }
  guard.unlock();
}

// Whoever forks holds the guard, so that the child finds the table whole, and the guard free.
[[maybe_unused]] const bool registered =
    sys::at_fork([] { guard.lock(); }, [] { guard.unlock(); }, settle_in_child);

}  // namespace

std::error_code Signals::start(SignalNode& node) {
  if (node.signum < 1 || node.signum > kMaxSignal) return {EINVAL, std::system_category()};
  SignalNode*& first = watchers_[node.signum];
  if (first == nullptr) {
    if (const std::error_code error = add_loop(this, node.signum)) return error;
  }
  node.next = nullptr;
  SignalNode** end = &first;
  while (*end != nullptr) end = &(*end)->next;
  *end = &node;
  node.head.active = 1;
  return {};
}

void Signals::stop(SignalNode& node) {
  SignalNode** link = &watchers_[node.signum];
  while (*link != &node) link = &(*link)->next;
  *link = node.next;
  node.head.active = 0;
  if (watchers_[node.signum] == nullptr) remove_loop(this, node.signum);
}

void Signals::stop_all() {
  for (SignalNode* first : watchers_) {
    while (first != nullptr) {
      SignalNode* next = first->next;
      stop(*first);
      first = next;
    }
  }
}

void Signals::raise(int signum) noexcept {
  raised_.fetch_or(std::uint64_t{1} << (signum - 1));
  wakeup_.wake();
}

void Signals::collect() {
  for (std::uint64_t raised = raised_.exchange(0); raised != 0; raised &= raised - 1) {
    const int signum = std::countr_zero(raised) + 1;
    for (SignalNode* node = watchers_[signum]; node != nullptr;) {
      SignalNode* next = node->next;
      if (!loop_.deliver(node->head, Events::signal)) raise(signum);  // Once more, next turn.
      node = next;
    }
  }
}

}  // namespace spate
