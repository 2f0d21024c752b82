// Tests of streams, as they are, once more: each in a World of its own, whose loop stands in for
// the system. Linked to the simulated library.
#include <gtest/gtest.h>

#include <memory>

#include "spate/sim/test_loop.h"

namespace {

// Left out: what never comes to the kernel; what has descriptors from elsewhere (pipes, accept() at
// once, another process); what does not sleep until a time comes, but turns its loop until then: a
// World's time would stand; and what moves many megabytes.
constexpr const char* kFilter =
    "-*/tcp:*/memory:*/tls_memory:EndingsOfPipes.*:*NobodyListensAtAPath:*TheLoopIsDestroyed*:"
    "*ThePeerDiesWhileWe*/local:*StartedTooLate*:*ClosesWhatIsIdleForTooLong*:"
    "*HoldAfterCloseHoweverSlowly*:*StopsReadingWhenThePeer*:*CarriesMoreThanTheKernelTakes*";

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
  GTEST_FLAG_SET(filter, kFilter);
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new InAWorld);
  return RUN_ALL_TESTS();
}
