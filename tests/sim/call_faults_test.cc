// System calls that fail on purpose: the syntax of plans, in a World, and on real sockets.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "sim/syscalls/call_faults.h"
#include "sim/syscalls/real_faults.h"
#include "spate/net/datagram.h"
#include "spate/sim/explore.h"
#include "spate/sim/test_loop.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Call;
using sim::CallFaults;

std::string refusal_of(std::string_view text) {
  const auto rules = CallFaults::parse(text);
  return rules ? "" : rules.error();
}

TEST(SimCallFaults, AreParsed) {
  const auto rules =
      CallFaults::parse("recv.short=.3,accept.EMFILE@5..20,*.EINTR=0.05,bind.EACCES,send.EPIPE@7");
  ASSERT_TRUE(rules);
  ASSERT_EQ(rules->size(), 5u);
  EXPECT_EQ((*rules)[0].error, 0);
  EXPECT_DOUBLE_EQ((*rules)[0].share, 0.3);
  EXPECT_EQ((*rules)[1].error, EMFILE);
  EXPECT_EQ((*rules)[1].first, 5u);
  EXPECT_EQ((*rules)[1].last, 20u);
  EXPECT_GT(std::popcount((*rules)[2].calls), 5);
  EXPECT_DOUBLE_EQ((*rules)[3].share, 1);
  EXPECT_EQ((*rules)[4].first, 7u);
  EXPECT_EQ((*rules)[4].last, 7u);
}

TEST(SimCallFaults, ReportParseErrors) {
  EXPECT_EQ(refusal_of("recv"),
            "\"recv\": a rule is CALL.ERROR, CALL.ERROR=SHARE or CALL.ERROR@NUMBER");
  EXPECT_TRUE(refusal_of("recv.shrt")
                  .starts_with("\"recv.shrt\": no such error is known; known are short, EACCES, "));
  EXPECT_TRUE(refusal_of("recieve.short")
                  .starts_with("\"recieve.short\": no such call is known; known are *, accept, "));
  EXPECT_EQ(refusal_of("bind.short"),
            "\"bind.short\": only epoll_wait, read, recv, send, sendfile and write can be short");
  EXPECT_EQ(refusal_of("*.EACCES"), "\"*.EACCES\": \"*\" is not for this error: name the calls");
  for (const char* share : {"=", "=2", "=-1", "=x", "=.5x", "=nan", "=1e999"})
    EXPECT_TRUE(refusal_of(std::string("recv.EINTR") + share).contains("from 0 to 1")) << share;
  for (const char* number : {"@", "@0", "@5..4", "@5..", "@..5", "@x", "@99999999999999999999"})
    EXPECT_TRUE(refusal_of(std::string("recv.EINTR") + number).contains("from 1")) << number;
  EXPECT_NE(refusal_of(""), "");
  EXPECT_NE(refusal_of("recv.EINTR,"), "");
  std::string many = "recv.EINTR";
  for (int i = 0; i < 63; ++i) many += ",recv.EINTR";
  EXPECT_EQ(refusal_of(many), "");
  EXPECT_EQ(refusal_of(many + ",recv.EINTR"), "it has more than 64 rules");
  EXPECT_EQ(refusal_of(std::string(5000, 'x')), "it is longer than 4096 bytes");
}

TEST(SimCallFaults, DependOnCallNumberAndSeed) {
  const auto decide = [](std::uint64_t seed) {
    CallFaults faults(*CallFaults::parse("accept.EMFILE@2..3,recv.short=.5"), seed);
    std::string text;
    for (int i = 0; i < 4; ++i) text += faults.decide(Call::accept).error == EMFILE ? 'E' : '.';
    for (int i = 0; i < 100; ++i) text += faults.decide(Call::recv) ? 's' : '.';
    EXPECT_FALSE(faults.decide(Call::send));
    EXPECT_EQ(faults.calls(Call::recv), 100u);
    return text;
  };
  const std::string one = decide(1);
  EXPECT_EQ(one.substr(0, 4), ".EE.");
  const auto shorts = std::ranges::count(one, 's');
  EXPECT_GT(shorts, 30);
  EXPECT_LT(shorts, 70);
  EXPECT_EQ(decide(1), one);
  EXPECT_NE(decide(2), one);
}

TEST(SimCallFaults, ShortenTransfersButLeaveAtLeastOneByte) {
  CallFaults faults(*CallFaults::parse("recv.short"), 1);
  for (std::size_t size : {2u, 3u, 100u, 65536u}) {
    const std::size_t less = faults.decide(Call::recv).shortened(size);
    EXPECT_GE(less, 1u);
    EXPECT_LT(less, size);
  }
  EXPECT_EQ(faults.decide(Call::recv).shortened(1), 1u);
  EXPECT_EQ(faults.decide(Call::recv).shortened(0), 0u);
}

// ---- in the environment

TEST(SimRealFaults, AreEnabledWithNotice) {
  const sim::RealFaults found = sim::real_faults("recv.short=.3", "7", false);
  EXPECT_NE(found.faults, nullptr);
  EXPECT_EQ(found.notice,
            "spate: SPATE_FAULTS=recv.short=.3 SPATE_SEED=7: system calls fail on purpose\n");
  EXPECT_EQ(sim::real_faults(nullptr, "7", false).faults, nullptr);
  EXPECT_EQ(sim::real_faults("", nullptr, true).notice, "");
}

TEST(SimRealFaults, AreIgnoredWithElevatedPrivileges) {
  const sim::RealFaults found = sim::real_faults("recv.short=.3", nullptr, true);
  EXPECT_EQ(found.faults, nullptr);
  EXPECT_FALSE(found.is_mistaken);
  EXPECT_TRUE(found.notice.contains("ignored")) << found.notice;
}

