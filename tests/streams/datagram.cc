// Datagram: packets, in batches, with what comes beside them.
#include "spate/net/datagram.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "streams/harness.h"
#include "sys/fault.h"

namespace spate::testing {
namespace {

class Collector final : public DatagramHandler {
 public:
  void on_packets(std::span<const Packet> packets) override {
    ++batches;
    for (const Packet& packet : packets) {
      texts.emplace_back(text_of(packet.bytes));
      all.push_back(packet);
      all.back().bytes = {};
    }
    if (then) then();
  }
  void on_error(std::error_code why) override { error = why; }
  void on_writable() override { ++writable; }

  std::function<void()> then;
  std::vector<std::string> texts;
  std::vector<Packet> all;
  std::error_code error;
  int batches = 0;
  int writable = 0;
};

class DatagramTest : public ::testing::Test {
 protected:
  Datagram open(const DatagramOptions& options = {}) {
    Datagram::Opened opened = Datagram::open(loop_, Address::loopback_ipv4(0), options);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  Collector log_;
};

TEST_F(DatagramTest, CarriesPacketsWithTheirSender) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("one"), receiver.local_address()));
  EXPECT_FALSE(sender.send(bytes_of(""), receiver.local_address()));
  EXPECT_FALSE(sender.send(bytes_of("three"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 3; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(log_.all[0].peer, sender.local_address());
  EXPECT_FALSE(log_.all[0].truncated);
  EXPECT_EQ(log_.batches, 1);
}

TEST_F(DatagramTest, KeepsWhatComesBeforeItIsStartedThoughASendWasRefused) {
  Datagram receiver = open();
  Datagram sender = open();
  {
    sys::FaultPlan plan;
    plan.fail_nth(sys::Call::send, 1, EAGAIN);
    const sys::FaultScope scope(plan);
    EXPECT_TRUE(receiver.send(bytes_of("x"), sender.local_address()));
  }
  EXPECT_FALSE(sender.send(bytes_of("early"), receiver.local_address()));
  run_turns(loop_, 5);
  receiver.start(log_);
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_EQ(log_.texts[0], "early");
}

TEST_F(DatagramTest, SendsAndReceivesInBatches) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  std::deque<std::string> texts;
  std::vector<Outgoing> packets;
  for (int i = 0; i < 100; ++i) {
    texts.push_back("packet " + std::to_string(i));
    packets.push_back({.bytes = bytes_of(texts.back()), .peer = &to});
  }
  EXPECT_EQ(sender.send(packets), 100u);
  run_until(loop_, [&] { return log_.texts.size() == 100; });
  EXPECT_TRUE(std::equal(texts.begin(), texts.end(), log_.texts.begin()));
  EXPECT_LE(log_.batches, 5);
}

TEST_F(DatagramTest, SaysThatAPacketWasTruncated) {
  Datagram receiver = open({.packet_size = 4});
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("too long"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_EQ(log_.texts[0], "too ");
  EXPECT_TRUE(log_.all[0].truncated);
}

TEST_F(DatagramTest, SplitsWhatIsSentTogether) {
  for (const bool coalesce : {false, true}) {
    Datagram receiver = open({.coalesce = coalesce});
    Datagram sender = open();
    Collector log;
    receiver.start(log);
    const std::string bytes(100 * 150 + 7, 'x');
    const auto sent = sender.send_segments(bytes_of(bytes), 100, receiver.local_address());
    ASSERT_TRUE(sent);
    EXPECT_EQ(*sent, bytes.size());
    run_until(loop_, [&] { return log.texts.size() == 151; });
    EXPECT_EQ(log.texts.front().size(), 100u);
    EXPECT_EQ(log.texts.back().size(), 7u);
  }
}

TEST_F(DatagramTest, TellsWhereAPacketWasSentToAndItsMark) {
  Datagram receiver = open({.local_address = true, .ecn = true});
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.set_ecn(Ecn::capable_0));
  EXPECT_FALSE(sender.send(bytes_of("x"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_EQ(log_.all[0].local.host(), "127.0.0.1");
  EXPECT_EQ(log_.all[0].ecn, Ecn::capable_0);
}

TEST_F(DatagramTest, HearsOnlyItsPeerOnceConnectedAndOfItsAbsence) {
  const Address gone = open().local_address();
  const Address own = open().local_address();  // To ask for: a port of the kernel's choice is lost.
  Datagram socket = std::move(*Datagram::open(loop_, own));
  socket.start(log_);
  EXPECT_FALSE(socket.connect(gone));
  EXPECT_FALSE(socket.send(bytes_of("anybody there?")));
  run_until(loop_, [&] { return bool(log_.error); });
  EXPECT_EQ(log_.error, std::errc::connection_refused);
  Datagram stranger = open();
  stranger.send(bytes_of("me"), socket.local_address());
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_TRUE(log_.texts.empty());
  EXPECT_FALSE(socket.connect(Address()));
  stranger.send(bytes_of("me"), socket.local_address());
  run_until(loop_, [&] { return log_.texts.size() == 1; });
}

TEST_F(DatagramTest, MayBeDestroyedInsideItsCallback) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  receiver.start(log_);
  log_.then = [&] { const Datagram gone = std::move(receiver); };
  sender.send(bytes_of("1"), to);
  sender.send(bytes_of("2"), to);
  run_until(loop_, [&] { return log_.batches == 1; });
  EXPECT_TRUE(loop_.run(Run::no_wait));
}

TEST_F(DatagramTest, HearsItsGroup) {
  const Address group = *Address::ip("239.255.7.7", 0);
  Datagram::Opened receiver = Datagram::open(loop_, Address::any_ipv4(0), {.reuse_address = true});
  ASSERT_TRUE(receiver);
  if (receiver->join(group, 1)) GTEST_SKIP() << "the loopback interface does no multicast";
  EXPECT_EQ(receiver->join(group, 1), std::errc::address_in_use);
  receiver->start(log_);
  Datagram sender = open();
  EXPECT_FALSE(sender.set_multicast_interface(1));
  EXPECT_FALSE(sender.set_multicast_hops(1));
  EXPECT_FALSE(sender.set_multicast_loop(true));
  EXPECT_FALSE(sender.send(bytes_of("all"), group.with_port(receiver->local_address().port())));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_FALSE(receiver->leave(group, 1));
  EXPECT_EQ(receiver->join(Address::loopback_ipv4(0)), std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
