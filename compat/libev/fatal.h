// Ends of the road: a system call that the library cannot do without has failed, or the program has
// broken the contract.
#pragma once

namespace spate::libev {

// A failed system call; errno says how. Asks the program's function (ev_set_syserr_cb), which is
// expected to mend matters before it returns; without one, says so and aborts.
void report_system_error(const char* message);

// Says what is the matter and aborts.
[[noreturn]] void abort_with(const char* message);

inline void require(bool kept, const char* message) {
  if (!kept) abort_with(message);
}

}  // namespace spate::libev
