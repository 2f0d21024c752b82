#include "net/connect/connect_race.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/fault.h"
#include "sys/socket.h"
#include "tests/support/scripted.h"

namespace spate {
namespace {

using namespace std::chrono_literals;

// In simulated time: an attempt is not answered until the test says so.
class ConnectRaceTest : public ::testing::Test {
 protected:
  ConnectRaceTest() {
    const Address any = Address::any_ipv6(0);
    EXPECT_EQ(sys::bind(listening_.get(), any.data(), any.size()), 0);
    EXPECT_EQ(sys::listen(listening_.get(), 100), 0);
    sys::SystemAddress system;
    EXPECT_EQ(sys::local_address(listening_.get(), system), 0);
    port_ = Address::from_system(&system.storage, system.size)->port();
  }

  Address ipv4() const { return Address::loopback_ipv4(port_); }
  Address ipv6() const { return Address::loopback_ipv6(port_); }

  std::unique_ptr<ConnectRace> race(const ConnectOptions& options = {}) {
    return std::make_unique<ConnectRace>(
        loop_,
        [this](Result<sys::Descriptor> socket) {
          ++results_;
          error_ = socket ? std::error_code() : socket.error();
          sys::SystemAddress peer;
          if (socket && sys::peer_address(socket->get(), peer) >= 0)
            peer_ = *Address::from_system(&peer.storage, peer.size);
        },
        options);
  }
  void begin(ConnectRace& race) {
    race.begin();
    note_attempts();
  }
  void turn() {
    loop_.run(Run::once);
    note_attempts();
  }
  void note_attempts() {
    const std::uint64_t attempts = plan_.calls(SystemCall::connect);
    if (std::exchange(attempts_, attempts) < attempts) tried_.push_back(loop_.now() - start_);
  }
  // Returns the descriptors that the backend was asked to watch, in order.
  std::vector<int> sockets() const {
    std::vector<int> fds;
    for (const auto& change : scripted_.backend->changes) {
      if (any(change.after)) fds.push_back(change.fd);
    }
    return fds;
  }
  std::string families() const {
    std::string text;
    for (const int fd : sockets()) {
      sys::SystemAddress system;
      sys::local_address(fd, system);
      text += system.storage.ss_family == AF_INET6 ? '6' : '4';
    }
    return text;
  }
  void answer(int fd) {
    scripted_.backend->report(fd, Events::write);
    turn();
  }

