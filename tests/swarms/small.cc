// Small Worlds, thousands a second.
#include <gtest/gtest.h>

#include "swarms/small_world.h"
#include "swarms/swarm.h"

namespace spate::testing {
namespace {

TEST(SimSwarm, ASmallWorldEndsWell) { explore_swarm(200, SmallWorld::play); }

}  // namespace
}  // namespace spate::testing
