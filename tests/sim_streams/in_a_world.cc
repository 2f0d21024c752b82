// Runs the tests of streams again, each in a new World, whose loop replaces the system's. Linked to
// the simulated library. A test that a World cannot run asks for `in_a_world` and skips itself.
#include <gtest/gtest.h>

#include <memory>

#include "spate/sim/test_loop.h"
#include "streams/harness.h"

namespace {

// Streams in memory never enter the kernel, and a World simulates TCP as it does local sockets.
constexpr const char* kFilter = "-*/tcp:*/memory:*/tls_memory";

class InAWorld final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    world_ = std::make_unique<spate::sim::TestLoop>();
  }
  void OnTestEnd(const ::testing::TestInfo&) override { world_.reset(); }

 private:
  std::unique_ptr<spate::sim::TestLoop> world_;
};

}  // namespace

int main(int argc, char** argv) {
  spate::testing::in_a_world = true;
  GTEST_FLAG_SET(filter, kFilter);
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new InAWorld);
  return RUN_ALL_TESTS();
}
