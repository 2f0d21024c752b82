// The hosts file: lines with an address and its names; '#' begins a comment.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "spate/net/address.h"

namespace spate {

// Returns all addresses of `name` in `text`, each once, in the file's order. Case is ignored; lines
// without an address are skipped.
std::vector<Address> addresses_in_hosts(std::string_view text, std::string_view name,
                                        std::uint16_t port);

// Returns whether two host names are equal, ignoring case and a trailing dot.
bool is_same_host(std::string_view a, std::string_view b);

}  // namespace spate
