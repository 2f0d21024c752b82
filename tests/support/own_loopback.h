// A loopback address that no other process uses. Otherwise another process's test that connects to
// a closed port might find a listener of ours there.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "spate/net/address.h"

namespace spate::testing {

// Returns an address in 127.64.0.0/10, derived from the ID of the first process that calls it.
inline std::uint32_t own_loopback() {
  static const std::uint32_t own =
      0x7f400000u | (static_cast<std::uint32_t>(::getpid()) & 0x3fffff);
  return own;
}

inline std::string own_loopback_text() {
  const std::uint32_t own = own_loopback();
  return std::to_string(own >> 24) + "." + std::to_string(own >> 16 & 255) + "." +
         std::to_string(own >> 8 & 255) + "." + std::to_string(own & 255);
}

inline Address own_address(std::uint16_t port) {
  return *Address::parse(own_loopback_text() + ":" + std::to_string(port));
}

}  // namespace spate::testing
