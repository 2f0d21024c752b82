// Running: a process that a host's code started with spawn(), seen from inside. The test defines
// its behaviour: Host::program().
//
//   host.program("upper", [](sim::Running& running) { return std::make_unique<Upper>(running); });
//
// Ownership: the World's, until exit() or die() was called, or the host crashes. The object that
// the program returned is destroyed just before it. exit() does not destroy it directly: this
// happens in the next turn of loop().
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
  // Returns the host's loop. Callbacks set up by the process are those of the process.
  Loop& loop() const { return loop_; }
  // Returns the arguments, beginning with its name.
  const std::vector<std::string>& arguments() const { return arguments_; }

  // Its descriptors 0, 1 and 2, not started; empty for one that is not a descriptor of the World.
  // They may be moved out; otherwise they are closed with the process.
  Stream input;
  Stream output;
  Stream errors;

  bool is_stopped() const;

  // Ends the process with a status, and reports this to the parent once. Its output is delivered.
  // Further calls have no effect.
  void exit(int code) { end((code & 0xff) << 8); }
  // Ends the process as by a signal. Otherwise as exit().
  void die(int signum) { end(signum & 0x7f); }
  // Sets a handler for signals sent by kill(), except SIGKILL and SIGSTOP. Without it, signals have
  // their default actions of ending or stopping the process.
  //
  // Stopping is reported to the parent, and further signals wait until SIGCONT. The host's loop
  // still calls the code of a stopped process, because the process has no separate thread: code
  // that must stand still checks is_stopped().
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
