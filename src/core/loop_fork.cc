// LoopCore: taking over a parent's loop in the child of a fork.
#include "core/loop_core.h"

#include <utility>

#include "sys/process.h"

namespace spate {

// If a step fails, the loop still counts as the parent's.
std::error_code LoopCore::after_fork() {
  leave_fast_path();
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
  request_slow_turn();
  locals_.on_fork();
  return {};
}

std::error_code LoopCore::open_again() {
  if (const std::error_code error = backend_->reopen()) return error;
  fds_.register_all_again();
  if (wakeup_node_.head.active != 0) fds_.stop(wakeup_node_);
  return open();
}

// Pushes sent nodes again: a thread that was about to push its node does not exist in the child.
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