TEST(SimRealFaults, InvalidPlanIsReported) {
  EXPECT_TRUE(sim::real_faults("recv", nullptr, false).is_mistaken);
  const sim::RealFaults seed = sim::real_faults("recv.short", "x", false);
  EXPECT_TRUE(seed.is_mistaken);
  EXPECT_EQ(seed.notice, "spate: SPATE_SEED=x: a decimal number was expected\n");
}

// Echoes on real sockets, under the plan in the environment.
TEST(SimRealSockets, EchoAndDatagramsAreDelivered) {
  auto loop = must(Loop::create());
  auto server = must(serve<Echo>(*loop, Address::loopback_ipv4(0)));
  EchoClient client(std::string(300'000, 'x'));
  client.start(*loop, server.address());
  while (!client.is_done()) ASSERT_FALSE(loop->run(Run::once));
  EXPECT_TRUE(client.has_all()) << client.error().message();

  Datagram into = must(Datagram::create(*loop, Address::loopback_ipv4(0)));
  Datagram from = must(Datagram::create(*loop, Address::loopback_ipv4(0)));
  std::size_t received = 0;
  std::size_t longest = 0;
  ASSERT_FALSE(into.start({.on_packets = [&](std::span<const Packet> packets) {
    received += packets.size();
    for (const Packet& packet : packets) longest = std::max(longest, packet.bytes.size());
  }}));
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(from.send(bytes_of("whole"), into.local_address()));
  while (received < 10) ASSERT_FALSE(loop->run(Run::once));
  EXPECT_EQ(longest, 5u);
}

struct Ended {
  int status;
  std::string output;
};

// Runs this program once more, with faults.
Ended run_with(const std::string& environment) {
  char self[4096] = {};
  EXPECT_GT(::readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT " +
                              environment + ' ' + self +
                              " --gtest_filter='SimRealSockets.Echo*' 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  char piece[4096];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof(piece), pipe)) != 0;)
    output.append(piece, count);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST(SimRealSockets, DeliveryWorksDespiteFaults) {
  const Ended ended =
      run_with("SPATE_SEED=7 SPATE_FAULTS='*.short=.5,*.EINTR=.1,recv.EAGAIN=.1,send.EAGAIN=.1'");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.output.contains(" SPATE_SEED=7: system calls fail on purpose\n"));
}

TEST(SimRealSockets, PermanentFailureIsReported) {
  const Ended ended = run_with("SPATE_FAULTS=connect.ENETUNREACH");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(ended.output.contains("Network is unreachable")) << ended.output;
}

TEST(SimRealSockets, InvalidPlanEndsProgram) {
  const Ended ended = run_with("SPATE_FAULTS=recv.nothing");
  EXPECT_EQ(ended.status, 2);
  EXPECT_TRUE(ended.output.contains("spate: SPATE_FAULTS=recv.nothing: \"recv.nothing\": no such"));
}

// ---- in a World

TEST(SimWorldCallFaults, FailAccordingToPlan) {
  sim::TestLoop loop;
  EXPECT_EQ(loop.world().fail_calls("socket.EMFILE"), "");
  const auto none = serve<Echo>(*loop, Address::loopback_ipv4(7000));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), std::errc::too_many_files_open);
  EXPECT_TRUE(loop.world().fail_calls("socket.EMFILE@").contains("from 1"));
  EXPECT_EQ(loop.world().fail_calls(""), "");
  EXPECT_TRUE(serve<Echo>(*loop, Address::loopback_ipv4(7000)));
}

TEST(SimWorldCallFaults, DoNotAffectRestart) {
  sim::World world(1);
  sim::Host& host = world.add_host("host");
  EXPECT_EQ(world.fail_calls("epoll_create.EMFILE,eventfd.EMFILE,epoll_ctl.ENOMEM"), "");
  host.crash();
  host.restart();
  EXPECT_TRUE(host.is_up());
}

TEST(SimWorldCallFaults, HarmlessFaultsDoNotBreakEcho) {
  const sim::Exploration found = sim::explore(1, 100, [](sim::World& world) {
    sim::Host& here = world.add_host("here");
    sim::Host& there = world.add_host("there");
    const std::string refused =
        world.fail_calls("*.short=.3,*.EINTR=.2,recv.EAGAIN=.2,send.EAGAIN=.2,accept.EMFILE@1..2");
    sim::always(refused.empty(), refused);
    auto server =
        here.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(7000))); });
    EchoClient client(std::string(20'000, 'x'));
    there.run([&](Loop& loop) { client.start(loop, here.address(7000)); });
    world.run_until([&] { return client.is_done(); }, 1h);
    sim::always(client.has_all(), "all of it comes");
  });
  EXPECT_TRUE(found) << found.report();
}

TEST(SimWorldCallFaults, AreFaultsOfSeed) {
  ::unsetenv("SPATE_SEED");
  const sim::Exploration found = sim::explore(1, 1000, [](sim::World& world) {
    sim::Host& here = world.add_host("here");
    sim::Host& there = world.add_host("there");
    auto server =
        here.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(7000))); });
    (void)world.fail_calls("recv.short=.3,recv.ECONNRESET=.05");
    EchoClient client("hello");
    there.run([&](Loop& loop) { client.start(loop, here.address(7000)); });
    world.run_until([&] { return client.is_done(); }, 1h);
    sim::always(client.has_all(), "all of it comes");
  });
  ASSERT_TRUE(found.failed);
  ASSERT_EQ(found.needed_lines.size(), 1u) << found.report();
  EXPECT_TRUE(found.needed_lines.front().contains("fails: recv: ECONNRESET (fault "))
      << found.report();
}

}  // namespace
}  // namespace spate::testing
