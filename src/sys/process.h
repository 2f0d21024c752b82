// Processes and threads: ids, forks, and the end of children.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#ifdef __APPLE__
#include <crt_externs.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spate/export.h"
#include "sys/descriptor.h"

#ifndef __APPLE__
extern "C" char** environ;  // Only some C libraries declare it.
#endif

namespace spate::sys {

// The number of forks between this process and the one that loaded the library. Counted in fork()
// handlers; a raw clone() is not noticed.
SPATE_EXPORT extern std::uint32_t forks;
inline std::uint32_t fork_generation() { return forks; }

inline int process_id() { return ::getpid(); }

// Returns an environment variable; empty if it is unset. Valid until the environment is changed.
inline std::string_view environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Returns all variables, up to nullptr. Valid as above.
#ifdef __APPLE__
inline char* const* environment() { return *::_NSGetEnviron(); }
#else
inline char* const* environment() { return ::environ; }
#endif

// pthread_atfork(): the functions are called before each fork(), and after it in the parent and in
// the child.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)());

// Returns a number for the calling thread that is unique among living threads.
inline std::uintptr_t thread_identity() {
  static thread_local char here;
  return reinterpret_cast<std::uintptr_t>(&here);
}

// Reads one state change of exactly this child, without blocking or reaping. Returns 1 with
// waitpid()'s status in `status`, 0 if there is no change, -ECHILD if there is no such child.
// take_child_change() takes this change, and no later one.
long see_child_change(int pid, bool trace, int& status);
void take_child_change(int pid, int status);

// Returns 0 if this is a child of the process that can be waited for, otherwise -ECHILD. Does not
// reap.
long check_child(int pid);

}  // namespace spate::sys
