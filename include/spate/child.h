// Child: calls back when a child process ends, or, on request, when it is stopped or continued.
//
// Works on any loop and thread. Waits for the given process only, so it never takes the status of
// another child. With pidfds (Linux 5.3) no signal is involved; without them, and for stops and
// continues, SIGCHLD is watched while needed. The end is reported once: when that callback is
// called, the watcher is inactive and the process has been reaped. An active watcher keeps its loop
// alive.
#pragma once

#include "spate/watcher.h"

namespace spate {

struct ChildNode {
  Node head;
  FdNode exit;      // core: the process descriptor, direct.
  ChildNode* next;  // core: the loop's list.
  int pid;
  int status;  // As returned by waitpid().
  bool trace;  // Also report stops and continues.
};

class Child : public Watcher<Child, ChildNode> {
 public:
  enum class Report { exit, exit_stop_continue };

  Child(Loop& loop, Delegate<Child> callback) : Watcher(loop, callback) {}
  ~Child() { stop(); }

  // Starts or restarts the watcher. `pid` is a child of this process that no other code waits for.
  // A child that has already ended is reported in the next turn. Errors: ECHILD if there is no such
  // child, EINVAL for pid < 1, EMFILE, ENOMEM.
  std::error_code start(int pid, Report report = Report::exit) {
    stop();
    node_.pid = pid;
    node_.status = -1;
    node_.trace = report == Report::exit_stop_continue;
    return loop_->start(node_);
  }
  // Stops watching. The child continues to run; when it ends, it is a zombie until something waits
  // for it.
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  int pid() const { return node_.pid; }
  // Return the status, as waitpid() does, and the results of the <sys/wait.h> macros. Valid in the
  // callback. If other code took the status first, the events include Events::error, status() is
  // -1, and all the predicates are false.
  int status() const { return node_.status; }
  bool exited() const { return node_.status >= 0 && (node_.status & 0x7f) == 0; }
  int exit_code() const { return (node_.status >> 8) & 0xff; }  // if exited()
  bool signaled() const { return node_.status >= 0 && !exited() && !stopped() && !continued(); }
  int term_signal() const { return node_.status & 0x7f; }  // if signaled()
  bool stopped() const { return (node_.status & 0xff) == 0x7f; }
  bool continued() const { return node_.status == 0xffff; }
};

}  // namespace spate
