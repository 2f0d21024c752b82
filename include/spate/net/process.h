// spawn(): runs a program as a child process, with Streams for its pipes.
//
// Ownership: the returned Process is the handle, with a Stream for each standard descriptor that is
// a pipe; the Streams may be moved out. Destroying it leaves the process running (unless
// ProcessOptions::kill_when_destroyed), closes its Streams, and makes no calls. The loop then reaps
// the process when it ends, but is not kept alive by it. If the loop is destroyed first, there is
// no callback, and the process is not reaped.
// Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside spawn(), when the process has
// been reaped; not all of its output may have been read by then. Inside it everything is allowed,
// destroying the Process included; the Child is valid until it returns. Until then the process
// keeps the loop alive.
//
// The child starts with default signal actions, an empty signal mask, and only descriptors 0, 1 and
// 2, besides those that ProcessOptions pass. It is started by posix_spawn(): without a copy of the
// parent's memory, and without pthread_atfork() handlers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "spate/child.h"
#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/stream.h"

namespace spate {

// The source or target of one of the child's standard descriptors.
class Stdio {
 public:
  enum class Kind : std::uint8_t { inherit, null, descriptor, pipe, output };

  // Passes on the parent's descriptor of the same number; closed if that one is closed or
  // close-on-exec.
  static Stdio inherit() { return Stdio(Kind::inherit); }
  static Stdio null() { return Stdio(Kind::null); }
  // Passes on a duplicate of `fd`, which stays the caller's.
  static Stdio descriptor(int fd) { return Stdio(Kind::descriptor, fd); }
  // Makes a pipe to a Stream of the Process.
  static Stdio pipe() { return Stdio(Kind::pipe); }
  // Uses the same file as the output, for ProcessOptions::errors only; closed if the output is.
  static Stdio output() { return Stdio(Kind::output); }

  Kind kind() const { return kind_; }
  int fd() const { return fd_; }

 private:
  explicit Stdio(Kind kind, int fd = -1) : kind_(kind), fd_(fd) {}

  Kind kind_;
  int fd_;
};

struct ProcessOptions {
  // A path if it has a slash; otherwise a name that is searched in the parent's PATH.
  std::string file{};
  std::vector<std::string> arguments{};  // Without argv[0], which is `file`.
  // Strings "NAME=value"; nullopt: the parent's environment.
  std::optional<std::vector<std::string>> environment{};
  std::string directory{};  // The working directory; a relative `file` is relative to it. Empty:
                            // the parent's.
  Stdio input = Stdio::inherit();
  Stdio output = Stdio::inherit();
  Stdio errors = Stdio::inherit();
  // Listening sockets, for Listener::inherited() in the child: its descriptors 3, 4, ... LISTEN_FDS
  // is set, and SPATE_LISTEN_PARENT to the number of this process; LISTEN_PID is unset, so other
  // libraries do not take them.
  std::vector<int> listening{};
  // Any other descriptors: the child's next ones, in this order. Duplicates of both lists are
  // passed; the descriptors stay the caller's. A simulated process gets none (ENOTSUP).
  std::vector<int> descriptors{};
  bool new_group = false;            // A new process group: no signals from the parent's terminal.
  bool new_session = false;          // A new session: no terminal.
  // Sends SIGKILL when the Process or its loop is destroyed.
  bool kill_when_destroyed = false;
};

class ChildProcess;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT ChildProcessEnd {
  void operator()(ChildProcess* process) const;
};

class SPATE_EXPORT Process {
 public:
  // See Child::exited(), exit_code(), signaled(), term_signal().
  using OnExit = Function<void(const Child& child)>;

  // Makes a Process without a process: its functions return -1, false and ESRCH.
  Process() = default;

  int pid() const;
  // True until the process is reaped.
  bool is_running() const;
  // Sends a signal to the process. Errors: ESRCH when it is not running; EINVAL; EPERM.
  std::error_code kill(int signal);

  // The parent's ends of the pipes; empty for a descriptor that is not a pipe.
  Stream input;
  Stream output;
  Stream errors;

 private:
  friend SPATE_EXPORT Result<Process> spawn(Loop& loop, const ProcessOptions& options,
                                            OnExit callback);
  std::unique_ptr<ChildProcess, ChildProcessEnd> child_;
};

// Starts a program. On an error there is no process. Errors: those of exec (ENOENT, EACCES,
// ENOEXEC, E2BIG, ...) and of changing to the directory (ENOENT, ENOTDIR, EACCES); EBADF for a
// descriptor; EAGAIN, EMFILE, ENFILE, ENOMEM; Error::loop_forked.
SPATE_EXPORT Result<Process> spawn(Loop& loop, const ProcessOptions& options,
                                   Process::OnExit callback);

}  // namespace spate