  testing::ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
  Nanos start_ = loop_.now();
  FaultPlan plan_;
  FaultScope scope_{plan_};
  sys::Descriptor listening_{sys::open_socket(AF_INET6, SOCK_STREAM)};
  std::uint16_t port_ = 0;
  std::uint64_t attempts_ = 0;
  std::vector<Nanos> tried_;
  std::error_code error_;
  Address peer_;
  int results_ = 0;
};

using Times = std::vector<Nanos>;

TEST_F(ConnectRaceTest, NextAttemptStartsAfterEachDelayWithoutEndingOthers) {
  const auto race = this->race();
  race->add({ipv6(), ipv4(), ipv4()});
  begin(*race);
  while (tried_.size() < 3) turn();
  EXPECT_EQ(tried_, (Times{0ms, 250ms, 500ms}));
  loop_.run(Run::no_wait);
  EXPECT_EQ(families(), "644");
  EXPECT_EQ(loop_.active_count(), 3);
  answer(sockets().front());
  EXPECT_EQ(results_, 1);
  EXPECT_EQ(peer_, ipv6());
  loop_.run(Run::no_wait);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(ConnectRaceTest, NextAddressIsTriedAtOnceAfterFailure) {
  const auto race = this->race();
  Address nobody = ipv4();
  listening_ = sys::Descriptor();
  race->add({nobody, ipv4(), ipv4()});
  begin(*race);
  loop_.run(Run::no_wait);
  scripted_.clock.advance(100ms);
  answer(sockets().front());
  EXPECT_EQ(tried_, (Times{0ms, 100ms}));
  turn();
  // The delay is measured from the last attempt, not from the first.
  EXPECT_EQ(tried_, (Times{0ms, 100ms, 350ms}));
}

TEST_F(ConnectRaceTest, AttemptsAreAtLeastTenMillisecondsApart) {
  const auto race = this->race({.attempt_delay = 0ms});
  race->add({ipv4(), ipv4(), ipv4()});
  begin(*race);
  while (tried_.size() < 3) turn();
  EXPECT_EQ(tried_, (Times{0ms, 10ms, 20ms}));
}

TEST_F(ConnectRaceTest, LateAddressesAlternateWithRemainingOnes) {
  const auto race = this->race();
  race->add_by_turns({ipv4(), ipv4(), ipv4()});
  begin(*race);
  race->add_by_turns({ipv6(), ipv6()});
  while (tried_.size() < 5) turn();
  EXPECT_EQ(tried_, (Times{0ms, 250ms, 500ms, 750ms, 1000ms}));
  loop_.run(Run::no_wait);
  EXPECT_EQ(families(), "46464");
}

TEST_F(ConnectRaceTest, LateAddressWaitsForAttemptDelay) {
  const auto race = this->race();
  race->add({ipv4()});
  begin(*race);
  turn();
  scripted_.clock.advance(100ms);
  loop_.update_now();
  race->add({ipv4()});
  while (tried_.size() < 2) turn();
  EXPECT_EQ(tried_, (Times{0ms, 250ms}));
}

TEST_F(ConnectRaceTest, PreferredFamilyIsTriedFirst) {
  const auto race = this->race({.ipv6_first = false});
  race->add_by_turns({ipv6(), ipv6(), ipv4()});
  begin(*race);
  while (tried_.size() < 3) turn();
  loop_.run(Run::no_wait);
  EXPECT_EQ(families(), "466");
}

TEST_F(ConnectRaceTest, WaitsForMoreAddressesWhenAllHaveFailed) {
  const auto race = this->race();
  begin(*race);
  loop_.run(Run::no_wait);
  plan_.fail_nth(SystemCall::connect, 1, ENETUNREACH);
  race->add({ipv4()});
  turn();
  EXPECT_EQ(results_, 0);
  scripted_.clock.advance(1s);
  loop_.update_now();
  race->add({ipv6()});
  turn();
  EXPECT_EQ(tried_, (Times{0ms, 1s}));
  race->close({});
  loop_.run(Run::no_wait);
  answer(sockets().front());
  EXPECT_EQ(results_, 1);
  EXPECT_FALSE(error_);
}

TEST_F(ConnectRaceTest, FailureIsErrorOfLastAddress) {
  plan_.fail_nth(SystemCall::connect, 1, ENETUNREACH);
  plan_.fail_nth(SystemCall::connect, 2, EHOSTUNREACH);
  const auto race = this->race();
  race->add({ipv4(), ipv4()});
  begin(*race);
  turn();
  EXPECT_EQ(results_, 0);
  race->close(std::make_error_code(std::errc::invalid_argument));
  turn();
  EXPECT_EQ(results_, 1);
  EXPECT_EQ(error_, std::errc::host_unreachable);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(ConnectRaceTest, DeadlineIsRemovedAfterSuccess) {
  const auto race = this->race({.timeout = 1h});
  race->add({ipv4(), ipv4()});
  begin(*race);
  turn();
  loop_.run(Run::no_wait);
  answer(sockets().front());
  EXPECT_EQ(results_, 1);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(ConnectRaceTest, DeadlineCoversAllAttempts) {
  const auto race = this->race({.timeout = 600ms});
  scripted_.clock.advance(200ms);
  loop_.update_now();
  race->add({ipv6(), ipv4(), ipv4(), ipv4()});
  begin(*race);
  while (results_ == 0) turn();
  EXPECT_EQ(loop_.now() - start_, 600ms);
  EXPECT_EQ(error_, Error::connect_timeout);
  EXPECT_EQ(tried_, (Times{200ms, 450ms}));
  EXPECT_EQ(loop_.active_count(), 0);
}

}  // namespace
}  // namespace spate
