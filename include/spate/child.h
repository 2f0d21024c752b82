// Child: calls back when a child process ends, or, on request, when it is stopped or continued.
//
// Works on any loop and thread. Waits for exactly the process it was given and so never takes
// another one's status away from whoever waits for it. With a kernel that has process descriptors
// (Linux 5.3) no signal is involved; without, and for stops and continues, SIGCHLD is watched while
// it is needed. The end is reported once: the watcher is inactive when that callback is called, and
// the process has been reaped. An active watcher keeps its loop alive.
#pragma once

#include "spate/watcher.h"

namespace spate {

struct ChildNode {
  Node head;
  FdNode exit;      // core: the process descriptor, direct.
  ChildNode* next;  // core: the loop's list.
  int pid;
  int status;  // As waitpid() gives it.
  bool trace;  // Stops and continues too.
};

class Child : public Watcher<Child, ChildNode> {
 public:
  enum class Report { exit, exit_stop_continue };

  Child(Loop& loop, Delegate<Child> callback) : Watcher(loop, callback) {}
  ~Child() { stop(); }

  // `pid`: a child of this process that nobody else waits for. Starts, anew if active. A child that
  // has ended already is reported in the next turn. Errors: ECHILD when there is no such child,
  // EINVAL for pid < 1, EMFILE, ENOMEM.
  std::error_code start(int pid, Report report = Report::exit) {
    stop();
    node_.pid = pid;
    node_.status = -1;
    node_.trace = report == Report::exit_stop_continue;
    return loop_->start(node_);
  }
  // The child runs on, and becomes a zombie when it ends, until somebody waits for it.
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  int pid() const { return node_.pid; }
  // In the callback: the status as waitpid() gives it (for the macros of <sys/wait.h>), and what
  // they would say. If somebody else took the status away, the events carry Events::error and the
  // status is -1, which is none of these.
  int status() const { return node_.status; }
  bool exited() const { return node_.status >= 0 && (node_.status & 0x7f) == 0; }
  int exit_code() const { return (node_.status >> 8) & 0xff; }  // if exited()
  bool signaled() const { return node_.status >= 0 && !exited() && !stopped() && !continued(); }
  int term_signal() const { return node_.status & 0x7f; }  // if signaled()
  bool stopped() const { return (node_.status & 0xff) == 0x7f; }
  bool continued() const { return node_.status == 0xffff; }
};

}  // namespace spate
