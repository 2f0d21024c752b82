// Random programs of a Client and a Server, of HTTP/1 and HTTP/2, which do whatever client.h,
// call.h, websocket.h, exchange.h and server.h allow, in and out of callbacks, many calls, tunnels
// and WebSockets at once, over connections in memory and over sockets, directly and through a
// Gateway; and what those promise: answers, messages and bytes come as they were given,
// each handler is told things in their order and its end once, and nothing behind it; who lets go
// hears nothing; all comes to an end without a deadline's help once nobody holds it up; nothing is
// left.
//
// SPATE_SEED=<number> does one alone, SPATE_SEEDS=<number> has that many done.
#include <gtest/gtest.h>

#include "http/pair/pair_world.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

class RandomPair : public ::testing::TestWithParam<int> {};

TEST_P(RandomPair, BreaksNoPromise) {
  for (const std::uint64_t seed : seeds(60)) {
    PairWorld(seed * 8 + static_cast<std::uint64_t>(GetParam())).run(600);
    ASSERT_FALSE(HasFailure()) << "SPATE_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomPair, ::testing::Range(0, 4));

}  // namespace
}  // namespace spate::testing
