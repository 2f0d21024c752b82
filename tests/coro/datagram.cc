// Packets that coroutines receive and send, on UDP and on pairs of unix sockets: each is received
// once and in order, whichever operations are cancelled in between.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/coro/datagram.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "support/own_loopback.h"
#include "tests/coro/promised.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

static_assert(std::is_trivially_destructible_v<Packet>);

using Heard = std::vector<std::string>;

std::string text_in(const Packet& packet) { return std::string(text_of(packet.bytes)); }

class CoroDatagram : public ::testing::Test {
 protected:
  CoroDatagram() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    left_ = must(spate::Datagram::adopt(*loop_, ends[0]));
    right_ = must(spate::Datagram::adopt(*loop_, ends[1]));
  }

  spate::Datagram bound() { return must(spate::Datagram::create(*loop_, own_address(0))); }
  void say(int first, int count) {
    for (int i = 0; i < count; ++i) {
      EXPECT_FALSE(left_.send(bytes_of(std::to_string(first + i))));
    }
  }
  static Heard numbers(int count) {
    Heard all;
    for (int i = 0; i < count; ++i) all.push_back(std::to_string(i));
    return all;
  }
  void turns(int count = 5) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(loop_->run(Run::no_wait));
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  spate::Datagram left_;
  spate::Datagram right_;
};

Task<Result<void>> echo(coro::Datagram* socket) {
  for (;;) {
    const Packet packet = co_await coro::or_return(socket->receive());
    co_await coro::or_return(socket->send(packet.bytes, packet.peer));
  }
}

Task<Result<void>> hear(coro::Datagram* socket, std::size_t count, Heard* heard) {
  while (heard->size() < count) {
    const Packet packet = co_await coro::or_return(socket->receive());
    heard->push_back(text_in(packet));
  }
  co_return Result<void>();
}

TEST_F(CoroDatagram, EchoRepliesToEachSender) {
  coro::Datagram server(bound());
  coro::Scope scope(*loop_);
  scope.spawn(echo(&server));
  const auto ask = [](spate::Datagram bound, Address to, std::string text) -> Task<Result<Heard>> {
    coro::Datagram socket(std::move(bound));
    co_await coro::or_return(socket.send(text, to));
    const Packet answer = co_await coro::or_return(socket.receive());
    EXPECT_EQ(answer.peer, to);
    co_return Heard{text_in(answer)};
  };
  const Address to = server.datagram().local_address();
  EXPECT_EQ(coro::run(*loop_, ask(bound(), to, "hello")), Heard{"hello"});
  EXPECT_EQ(coro::run(*loop_, ask(bound(), to, "")), Heard{""});
  scope.cancel();
}

TEST_F(CoroDatagram, PacketsOfOneBatchAreReceivedOneByOne) {
  say(0, 5);
  coro::Datagram socket(std::move(right_));
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear(&socket, 5, &heard)));
  EXPECT_EQ(heard, numbers(5));
}

TEST_F(CoroDatagram, ReceiveSomeReturnsAllQueuedPackets) {
  say(0, 5);
  const auto hear_all = [](spate::Datagram from, Heard* heard) -> Task<std::size_t> {
    coro::Datagram socket(std::move(from));
    const auto packets = co_await socket.receive_some();
    for (const Packet& packet : *packets) heard->push_back(text_in(packet));
    co_return packets->size();
  };
  Heard heard;
  EXPECT_EQ(coro::run(*loop_, hear_all(std::move(right_), &heard)), 5u);
  EXPECT_EQ(heard, numbers(5));
}

TEST_F(CoroDatagram, RestOfBatchIsKeptWhileReceiverIsBusy) {
  const auto hear_slowly = [](coro::Datagram* socket, int count,
                              Heard* heard) -> Task<Result<void>> {
    for (int i = 0; i < count; ++i) {
      {
        const Packet packet = co_await coro::or_return(socket->receive());
        heard->push_back(text_in(packet));
      }
      co_await coro::next_turn();
    }
    co_return Result<void>();
  };
  say(0, 7);
  coro::Datagram socket(std::move(right_));
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear_slowly(&socket, 3, &heard)));
  say(7, 3);
  EXPECT_TRUE(coro::run(*loop_, hear_slowly(&socket, 7, &heard)));
  EXPECT_EQ(heard, numbers(10));
}

