// The balancing modes of Workers, as parameters of tests.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "spate/net/workers.h"

namespace spate {

inline void PrintTo(Balance balance, std::ostream* out) {
  static constexpr const char* kNames[] = {"reuse_port", "round_robin", "least_connections",
                                           "peer_hash"};
  *out << kNames[static_cast<int>(balance)];
}

namespace testing {

inline auto all_balances() {
  return ::testing::Values(Balance::reuse_port, Balance::round_robin, Balance::least_connections,
                           Balance::peer_hash);
}

}  // namespace testing
}  // namespace spate
