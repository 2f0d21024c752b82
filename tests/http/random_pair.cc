// Random programs of a Client and a Server, of HTTP/1 and HTTP/2, which do everything that
// client.h, call.h, websocket.h, exchange.h and server.h allow, in and out of callbacks: many
// calls, tunnels and WebSockets at once, over connections in memory and over sockets, directly and
// through a Gateway. They check that responses, messages and bytes arrive unchanged; that each
// handler's callbacks come in order, the last one once, and none after it or after its object was
// released; that everything ends without a deadline once nothing is paused; and that nothing is
// left.
//
// SPATE_SEED=<number> runs one alone, SPATE_SEEDS=<number> sets how many.
#include <gtest/gtest.h>

#include "http/pair/pair_world.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

class RandomPair : public ::testing::TestWithParam<int> {};

TEST_P(RandomPair, KeepsInvariants) {
  for (const std::uint64_t seed : seeds(60)) {
    PairWorld(seed * 8 + static_cast<std::uint64_t>(GetParam())).run(600);
    ASSERT_FALSE(HasFailure()) << "SPATE_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomPair, ::testing::Range(0, 4));

}  // namespace
}  // namespace spate::testing