TEST_F(CoroDatagram, ReceiveSomeReturnsAllKeptPackets) {
  const auto one_and_all = [](coro::Datagram* socket, Heard* heard) -> Task<void> {
    {
      const Result<Packet> first = co_await socket->receive();
      heard->push_back(text_in(*first));
    }
    co_await coro::next_turn();
    const auto rest = co_await socket->receive_some();
    for (const Packet& packet : *rest) {
      heard->push_back(text_in(packet));
      EXPECT_EQ(packet.ecn, Ecn::not_capable);
    }
  };
  say(0, 6);
  coro::Datagram socket(std::move(right_));
  Heard heard;
  coro::run(*loop_, one_and_all(&socket, &heard));
  EXPECT_EQ(heard, numbers(6));
}

TEST_F(CoroDatagram, SocketWithoutReceiverDoesNotKeepLoopAlive) {
  coro::Datagram socket(std::move(right_));
  say(0, 1);
  EXPECT_FALSE(loop_->run());
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear(&socket, 1, &heard)));
  EXPECT_FALSE(loop_->run());
}

TEST_F(CoroDatagram, CancelledReceiveConsumesNothing) {
  coro::Datagram socket(std::move(right_));
  Heard heard;
  coro::Scope scope(*loop_);
  for (int i = 0; i < 20; ++i) {
    scope.spawn(hear(&socket, 1000, &heard));
    turns(i % 3);
    say(i, 1);
    if (i % 2 == 0) turns(1);
    scope.cancel();
  }
  EXPECT_TRUE(coro::run(*loop_, hear(&socket, 20, &heard)));
  EXPECT_EQ(heard, numbers(20));
}

TEST_F(CoroDatagram, PacketsReservedForCancelledReceiverAreKept) {
  coro::Datagram socket(std::move(right_));
  Heard heard;
  cancel_when_promised(*loop_, hear(&socket, 4, &heard), [&] { say(0, 4); });
  EXPECT_TRUE(heard.empty());
  EXPECT_TRUE(coro::run(*loop_, hear(&socket, 4, &heard)));
  EXPECT_EQ(heard, numbers(4));
}

TEST_F(CoroDatagram, ReceiverMayRunLoopAndOthersReceiveInOrder) {
  struct Both {
    coro::Datagram* socket;
    Heard heard;
    coro::Event may_others;
    std::function<void()> run_the_loop;
  };
  const auto one = [](Both* both) -> Task<void> {
    const Result<Packet> packet = co_await both->socket->receive();
    both->heard.push_back(text_in(*packet));
    both->may_others.set();
    both->run_the_loop();
    EXPECT_EQ(both->heard, numbers(6));
    EXPECT_EQ(text_in(*packet), "0");
  };
  const auto others = [](Both* both) -> Task<Result<void>> {
    co_await both->may_others.wait();
    co_return co_await hear(both->socket, 6, &both->heard);
  };
  coro::Datagram socket(std::move(right_));
  Both both{.socket = &socket, .heard = {}, .may_others = {}, .run_the_loop = [this] {
              say(3, 3);
              turns();
            }};
  say(0, 3);
  coro::Scope first(*loop_);
  coro::Scope second(*loop_);
  first.spawn(one(&both));
  second.spawn(others(&both));
  turns();
  EXPECT_EQ(both.heard, numbers(6));
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
}

TEST_F(CoroDatagram, ReceiverMayDestroySocket) {
  const auto hear_one = [](spate::Datagram from, Heard* heard) -> Task<void> {
    coro::Datagram socket(std::move(from));
    const Result<Packet> packet = co_await socket.receive();
    heard->push_back(text_in(*packet));
  };
  say(0, 3);
  Heard heard;
  coro::Scope scope(*loop_);
  scope.spawn(hear_one(std::move(right_), &heard));
  turns();
  EXPECT_TRUE(scope.empty());
  EXPECT_EQ(heard, numbers(1));
}

// ---- sending

Task<Result<void>> say_number(coro::Datagram* socket, int number) {
  std::string text = std::to_string(number);
  co_await coro::or_return(socket->send(text));
  text = "overwritten";
  co_return Result<void>();
}

