#include "net/connect/address_order.h"

#include <cstddef>

namespace spate {

std::vector<Address> by_turns(const std::vector<Address>& addresses, bool ipv6_first) {
  std::vector<Address> families[2];
  for (const Address& one : addresses) families[is_ipv6(one) == ipv6_first ? 0 : 1].push_back(one);
  std::vector<Address> ordered;
  for (std::size_t i = 0; ordered.size() < addresses.size(); ++i) {
    for (const std::vector<Address>& family : families) {
      if (i < family.size()) ordered.push_back(family[i]);
    }
  }
  return ordered;
}

}  // namespace spate
