// Starting programs.
#pragma once

#include <csignal>

#include "sys/descriptor.h"

namespace spate::sys {

struct SpawnRequest {
  static constexpr int kInherit = -1;
  static constexpr int kNull = -2;

  const char* file;                 // A path, or a name to be looked for in PATH.
  char* const* arguments;           // Its name first, nullptr last.
  char* const* environment;         // nullptr last; nullptr itself: ours.
  const char* directory = nullptr;  // nullptr: ours.
  int descriptors[3] = {kInherit, kInherit, kInherit};  // What its 0, 1 and 2 are.
  bool new_group = false;
  bool new_session = false;
};

// The process, or why it could not be started, exec included. It starts with default signal
// dispositions and an empty mask, and without descriptors above 2.
long spawn(const SpawnRequest& request);

inline long kill(int pid, int signal) { return result_of(::kill(pid, signal)); }

// Kills a child of ours, and reaps it.
void end_child(int pid);

// fds[0] is for reading, fds[1] for writing. Both are close-on-exec.
inline long open_pipe(int (&fds)[2]) {
  if (const int error = injected(SystemCall::pipe)) return -error;
  return result_of(::pipe2(fds, O_CLOEXEC));
}

}  // namespace spate::sys
