// A port for a program that a test starts.
#pragma once

#include <cstdint>
#include <random>

#include "spate/loop.h"
#include "spate/net/listener.h"

namespace spate::testing {

// Returns a port that was free on every address a moment ago. It is below the ephemeral range, from
// which sockets of other tests get theirs.
inline std::uint16_t free_port(Loop& loop) {
  std::random_device source;
  for (;;) {
    const auto port = static_cast<std::uint16_t>(10'000 + source() % 20'000);
    if (Listener::create(loop, Address::any_ipv6(port), [](Stream, const Address&) {})) return port;
  }
}

}  // namespace spate::testing
