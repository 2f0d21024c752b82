// Faults on real sockets, of a program that has no World: SPATE_FAULTS and SPATE_SEED.
#pragma once

#include <memory>
#include <string>

#include "sim/calls/call_faults.h"

namespace spate::sim {

// What the environment asks for. `text` and `seed` are the values of the variables, or nullptr.
struct RealFaults {
  std::unique_ptr<CallFaults> faults;  // None: there is nothing to fail.
  std::string notice;                  // A line for stderr; empty: none.
  bool is_mistaken = false;            // `notice` says how.
};
// `is_privileged`: the program has more rights than its user (AT_SECURE), who must not command it.
RealFaults real_faults(const char* text, const char* seed, bool is_privileged);

// Of this process, read once; a mistake ends the program.
CallFaults* faults_of_process();

}  // namespace spate::sim
