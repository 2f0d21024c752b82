// Processes and threads: ids, forks, and the end of children.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// How many forks lie between the process that loaded this library and this one. Counted by the C
// library's fork(); a raw clone() is not seen.
extern std::uint32_t forks;
inline std::uint32_t fork_generation() { return forks; }

// Has these called around each fork() from now on: before it, and after it in the parent and in the
// child.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)());

// A number for the calling thread that no other living thread has.
inline std::uintptr_t thread_identity() {
  static thread_local char here;
  return reinterpret_cast<std::uintptr_t>(&here);
}

// A descriptor that becomes readable when the process ends. -ENOSYS before Linux 5.3.
inline long pidfd_open(int pid) {
  if (const int error = injected(SystemCall::pidfd_open)) return -error;
  return result_of(::syscall(SYS_pidfd_open, pid, 0));
}

// One change of exactly this child's state, without blocking and without taking it: 1 with
// waitpid()'s status in `status`, 0 if there is nothing to report, -ECHILD if there is no such
// child. take_child_change() takes it, and nothing that has come after it.
long see_child_change(int pid, bool trace, int& status);
void take_child_change(int pid, int status);

// 0 if this is a child of ours that can be waited for, -ECHILD if not; takes nothing.
long check_child(int pid);

}  // namespace spate::sys
