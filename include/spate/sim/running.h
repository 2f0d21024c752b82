// Running: a process that a host's code has started with spawn(), seen from inside. What the
// program does is the test's: Host::program().
//
//   host.program("upper", [](sim::Running& running) { return std::make_unique<Upper>(running); });
//
// Ownership: the World's, until exit() or die() have been called, or the host crashes; what the
// program has returned is destroyed just before it. Not inside exit(): in the next turn of loop().
// Threads: the World's.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "spate/export.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::sim {

class Processes;

class SPATE_EXPORT Running {
 public:
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  int pid() const { return pid_; }
  // The host's. Its callbacks are the process's.
  Loop& loop() const { return loop_; }
  // Its name first.
  const std::vector<std::string>& arguments() const { return arguments_; }

  // What its descriptors 0, 1 and 2 are, not started; empty where it was given none that the World
  // knows. They may be moved away, and are closed with the process else.
  Stream input;
  Stream output;
  Stream errors;

  bool is_stopped() const;

  // It ends: its parent is told, once. What it has written arrives. Further calls do nothing.
  void exit(int code) { end((code & 0xff) << 8); }
  // The same by a signal.
  void die(int signum) { end(signum & 0x7f); }
  // What it does with signals that kill() sends, but for SIGKILL and SIGSTOP. Without, those that
  // end a process end it, and those that stop one stop it.
  //
  // While it is stopped, its parent is told so, and signals wait until SIGCONT. Its code is called
  // by the host's loop as ever, since it has no thread of its own: what is to stand still then
  // looks at is_stopped().
  void on_signal(std::function<void(int signum)> handler) { handler_ = std::move(handler); }

 private:
  friend Processes;
  Running(Processes& processes, Loop& loop, int pid, const std::vector<std::string>& arguments)
      : processes_(processes), loop_(loop), pid_(pid), arguments_(arguments) {}
  void end(int status);

  Processes& processes_;
  Loop& loop_;
  const int pid_;
  const std::vector<std::string> arguments_;
  std::function<void(int)> handler_;
};

}  // namespace spate::sim
