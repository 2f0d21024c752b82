// LoopCore: a parent's loop becomes the child's.
#include "core/loop_core.h"

#include <utility>

#include "sys/process.h"

namespace spate {

// Until all is there, the loop is the parent's.
std::error_code LoopCore::after_fork() {
  leave_corridor();
  const std::uint32_t before = std::exchange(fork_generation_, sys::fork_generation());
  const std::error_code error = open_again();
  if (error) {
    fork_generation_ = before;
    return error;
  }
  resend_asyncs();
  children_.stop_all();
  paths_.after_fork();
  periodics_.after_fork();
  fork_hooks_due_ = true;
  attend();
  return {};
}

std::error_code LoopCore::open_again() {
  if (const std::error_code error = backend_->reopen()) return error;
  fds_.register_all_again();
  if (wakeup_node_.head.active != 0) fds_.stop(wakeup_node_);
  return open();
}

// A thread that was about to put its node on the stack does not exist here: what is marked as sent
// has been sent, and goes there now.
void LoopCore::resend_asyncs() {
  for (AsyncNode* node = sent_.exchange(nullptr); node != nullptr;) {
    AsyncNode* next = node->next;
    if (node->head.active == 0) node->sent.store(AsyncNode::kUnsent);
    node = next;
  }
  asyncs_.for_each([this](Node& head) {
    auto& node = *reinterpret_cast<AsyncNode*>(&head);
    if (node.sent.exchange(AsyncNode::kUnsent) == AsyncNode::kSent) send(node);
  });
}

}  // namespace spate
