// Small Worlds, thousands a second.
#include <gtest/gtest.h>

#include "swarms/small_world.h"
#include "swarms/swarm.h"

namespace spate::testing {
namespace {

SPATE_SWARM(ASmallWorldEndsWell, 1000, SmallWorld::play)

}  // namespace
}  // namespace spate::testing
