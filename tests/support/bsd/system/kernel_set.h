// The backend whose set of descriptors the kernel keeps, and the call that opens the set.
#pragma once

#include "base/fault.h"

namespace spate::testing {

inline constexpr char kKernelSet[] = "kqueue";
inline constexpr SystemCall kOpensKernelSet = SystemCall::kqueue;

}  // namespace spate::testing
