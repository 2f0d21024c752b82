#include "http2/send_order.h"

#include <gtest/gtest.h>

#include <array>

namespace spate::http {
namespace {

class SendOrderTest : public ::testing::Test {
 protected:
  SendOrderTest() {
    for (StreamState& stream : streams_) stream.set(StreamState::kHasBody);
  }
  void add(bool is_incremental) {
    for (StreamState& stream : streams_) {
      stream.priority.is_incremental = is_incremental;
      order_.update(stream);
    }
  }
  // Lets the first stream send a frame. Returns its ID.
  std::int32_t send() {
    StreamState& stream = *order_.first();
    order_.note_sent(stream);
    return stream.id;
  }

  std::array<StreamState, 2> streams_{StreamState(1, nullptr, 100), StreamState(3, nullptr, 100)};
  SendOrder order_;
};

TEST_F(SendOrderTest, IncrementalStreamsTakeTurns) {
  add(true);
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(send(), 3);
  EXPECT_EQ(send(), 1);
}

TEST_F(SendOrderTest, OtherStreamsAreSentOneAfterOther) {
  add(false);
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(send(), 1);
  order_.remove(streams_[0]);
  EXPECT_EQ(send(), 3);
}

TEST_F(SendOrderTest, StreamThatCannotSendIsNotAddedAgain) {
  add(true);
  streams_[0].set(StreamState::kDeferred);
  order_.update(streams_[0]);
  order_.note_sent(streams_[0]);
  EXPECT_EQ(send(), 3);
  EXPECT_EQ(send(), 3);
}

TEST_F(SendOrderTest, UrgentStreamPrecedesOthers) {
  add(true);
  order_.set_priority(streams_[1], {.urgency = 0});
  EXPECT_EQ(send(), 3);
  EXPECT_EQ(send(), 3);
  order_.remove(streams_[1]);
  EXPECT_EQ(send(), 1);
}

}  // namespace
}  // namespace spate::http
