// Starts programs.
#pragma once

#include <csignal>
#include <span>

#include "sys/descriptor.h"
#include "sys/socket_calls.h"

namespace spate::sys {

struct SpawnRequest {
  static constexpr int kInherit = -1;
  static constexpr int kNull = -2;
  static constexpr int kClosed = -3;

  const char* file;                 // A path, or a name to search in PATH.
  char* const* arguments;           // The name first, nullptr last.
  char* const* environment;         // Ends with nullptr; nullptr itself: the parent's.
  const char* directory = nullptr;  // nullptr: the parent's.
  std::span<const int> descriptors;  // Sources of its descriptors 0, 1, 2 and so on; at least 3.
  bool new_group = false;
  bool new_session = false;
};

// Returns the process, or a negated errno, also for errors of exec. The process starts with default
// signal dispositions and an empty mask, and without any other descriptor.
long spawn(const SpawnRequest& request);

// Returns whether this descriptor stays open in an executed program.
inline bool is_inherited(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

inline long kill(int pid, int signal) { return result_of(::kill(pid, signal)); }

// Kills a child, and reaps it. Does nothing to a process that is not, or no longer, a child: where
// SIGCHLD is ignored, its number may belong to another process.
void end_child(int pid);

// Opens a pipe: fds[0] is for reading, fds[1] for writing. Both are close-on-exec.
inline long open_pipe(int (&fds)[2]) {
  if (const int error = injected(SystemCall::pipe)) return -error;
  return opened_pair(new_pipe(fds), fds);
}

}  // namespace spate::sys
