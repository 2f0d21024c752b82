// The hosts file: lines of an address and the names it has, `#` before a remark.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "spate/net/address.h"

namespace spate {

// All addresses that `name` has in `text`, each once, in the order in which they stand there. Upper
// and lower case are the same, and lines without an address are passed over.
std::vector<Address> addresses_in_hosts(std::string_view text, std::string_view name,
                                        std::uint16_t port);

// Whether two names are the same host: upper and lower case do not matter, nor does a dot at the
// end.
bool is_same_host(std::string_view a, std::string_view b);

}  // namespace spate
