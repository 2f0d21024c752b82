// Functions passed to start(): they are destroyed when they can no longer be called.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "spate/net/datagram.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

class Callbacks : public ::testing::Test {
 protected:
  Callbacks() {
    auto pair = std::move(*Stream::memory_pair(*loop_));
    stream_ = std::make_unique<Stream>(std::move(pair.first));
    peer_ = std::move(pair.second);
  }
  long kept() const { return token_.use_count() - 1; }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::shared_ptr<int> token_ = std::make_shared<int>();
  std::unique_ptr<Stream> stream_;
  Stream peer_;
};

TEST_F(Callbacks, AreDestroyedWhenTheyAreReplaced) {
  for (int i = 0; i < 100; ++i) {
    auto on_data = [token = token_](Bytes bytes) { return bytes.size(); };
    EXPECT_FALSE(stream_->start({.on_data = std::move(on_data)}));
    run_turns(*loop_, 1);
  }
  EXPECT_EQ(kept(), 1);
}

// A state machine that the peer drives.
struct Machine {
  Stream stream;
  std::shared_ptr<int> token;
  int calls = 0;

  void start() {
    EXPECT_FALSE(stream.start({.on_data = [this, kept = token](Bytes bytes) {
      start();
      ++calls;
      EXPECT_NE(kept, nullptr) << "it is running";
      return bytes.size();
    }}));
  }
};

TEST_F(Callbacks, AreDestroyedWhenTheyReplaceThemselves) {
  Machine machine{std::move(*stream_), token_};
  machine.start();
  for (int i = 0; i < 100; ++i) {
    peer_.write("x");
    run_turns(*loop_, 3);
  }
  EXPECT_EQ(machine.calls, 100);
  EXPECT_EQ(kept(), 2) << "the machine's own, and that of its function";
}

// The function owns the object that contains the Stream.
TEST_F(Callbacks, AreDestroyedAfterOnClosed) {
  const std::shared_ptr<Stream> stream = std::make_shared<Stream>(std::move(*stream_));
  EXPECT_FALSE(stream->start({.on_closed = [token = token_](std::error_code) {}}));
  peer_.abort();
  run_turns(*loop_, 5);
  EXPECT_EQ(kept(), 0);
  EXPECT_FALSE(stream->is_open());
}

TEST_F(Callbacks, MayOwnTheirStream) {
  std::shared_ptr<Stream> stream = std::make_shared<Stream>(std::move(*stream_));
  const std::weak_ptr<Stream> watch = stream;
  Stream& started = *stream;
  EXPECT_FALSE(started.start({.on_closed = [owner = std::move(stream)](std::error_code) {}}));
  peer_.abort();
  run_turns(*loop_, 5);
  EXPECT_TRUE(watch.expired());
}

TEST_F(Callbacks, AreDestroyedWhenReplacedInDatagram) {
  Datagram datagram = std::move(*Datagram::create(*loop_, Address::loopback_ipv4(0)));
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(datagram.start({.on_packets = [token = token_](std::span<const Packet>) {}}));
  EXPECT_EQ(kept(), 1);
}

}  // namespace
}  // namespace spate::testing
