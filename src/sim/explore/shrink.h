// The smallest set of numbers for which something still holds: delta debugging (ddmin).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace spate::sim {

using Numbers = std::vector<std::uint64_t>;  // In ascending order.

// `holds` is true of `all`, and of what is returned: with any one number less it is not, unless
// it was asked `most` times, when that is what there was.
Numbers shrink(Numbers all, const std::function<bool(const Numbers&)>& holds, std::size_t most);

}  // namespace spate::sim
