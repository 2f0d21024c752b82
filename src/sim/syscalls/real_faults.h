// Faults on real sockets, for programs without a World: SPATE_FAULTS and SPATE_SEED.
#pragma once

#include <memory>
#include <string>

#include "sim/syscalls/call_faults.h"

namespace spate::sim {

// The request in the environment. `text` and `seed` are the values of the variables, or nullptr.
struct RealFaults {
  std::unique_ptr<CallFaults> faults;  // nullptr: no faults.
  std::string notice;                  // A line for stderr; empty: none.
  bool is_mistaken = false;            // `notice` describes the mistake.
};
// `is_privileged`: the program has more rights than its user (AT_SECURE), so the variables are
// ignored.
RealFaults real_faults(const char* text, const char* seed, bool is_privileged);

// Returns the faults of this process, read once; a mistake ends the program.
CallFaults* faults_of_process();

}  // namespace spate::sim
