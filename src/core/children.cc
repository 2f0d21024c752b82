#include "core/children.h"

#include <cerrno>
#include <utility>

#include "core/loop_core.h"
#include "spate/time.h"
#include "sys/pidfd.h"
#include "sys/process.h"
#include "sys/signal.h"

namespace spate {

namespace {

constexpr Nanos kRefusedPeriod{20'000'000};

}  // namespace

Children::Children(LoopCore& loop) : loop_(loop) {
  child_signal_.signum = SIGCHLD;
  child_signal_.head.priority = kDirect;
  child_signal_.head.context = this;
  child_signal_.head.callback = [](void* context, Node&, Events) {
    static_cast<Children*>(context)->look_at_all();
  };
  look_again_.head.priority = kDirect;
  look_again_.head.context = this;
  look_again_.head.callback = [](void* context, Node&, Events) {
    static_cast<Children*>(context)->look_at_all();
  };
}

std::error_code Children::start(ChildNode& node) {
  if (!may_watch(node.pid)) return {EINVAL, std::system_category()};
  if (const long result = sys::check_child(node.pid); result < 0) return sys::error_code(result);
  // A process descriptor reports the end only.
  const long pidfd = node.trace ? -ENOSYS : sys::pidfd_open(node.pid);
  if (pidfd == -EMFILE || pidfd == -ENFILE || pidfd == -ENOMEM) return sys::error_code(pidfd);
  node.exit = {};
  node.exit.fd = pidfd < 0 ? -1 : static_cast<int>(pidfd);
  if (needs_signal(node)) {
    if (const std::error_code error = watch_signal()) return error;
  } else {
    node.exit.events = static_cast<std::uint32_t>(Events::read) | kFdIsNew;
    node.exit.head.priority = kDirect;
    node.exit.head.context = this;
    node.exit.head.callback = [](void* context, Node& head, Events events) {
      auto* child = reinterpret_cast<char*>(&head) - offsetof(ChildNode, exit);
      static_cast<Children*>(context)->on_exit(*reinterpret_cast<ChildNode*>(child), events);
    };
    if (!loop_.start_fd(node.exit)) {
      const sys::Descriptor closes(node.exit.fd);
      return {ENOMEM, std::system_category()};
    }
  }
  node.next = first_;
  first_ = &node;
  node.head.active = 1;
  return {};
}

// If the backend refuses a process descriptor, falls back to SIGCHLD.
void Children::on_exit(ChildNode& node, Events events) {
  if (any(events & Events::error)) {
    if (watch_signal()) {
      look_again_later();
    } else {
      const sys::Descriptor closes(std::exchange(node.exit.fd, -1));
    }
  }
  look_at(node.pid, node.trace);
}

// Used if the limit of loops that watch SIGCHLD is reached. The timer does not keep the loop alive.
void Children::look_again_later() {
  look_again_.deadline = deadline_after(loop_.now(), kRefusedPeriod).count();
  if (look_again_.head.active == 0) loop_.start_timer(look_again_);
}

void Children::stop(ChildNode& node) {
  ChildNode** link = &first_;
  while (*link != &node) link = &(*link)->next;
  *link = node.next;
  node.head.active = 0;
  if (needs_signal(node)) return unwatch_signal();
  if (node.exit.head.active != 0) loop_.stop_fd_before_close(node.exit);
  const sys::Descriptor closes(node.exit.fd);
}

void Children::stop_all() {
  while (first_ != nullptr) loop_.stop(*first_);
}

// The child may have ended before the handler was installed: check once.
std::error_code Children::watch_signal() {
  if (signal_users_ == 0) {
    if (const std::error_code error = loop_.signals().start(child_signal_)) return error;
  }
  ++signal_users_;
  loop_.signals().raise(SIGCHLD);
  return {};
}

void Children::unwatch_signal() {
  if (--signal_users_ == 0) loop_.signals().stop(child_signal_);
}

void Children::look_at_all() {
  for (ChildNode* node = first_; node != nullptr;) {
    ChildNode* next = node->next;
    // There may be several watchers of one process anywhere in the list, so reporting to the first
    // may remove the next.
    const int pid = node->pid;
    const bool trace = node->trace;
    const bool is_refused = !needs_signal(*node) && node->exit.head.active == 0;
    if (needs_signal(*node) || is_refused) {
      is_refused ? on_exit(*node, Events::error) : look_at(pid, trace);
      if (next != nullptr && next->head.active == 0) next = first_;
    }
    node = next;
  }
}

// Takes the status change only after all watchers were notified. If that fails, it stays, and is
// found again.
void Children::look_at(int pid, bool trace) {
  int status = -1;
  const long result = sys::see_child_change(pid, trace, status);
  if (result == 0) return;
  if (result != -EINTR && report(pid, result < 0, status)) {
    sys::take_child_change(pid, status);
  } else {
    loop_.signals().raise(SIGCHLD);
  }
}

// `lost`: other code has taken the status. False when memory ran out for one of the watchers.
bool Children::report(int pid, bool lost, int status) {
  const bool lives_on = !lost && ((status & 0xff) == 0x7f || status == 0xffff);
  for (ChildNode* node = first_; node != nullptr;) {
    ChildNode* next = node->next;
    if (node->pid == pid && (!lives_on || node->trace)) {
      node->status = status;
      const Events events = lost ? Events::child | Events::error : Events::child;
      if (!loop_.deliver(node->head, events)) return false;
      if (!lives_on) loop_.retire(*node);
    }
    node = next;
  }
  return true;
}

}  // namespace spate
