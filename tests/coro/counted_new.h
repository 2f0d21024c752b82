// How often this program has called operator new, on all threads. 0 with the address sanitizer,
// which has its own.
#pragma once

#include <cstdint>

namespace spate::testing {

std::uint64_t calls_of_new();

}  // namespace spate::testing
