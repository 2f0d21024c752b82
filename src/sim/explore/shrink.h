// Finds a minimal set of numbers for which a condition holds: delta debugging (ddmin).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace spate::sim {

using Numbers = std::vector<std::uint64_t>;  // Ascending.

// `holds` must be true for `all`. Returns a set for which it is true, and false without any one of
// its numbers. After `most` calls it returns the smallest set found.
Numbers shrink(Numbers all, const std::function<bool(const Numbers&)>& holds, std::size_t most);

}  // namespace spate::sim
