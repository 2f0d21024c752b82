// Counts the calls of operator new in this program, on all threads. 0 with the address sanitizer,
// which has its own.
#pragma once

#include <cstdint>

namespace spate::testing {

std::uint64_t calls_of_new();

}  // namespace spate::testing
