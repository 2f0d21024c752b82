// Fatal errors: a system call that the library needs has failed, or the program has broken the
// contract.
#pragma once

namespace spate::libev {

// Reports a failed system call; errno has the error. Calls the program's function
// (ev_set_syserr_cb), which should fix the problem before it returns; without one, prints the
// message and aborts.
void report_system_error(const char* message);

// Prints the message and aborts.
[[noreturn]] void abort_with(const char* message);

inline void require(bool kept, const char* message) {
  if (!kept) abort_with(message);
}

}  // namespace spate::libev
