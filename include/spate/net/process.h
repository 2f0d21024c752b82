// spawn(): starts a program as a child process, talks to it over Streams, and tells how it ended.
//
// Ownership: the Process that is returned is the owner's handle, with the Streams of those standard
// descriptors that are pipes; these may be moved out of it. Destroying it leaves the process
// running (ProcessOptions::kill_when_destroyed ends it), closes the Streams that are still in it,
// and nobody is called; the loop reaps the process when it ends, and is not kept alive by it. The
// loop may be destroyed first: then nobody is called, nor is the process reaped.
// Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside spawn(), when the process has
// ended and been reaped; its output may not all have been read then. Everything is allowed inside,
// destroying the Process included; the Child that it is shown is there until it returns. Until then
// the process keeps the loop alive.
//
// In the child all signals have their default action and none is blocked; of our descriptors it has
// 0, 1 and 2 alone. It is started without a copy of our memory, and no function that was given to
// pthread_atfork() is called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "spate/child.h"
#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/stream.h"

namespace spate {

// Where one of a child's standard descriptors leads.
class Stdio {
 public:
  enum class Kind : std::uint8_t { inherit, null, descriptor, pipe, output };

  // Where ours of the same number does; nowhere if that is closed, or to be closed on exec.
  static Stdio inherit() { return Stdio(Kind::inherit); }
  static Stdio null() { return Stdio(Kind::null); }
  // It gets a duplicate; `fd` stays the caller's.
  static Stdio descriptor(int fd) { return Stdio(Kind::descriptor, fd); }
  // To a Stream of the Process's.
  static Stdio pipe() { return Stdio(Kind::pipe); }
  // For ProcessOptions::errors only: where the output does.
  static Stdio output() { return Stdio(Kind::output); }

  Kind kind() const { return kind_; }
  int fd() const { return fd_; }

 private:
  explicit Stdio(Kind kind, int fd = -1) : kind_(kind), fd_(fd) {}

  Kind kind_;
  int fd_;
};

struct ProcessOptions {
  // A path if there is a slash in it, else a name that is looked for in our PATH.
  std::string file{};
  std::vector<std::string> arguments{};  // After its own name, which is `file`.
  // "NAME=value"; none: ours.
  std::optional<std::vector<std::string>> environment{};
  std::string directory{};  // To start in, and where a relative path counts from; empty: ours.
  Stdio input = Stdio::inherit();
  Stdio output = Stdio::inherit();
  Stdio errors = Stdio::inherit();
  bool new_group = false;    // It leads a process group of its own: no signal from our terminal.
  bool new_session = false;  // It leads a session, and a group: it has no terminal at all.
  bool kill_when_destroyed = false;  // With SIGKILL, if it runs when its Process goes.
};

class ChildProcess;

// Lets go of a child. In the library, so that programs may be compiled with RTTI and it without.
struct SPATE_EXPORT ChildProcessEnd {
  void operator()(ChildProcess* process) const;
};

class SPATE_EXPORT Process {
 public:
  // Told by how it ended: Child::exited(), exit_code(), signaled(), term_signal().
  using OnExit = std::move_only_function<void(const Child& child)>;

  // No process: its functions answer -1, false and ESRCH.
  Process() = default;

  int pid() const;
  // It has not been reaped yet.
  bool is_running() const;
  // Sends it a signal. Errors: ESRCH when it is not running; EINVAL; EPERM.
  std::error_code kill(int signal);

  // What the child reads as its input, and writes as its output and errors. Those that are no pipes
  // are empty.
  Stream input;
  Stream output;
  Stream errors;

 private:
  friend SPATE_EXPORT Result<Process> spawn(Loop& loop, const ProcessOptions& options,
                                            OnExit callback);
  std::unique_ptr<ChildProcess, ChildProcessEnd> child_;
};

// Starts a program. Errors, with which there is no process: of finding and starting it ENOENT,
// EACCES, ENOEXEC, E2BIG, ...; ENOENT, ENOTDIR, EACCES also for the directory; EBADF for a
// descriptor; EAGAIN, EMFILE, ENFILE, ENOMEM; Error::loop_forked.
SPATE_EXPORT Result<Process> spawn(Loop& loop, const ProcessOptions& options,
                                   Process::OnExit callback);

}  // namespace spate
