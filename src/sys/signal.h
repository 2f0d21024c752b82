// Signal dispositions.
#pragma once

#include <csignal>

#include "sys/descriptor.h"

namespace spate::sys {

inline long set_signal_action(int signum, const struct sigaction* action,
                              struct sigaction* previous) {
  if (const int error = injected(SystemCall::sigaction)) return -error;
  return result_of(::sigaction(signum, action, previous));
}

}  // namespace spate::sys
