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

// The process, or why it could not be started, exec included. Signals are as at the beginning in
// it, and beyond 2 it has no descriptors.
long spawn(const SpawnRequest& request);

inline long kill(int pid, int signal) { return result_of(::kill(pid, signal)); }

// Ends a child of ours, and waits until it has ended.
void end_child(int pid);

// What is written to the second is read from the first. Both are close-on-exec.
inline long open_pipe(int (&fds)[2]) {
  if (const int error = injected(SystemCall::pipe)) return -error;
  return result_of(::pipe2(fds, O_CLOEXEC));
}

}  // namespace spate::sys
