// Processes and threads: ids, forks, and the end of children.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// How many forks this process is away from the one that loaded the library. Counted in fork()
// handlers; a raw clone() is not seen.
extern std::uint32_t forks;
inline std::uint32_t fork_generation() { return forks; }

// pthread_atfork(): called before each fork(), and after it in the parent and in the child.
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

// Looks at one state change of exactly this child, without blocking or reaping: 1 with waitpid()'s
// status in `status`, 0 if there is none, -ECHILD if there is no such child. take_child_change()
// reaps it, and no later change.
long see_child_change(int pid, bool trace, int& status);
void take_child_change(int pid, int status);

// 0 if this is a child of ours that can be waited for, -ECHILD if not. Does not reap.
long check_child(int pid);

}  // namespace spate::sys
