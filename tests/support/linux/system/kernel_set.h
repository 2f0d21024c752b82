// The backend whose set of descriptors the kernel keeps, and the call that opens the set.
#pragma once

#include "base/fault.h"

namespace spate::testing {

inline constexpr char kKernelSet[] = "epoll";
inline constexpr SystemCall kOpensKernelSet = SystemCall::epoll_create;

}  // namespace spate::testing