TEST_F(CoroDatagram, SenderWaitsForRoomAndKeepsItsPosition) {
  coro::Datagram from(std::move(left_));
  coro::Datagram to(std::move(right_));
  coro::Scope senders(*loop_);
  constexpr int kMany = 3000;  // More than the kernel takes.
  for (int i = 0; i < kMany; ++i) senders.spawn(say_number(&from, i));
  EXPECT_GT(senders.size(), 0u);
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear(&to, kMany, &heard)));
  EXPECT_EQ(heard, numbers(kMany));
  turns();
  EXPECT_TRUE(senders.empty());
}

TEST_F(CoroDatagram, SeveralPacketsAreSentInOneCall) {
  const auto say_all = [](coro::Datagram* socket, int count) -> Task<Result<void>> {
    Heard texts = numbers(count);
    std::vector<Outgoing> packets;
    for (const std::string& text : texts) packets.push_back({.bytes = bytes_of(text)});
    co_await coro::or_return(socket->send(packets));
    co_return Result<void>();
  };
  coro::Datagram from(std::move(left_));
  coro::Datagram to(std::move(right_));
  coro::Scope senders(*loop_);
  senders.spawn(say_all(&from, 2000));
  EXPECT_EQ(senders.size(), 1u) << "it waits for room";
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear(&to, 2000, &heard)));
  EXPECT_EQ(heard, numbers(2000));
  turns();
  EXPECT_TRUE(senders.empty());
}

TEST_F(CoroDatagram, WaitingSendKeepsAddressesMarkAndSegments) {
  const auto say_packet = [](coro::Datagram* socket, const Outgoing* packet) -> Task<Result<void>> {
    const std::span<const Outgoing> packets(packet, 1);
    co_return co_await socket->send(packets);
  };
  coro::Datagram from(must(spate::Datagram::create(*loop_, Address::any_ipv4(0))));
  coro::Datagram to(
      must(spate::Datagram::create(*loop_, Address::loopback_ipv4(0), {.ecn = true})));
  Address peer = to.datagram().local_address();
  Address local = must(Address::ip("127.0.0.2", 0));
  Outgoing packet{.bytes = bytes_of("aab"),
                  .peer = &peer,
                  .local = &local,
                  .ecn = Ecn::congested,
                  .segment = 2};
  coro::Scope scope(*loop_);
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::send, 1, EAGAIN);
    const FaultScope fault(plan);
    scope.spawn(say_packet(&from, &packet));
  }
  EXPECT_EQ(scope.size(), 1u) << "it waits for room";
  peer = local = Address();
  packet = {};
  const auto hear_two = [](coro::Datagram* socket, Heard* heard) -> Task<Result<void>> {
    while (heard->size() < 2) {
      const Packet arrived = co_await coro::or_return(socket->receive());
      heard->push_back(text_in(arrived) + " from " + arrived.peer.host());
      EXPECT_EQ(arrived.ecn, Ecn::congested);
    }
    co_return Result<void>();
  };
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear_two(&to, &heard)));
  EXPECT_EQ(heard, (Heard{"aa from 127.0.0.2", "b from 127.0.0.2"}));
}

TEST_F(CoroDatagram, CancelledSendUnblocksNextOne) {
  coro::Datagram from(std::move(left_));
  coro::Datagram to(std::move(right_));
  coro::Scope first(*loop_);
  int sent = 0;
  while (first.empty()) first.spawn(say_number(&from, sent++));
  coro::Scope second(*loop_);
  second.spawn(say_number(&from, 1'000'000));
  first.cancel();
  Heard heard;
  EXPECT_TRUE(coro::run(*loop_, hear(&to, static_cast<std::size_t>(sent), &heard)));
  EXPECT_EQ(heard.back(), "1000000");
  turns();
  EXPECT_TRUE(second.empty());
}

TEST_F(CoroDatagram, WaitingSendCanBeStopped) {
  const auto until_stopped = [](coro::Datagram* socket) -> Task<Result<void>> {
    for (;;) co_await coro::or_return(coro::until_stop(socket->send("x")));
  };
  coro::Datagram from(std::move(left_));
  coro::Scope scope(*loop_);
  scope.spawn(until_stopped(&from));
  scope.stop();
  const auto join = [](coro::Scope* joined) -> Task<Result<void>> {
    co_return co_await joined->join();
  };
  EXPECT_EQ(coro::run(*loop_, join(&scope)).error(), std::errc::operation_canceled);
}

