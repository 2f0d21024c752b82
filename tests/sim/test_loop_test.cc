// A loop whose clock the test controls.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/hooks.h"
#include "spate/sim/test_loop.h"
#include "spate/timer.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::TestLoop;

TEST(SimTestLoop, SimulatedDayElapsesAtOnce) {
  TestLoop loop;
  int calls = 0;
  loop->after(24h, [&] { ++calls; });
  EXPECT_TRUE(loop.advance(24h - 1ns));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(loop.advance(1ns));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loop.now(), 24h);
}

TEST(SimTestLoop, TimersStartedByTimersFireInSameSpan) {
  TestLoop loop;
  std::vector<Nanos> times;
  struct Again {
    void run() {
      times.push_back(loop.now());
      timer.start(2h);
    }
    TestLoop& loop;
    std::vector<Nanos>& times;
    Timer timer{*loop, [this] { run(); }};
  } again{.loop = loop, .times = times};
  again.timer.start(1h);
  loop.advance(6h);
  EXPECT_EQ(times, (std::vector<Nanos>{1h, 3h, 5h}));
}

TEST(SimTestLoop, TimeAdvancesOnlyExplicitly) {
  TestLoop loop;
  const Nanos before = loop->now();
  int calls = 0;
  loop->after(1s, [&] { ++calls; });
  loop->run(Run::no_wait);
  EXPECT_EQ(loop->now(), before);
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(loop.advance(-1s));
  EXPECT_EQ(loop.now(), 0s);
}

TEST(SimTestLoop, TimersStartedAfterIdleSpanCountFromItsEnd) {
  TestLoop loop;
  loop.advance(1h);
  int calls = 0;
  loop->after(1min, [&] { ++calls; });
  loop.advance(59s);
  EXPECT_EQ(calls, 0);
  loop.advance(1s);
  EXPECT_EQ(calls, 1);
}

TEST(SimTestLoop, ServersAndClientsNeedNoHost) {
  TestLoop loop;
  auto server = must(serve<Echo>(*loop, Address::loopback_ipv4(7000)));
  EchoClient client("hello");
  client.start(*loop, server.address());
  loop.advance(1s);
  EXPECT_TRUE(client.has_all());
}

TEST(SimTestLoop, SpinningLoopIsDetected) {
  TestLoop loop;
  Idle idle(*loop, [] {});
  idle.start();
  EXPECT_FALSE(loop.advance(1s));
}

// A session that sends a message every half a minute, for a day, over many connections.
struct Beating final : StreamHandler {
  Beating(Loop& loop, const Address& server) : beat(loop, [this] { stream.write("beat"); }) {
    is_failed = static_cast<bool>(stream.connect(loop, server, *this));
    beat.start(30s, 30s);
  }
  std::size_t on_data(Bytes bytes) override {
    echoed += bytes.size();
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_failed = true; }
  Stream stream;
  Timer beat;
  bool is_failed = false;
  std::size_t echoed = 0;
};

TEST(SimTestLoop, ManyClientsSendHeartbeatsForOneHour) {
  constexpr int kMany = 100;
  constexpr std::size_t kBeats = 120;
  TestLoop loop;
  auto server = must(serve<Echo>(*loop, Address::loopback_ipv4(7000)));
  std::vector<std::unique_ptr<Beating>> all;
  for (int i = 0; i < kMany; ++i) all.push_back(std::make_unique<Beating>(*loop, server.address()));
  loop.advance(1h + 1s);
  for (const auto& one : all) {
    ASSERT_FALSE(one->is_failed);
    ASSERT_EQ(one->echoed, kBeats * 4);
  }
}

}  // namespace
}  // namespace spate::testing
