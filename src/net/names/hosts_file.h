// The hosts file: lines of an address and its names; `#` begins a comment.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "spate/net/address.h"

namespace spate {

// All addresses of `name` in `text`, each once, in the file's order. Case does not matter; lines
// without an address are skipped.
std::vector<Address> addresses_in_hosts(std::string_view text, std::string_view name,
                                        std::uint16_t port);

// Whether two host names are equal. Case and a trailing dot do not matter.
bool is_same_host(std::string_view a, std::string_view b);

}  // namespace spate