// ---- errors

Task<Result<std::string>> hear_one(coro::Datagram* socket) {
  const Packet packet = co_await coro::or_return(socket->receive());
  co_return text_in(packet);
}
Task<Result<void>> say_to(coro::Datagram* socket, std::string text, Address to) {
  co_return co_await socket->send(text, to);
}

TEST_F(CoroDatagram, NetworkErrorIsReportedAndSocketStaysUsable) {
  coro::Datagram socket(bound());
  std::optional<spate::Datagram> nobody(bound());
  const Address address = nobody->local_address();
  nobody.reset();
  ASSERT_FALSE(socket.datagram().connect(address));
  EXPECT_FALSE(socket.datagram().send(bytes_of("hello")));
  EXPECT_EQ(coro::run(*loop_, hear_one(&socket)).error(), std::errc::connection_refused);

  spate::Datagram peer = must(spate::Datagram::create(*loop_, address));
  const Address own = socket.datagram().local_address();
  EXPECT_FALSE(peer.send(bytes_of("here"), own));
  EXPECT_EQ(coro::run(*loop_, hear_one(&socket)), "here");
}

TEST_F(CoroDatagram, UnsendablePacketIsError) {
  coro::Datagram socket(bound());
  const Address own = socket.datagram().local_address();
  EXPECT_EQ(coro::run(*loop_, say_to(&socket, std::string(70'000, 'x'), own)).error(),
            std::errc::message_size);
  EXPECT_EQ(coro::run(*loop_, say_to(&socket, "x", Address())).error(),
            std::errc::invalid_argument);
  EXPECT_TRUE(coro::run(*loop_, say_to(&socket, "x", own)));
}

TEST_F(CoroDatagram, EmptySocketFailsWithBadDescriptor) {
  coro::Datagram none{spate::Datagram()};
  EXPECT_EQ(coro::run(*loop_, hear_one(&none)).error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(coro::run(*loop_, say_to(&none, "x", Address::loopback_ipv4(7))).error(),
            std::errc::bad_file_descriptor);
}

// The unread packet is longer than any frame, so that no kept memory fits its copy.
TEST_F(CoroDatagram, PacketLossWithoutMemoryForRestIsReported) {
  const auto one_and_then = [](coro::Datagram* socket, FaultPlan* plan) -> Task<Result<void>> {
    co_await coro::next_turn();  // From here on the loop has memory for a timer.
    co_await coro::or_return(socket->receive());
    const FaultScope faults(*plan);
    const std::error_code waited = co_await coro::next_turn();
    EXPECT_FALSE(waited);
    co_await coro::or_return(socket->receive());
    ADD_FAILURE() << "it was not lost";
    co_return Result<void>();
  };
  coro::Datagram socket(std::move(right_));
  const std::string lot(10'000, 'x');
  EXPECT_FALSE(left_.send(bytes_of("1")));
  EXPECT_FALSE(left_.send(bytes_of(lot)));
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const auto error = coro::run(*loop_, one_and_then(&socket, &plan)).error();
  EXPECT_EQ(error, std::errc::not_enough_memory);
  say(2, 1);
  EXPECT_EQ(coro::run(*loop_, hear_one(&socket)), "2");
}

TEST_F(CoroDatagram, SendFailsWithoutMemoryForQueue) {
  const auto fill = [](coro::Datagram* socket, const std::string* text) -> Task<Result<void>> {
    for (;;) co_await coro::or_return(socket->send(*text));
  };
  coro::Datagram from(std::move(left_));
  const std::string lot(10'000, 'x');
  EXPECT_FALSE(from.datagram().send(bytes_of(lot)));
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  coro::Scope scope(*loop_);
  std::error_code told;
  scope.on_error([&](std::error_code error) { told = error; });
  auto task = fill(&from, &lot);
  {
    const FaultScope faults(plan);
    EXPECT_TRUE(scope.spawn(std::move(task)));
  }
  EXPECT_EQ(told, std::errc::not_enough_memory);
}

}  // namespace
}  // namespace spate::testing
