// Receiving from one of several channels or a mailbox, with a deadline or until stopped:
// when_any(), with_deadline() and until_stop() over receive operations. A random program of them:
// each value arrives once, in the order of its channel, whichever operations are cancelled or
// destroyed meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "spate/coro/channel.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "tests/coro/crowd.h"
#include "tests/coro/mark.h"
#include "tests/support/random.h"
#include "tests/support/scripted.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

// A channel or mailbox whose values are 1, 2, ... in order.
struct Source {
  // Called by each receiver, at once.
  void comes(std::optional<int> value) {
    ASSERT_TRUE(value) << "nobody has closed it";
    EXPECT_EQ(*value, received + 1) << "lost, doubled, or out of order";
    received = *value;
  }

  int sent = 0;
  int received = 0;
};

class Selecting {
 public:
  explicit Selecting(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act();
      EXPECT_FALSE(loop().run(Run::no_wait));
      scripted_.clock.advance(Nanos{random_.span(1'000'000)});
    }
    crowd_.end();
    drain();
    EXPECT_EQ(one_.received, one_.sent);
    EXPECT_EQ(two_.received, two_.sent);
    EXPECT_EQ(mail_.received, mail_.sent);
  }
  int given_up() const { return given_up_; }
  int received() const { return one_.received + two_.received + mail_.received; }

 private:
  Loop& loop() { return *scripted_.loop; }

  void act() {
    switch (random_.below(6)) {
      case 0:
        if (live_ < 8) crowd_.any().spawn(receives());
        return;
      case 1:
        if (random_.one_in(4)) crowd_.disturb_any();
        return;
      case 2:
        if (ones_.try_send(one_.sent + 1)) ++one_.sent;
        return;
      case 3:
        if (twos_.try_send(two_.sent + 1)) ++two_.sent;
        return;
      case 4:
        if (live_ < 8) crowd_.any().spawn(sends());
        return;
      default:
        if (mailbox_.post(mail_.sent + 1)) ++mail_.sent;
        return;
    }
  }
  void drain() {
    while (const std::optional<int> value = ones_.try_receive()) one_.comes(value);
    while (const std::optional<int> value = twos_.try_receive()) two_.comes(value);
    coro::Scope scope(loop());
    scope.spawn(fetch_all());
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(loop().run(Run::no_wait));
  }
  Task<void> fetch_all() {
    for (;;) {
      const std::optional<int> value = co_await mailbox_.receive();
      mail_.comes(value);
    }
  }

  // ---- tasks

  Task<int> patience() {
    const Nanos time{random_.span(500'000)};
    co_await coro::sleep(time);
    co_return 0;
  }
  Task<std::optional<int>> from_ones() { co_return co_await ones_.receive(); }
  Task<std::optional<int>> from_twos() { co_return co_await twos_.receive(); }
  Task<std::optional<int>> from_mail() { co_return co_await mailbox_.receive(); }

  Task<void> receives() {
    const Mark mark(&live_);
    for (;;) {
      const std::size_t kind = random_.below(4);
      if (kind == 0) {
        const auto first =
            co_await coro::when_any(from_ones(), from_twos(), from_mail(), patience());
        if (first.index() == 0) one_.comes(std::get<0>(first));
        if (first.index() == 1) two_.comes(std::get<1>(first));
        if (first.index() == 2) mail_.comes(std::get<2>(first));
        if (first.index() == 3) ++given_up_;
      } else if (kind == 1) {
        const Nanos time{random_.span(500'000)};
        const Result<std::optional<int>> value = co_await coro::with_deadline(time, from_ones());
        if (value) one_.comes(*value);
        if (!value) ++given_up_;
      } else if (kind == 2) {
        const Result<std::optional<int>> value = co_await coro::until_stop(twos_.receive());
        if (!value) co_return;
        two_.comes(*value);
      } else {
        const Result<std::optional<int>> value = co_await coro::until_stop(mailbox_.receive());
        if (!value) co_return;
        mail_.comes(*value);
      }
    }
  }
  // A value that was not sent is sent by the next task, so only one sends at a time.
  Task<void> sends() {
    const Mark mark(&live_);
    const coro::Mutex::Lock lock(co_await sending_.lock());
    for (;;) {
      const bool is_sent = co_await send_one();
      EXPECT_TRUE(is_sent);
    }
  }
  Task<bool> send_one() {
    const bool is_sent = co_await twos_.send(two_.sent + 1);
    ++two_.sent;
    co_return is_sent;
  }

  Random random_;
  ScriptedLoop scripted_;
  Crowd crowd_{loop(), scripted_.clock, random_};
  coro::Channel<int> ones_{2};
  coro::Channel<int> twos_{1};
  coro::Mailbox<int> mailbox_{loop(), 2};
  coro::Mutex sending_;
  Source one_;
  Source two_;
  Source mail_;
  int given_up_ = 0;
  int live_ = 0;
};

TEST(CoroSelect, DeliversEachValueOnceDespiteCancellations) {
  for (const std::uint64_t seed : seeds(30)) {
    SCOPED_TRACE(seed);
    Selecting program(seed);
    program.run(1500);
    EXPECT_GT(program.given_up(), 10);
    EXPECT_GT(program.received(), 100);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace spate::testing
