// Children: the child processes that one loop waits for, each by its own process descriptor, or all
// by SIGCHLD where those are unavailable.
#pragma once

#include <system_error>

#include "spate/child.h"
#include "spate/layer/node.h"
#include "spate/signal.h"

namespace spate {

class LoopCore;

class Children {
 public:
  explicit Children(LoopCore& loop);
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // A group of processes, or any child, cannot be watched.
  static bool may_watch(int pid) { return pid > 0; }
  std::error_code start(ChildNode& node);
  void stop(ChildNode& node);
  void stop_all();
  template <class F>
  void for_each(const F& show) const {
    for (ChildNode* node = first_; node != nullptr; node = node->next) show(*node);
  }

 private:
  static bool needs_signal(const ChildNode& node) { return node.exit.fd < 0; }

  void on_exit(ChildNode& node, Events events);
  std::error_code watch_signal();
  void unwatch_signal();
  void look_again_later();
  void look_at(int pid, bool trace);
  void look_at_all();
  bool report(int pid, bool lost, int status);

  LoopCore& loop_;
  ChildNode* first_ = nullptr;
  SignalNode child_signal_{};
  TimerNode look_again_{};  // For children for which neither a descriptor nor SIGCHLD can be
                            // watched.
  int signal_users_ = 0;
};

}  // namespace spate
