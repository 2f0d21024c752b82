#include "core/signals.h"

#include <bit>
#include <cerrno>
#include <mutex>

#include "core/loop_core.h"
#include "sys/process.h"
#include "sys/thread.h"

namespace spate {

Signals::Disposition Signals::dispositions[kMaxSignal + 1];

namespace {

using Disposition = Signals::Disposition;

std::mutex guard;
std::atomic<int> handlers_running{0};

void respond(CopyRequest& request, Disposition& disposition);

void handle(int signum, siginfo_t* info, void* context) {
  if (CopyRequest* request = request_in(info, context))
    return respond(*request, Signals::dispositions[signum]);
  const int saved = errno;
  // Counted before the table is read. remove_loop() clears its entry before it reads the count, so
  // it waits for every handler that found the entry.
  handlers_running.fetch_add(1);
  for (const std::atomic<Signals*>& entry : Signals::dispositions[signum].loops) {
    if (Signals* signals = entry.load()) signals->raise(signum);
  }
  if (const SignalHandler next = Signals::dispositions[signum].next) next(signum, info, context);
  handlers_running.fetch_sub(1);
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return is_copy(action) && action.sa_sigaction == handle;
}

// A handler in another thread may have read the table just before.
void wait_for_handlers() {
  while (handlers_running.load() != 0) {
  }
}

void set_found(Disposition& disposition, const struct sigaction& found) {
  disposition.found = found;
  disposition.next = is_copy(found) ? found.sa_sigaction : nullptr;
}

// Responds to another copy, on any thread. That copy holds the guard of its table, so this does not
// wait for ours.
void respond(CopyRequest& request, Disposition& disposition) {
  const std::unique_lock lock(guard, std::try_to_lock);
  if (!lock.owns_lock()) return;
  request.is_done = true;
  if (request.what == CopyRequest::What::read_found) {
    request.found = disposition.found;
  } else {
    set_found(disposition, request.found);
    wait_for_handlers();
  }
}

// Where our handler is in the chain of copies.
struct InChain {
  bool is_known = true;      // Not if a copy is busy.
  bool is_there = false;
  struct sigaction above{};  // The copy that calls ours, unless ours is first.
  bool is_first = false;
};

InChain find_in_chain(int signum, struct sigaction first) {
  InChain found{.is_first = true};
  while (is_copy(first)) {
    if (is_ours(first)) {
      found.is_there = true;
      break;
    }
    CopyRequest next{.what = CopyRequest::What::read_found};
    if (!ask_copy(first, signum, next)) return {.is_known = false};
    found.is_first = false;
    found.above = first;
    first = next.found;
  }
  return found;
}

// False if another copy is busy.
bool install(Disposition& disposition, int signum, std::error_code& error) {
  struct sigaction now{};
  error = sys::error_code(sys::set_signal_action(signum, nullptr, &now));
  if (error) return true;
  const InChain place = find_in_chain(signum, now);
  if (!place.is_known) return false;
  if (place.is_there) return true;
  const struct sigaction ours = action_of_copy(handle);
  set_found(disposition, now);
  error = sys::error_code(sys::set_signal_action(signum, &ours, nullptr));
  return true;
}

// Takes our handler out of the chain, unless the program has put its own in front. False if another
// copy is busy.
bool put_back(Disposition& disposition, int signum) {
  struct sigaction now{};
  if (sys::set_signal_action(signum, nullptr, &now) < 0) return true;
  const InChain place = find_in_chain(signum, now);
  if (!place.is_known) return false;
  if (!place.is_there) return true;
  if (place.is_first) return sys::set_signal_action(signum, &disposition.found, nullptr), true;
  CopyRequest leave{.what = CopyRequest::What::replace_found, .found = disposition.found};
  return ask_copy(place.above, signum, leave);
}

// Lets a copy continue that waits for our table.
void give_way(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  sys::yield();
  lock.lock();
}

std::error_code add_loop(Signals* signals, int signum) {
  std::unique_lock lock(guard);
  Disposition& disposition = Signals::dispositions[signum];
  std::error_code error;
  while (disposition.users == 0 && !install(disposition, signum, error)) give_way(lock);
  if (error) return error;
  for (std::atomic<Signals*>& entry : disposition.loops) {
    if (entry.load() != nullptr) continue;
    ++disposition.users;
    entry.store(signals);
    return {};
  }
  return {ENOSPC, std::system_category()};
}

void remove_loop(Signals* signals, int signum) {
  std::unique_lock lock(guard);
  Disposition& disposition = Signals::dispositions[signum];
  for (std::atomic<Signals*>& entry : disposition.loops) {
    if (entry.load() == signals) entry.store(nullptr);
  }
  --disposition.users;
  while (disposition.users == 0 && !put_back(disposition, signum)) give_way(lock);
  wait_for_handlers();
}

// A thread that was inside the handler does not exist in the child. Signals that were raised and
// not yet reported are the parent's.
void settle_in_child() {
  handlers_running.store(0);
  for (Disposition& disposition : Signals::dispositions) {
    for (std::atomic<Signals*>& entry : disposition.loops) {
      if (Signals* signals = entry.load()) signals->forget_raised();
    }
  }
  guard.unlock();
}

// fork() is called with the guard locked, so that the child finds the table consistent, and the
// guard unlocked.
[[maybe_unused]] const bool registered =
    sys::at_fork([] { guard.lock(); }, [] { guard.unlock(); }, settle_in_child);

}  // namespace

std::error_code Signals::start(SignalNode& node) {
  if (!may_watch(node.signum)) return {EINVAL, std::system_category()};
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
      if (!loop_.deliver(node->head, Events::signal)) raise(signum);  // Retried in the next turn.
      node = next;
    }
  }
}

}  // namespace spate
