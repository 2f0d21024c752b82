// Workers, ThreadPools and loops on other threads, in a World.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sim/echo.h"
#include "sim/kernel/kernel.h"
#include "spate/coro/offload.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/run.h"
#include "spate/coro/scope.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/net/datagram_group.h"
#include "spate/net/workers.h"
#include "spate/offload.h"
#include "spate/sim/explore.h"
#include "spate/sim/world.h"
#include "tests/support/balances.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kThreadsPort = 7000;

// Records the threads on which sessions run, as workers do.
struct WorkerEcho : Session {
  void on_open() override { threads().insert(std::this_thread::get_id()); }
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
  void on_drain() override {}  // The client closes.
  static std::set<std::thread::id>& threads() {
    static std::set<std::thread::id> all;
    return all;
  }
};

class SimWorkers : public ::testing::TestWithParam<Balance> {
 protected:
  std::unique_ptr<Workers> make(unsigned threads) {
    return here_.run([&](Loop&) { return must(Workers::create({.threads = threads})); });
  }
  void serve_on(Workers& workers, Balance balance = Balance::reuse_port) {
    here_.run([&](Loop&) {
      must(serve<WorkerEcho>(workers, Address::any_ipv6(kThreadsPort), {.balance = balance}));
    });
  }
  void finish(std::vector<std::unique_ptr<EchoClient>>& clients) {
    const auto all_done = [&] {
      return std::ranges::all_of(clients, [](const auto& one) { return one->is_done(); });
    };
    EXPECT_EQ(world_.run_until(all_done, 1h), Outcome::done);
    for (const auto& client : clients) EXPECT_TRUE(client->has_all()) << client->error().message();
  }
  std::vector<std::unique_ptr<EchoClient>> start(int count, std::size_t size) {
    std::vector<std::unique_ptr<EchoClient>> clients;
    there_.run([&](Loop& loop) {
      for (int i = 0; i < count; ++i) {
        clients.push_back(std::make_unique<EchoClient>(std::string(size, 'x')));
        clients.back()->start(loop, here_.address(kThreadsPort));
      }
    });
    return clients;
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST_P(SimWorkers, ShareConnectionsOfServer) {
  WorkerEcho::threads().clear();
  const auto workers = make(4);
  serve_on(*workers, GetParam());
  auto clients = start(40, 10'000);
  finish(clients);
  const std::size_t those = WorkerEcho::threads().size();
  if (GetParam() == Balance::peer_hash) EXPECT_EQ(those, 1u);
  if (GetParam() == Balance::round_robin || GetParam() == Balance::least_connections)
    EXPECT_EQ(those, 4u);
  if (GetParam() == Balance::reuse_port) EXPECT_GT(those, 1u);
  EXPECT_FALSE(WorkerEcho::threads().contains(std::this_thread::get_id()));
}

INSTANTIATE_TEST_SUITE_P(Balances, SimWorkers, all_balances(),
                         ::testing::PrintToStringParamName());

// Counts the packets of one worker, and those of others.
class Counting final : public DatagramService {
 public:
  Counting(Workers& workers, Loop& loop, std::array<int, 5>& counts)
      : index_(workers.index_of(loop)), counts_(counts) {}

 private:
  void on_packets(Datagram&, std::span<const Packet> packets) override {
    for (const Packet& packet : packets)
      ++counts_[std::to_integer<unsigned>(packet.bytes[3]) % 4 == index_ ? index_ : 4];
  }

  const unsigned index_;
  std::array<int, 5>& counts_;
};

using SimSteering = SimWorkers;

TEST_F(SimSteering, SelectsWorkerByContentsOfPacket) {
  const auto workers = make(4);
  std::array<int, 5> counts{};
  const auto group = here_.run([&](Loop&) {
    return must(DatagramGroup::create(
        *workers, Address::any_ipv4(kThreadsPort),
        [&](Loop& loop, Datagram&) { return std::make_unique<Counting>(*workers, loop, counts); },
        {.steering = {.offset = 0, .mask = 0xff}}));
  });
  there_.run([&](Loop& loop) {
    Datagram socket = must(Datagram::create(loop, Address::any_ipv4(0)));
    for (int i = 0; i < 40; ++i) {
      const char packet[] = {0, 0, 0, static_cast<char>(i)};
      EXPECT_FALSE(socket.send(bytes_of(std::string_view(packet, 4)), here_.address(kThreadsPort)));
    }
  });
  world_.run_for(1s);
  EXPECT_EQ(counts, (std::array<int, 5>{10, 10, 10, 10, 0}));
  EXPECT_EQ(group->forwarded(), 0u) << "the kernel selects the socket";
}

using SimDrain = SimWorkers;

TEST_F(SimDrain, StopWaitsForConnectionsUntilGraceEnds) {
  const auto workers = make(2);
  serve_on(*workers);
  auto clients = start(6, 100);
  for (auto& client : clients) client->keep_open();
  world_.run_for(1s);
  world_.at(world_.now() + 20s, [&] {
    for (std::size_t i = 1; i < clients.size(); ++i)
      there_.run([&](Loop&) { clients[i]->stream().close(); });
  });
  const Nanos before = world_.now();
  EXPECT_FALSE(here_.run([&](Loop&) { return workers->stop(1min); }));
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now() - before), 60s);
  world_.run_until([&] { return clients[0]->is_done(); }, 1min);
  EXPECT_TRUE(clients[0]->error());
  EXPECT_FALSE(clients[1]->error());
}

TEST_F(SimDrain, StopEndsWithLastConnection) {
  const auto workers = make(2);
  serve_on(*workers);
  auto clients = start(6, 100);
  for (auto& client : clients) client->keep_open();
  world_.run_for(1s);
  world_.at(20s, [&] {
    for (auto& client : clients) there_.run([&](Loop&) { client->stream().close(); });
  });
  EXPECT_TRUE(here_.run([&](Loop&) { return workers->stop(1min); }));
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 20s);
}

TEST_F(SimDrain, CrashEndsThreadsAndRestartCreatesThem) {
  int boots = 0;
  here_.boot([&](Loop&) {
    ++boots;
    auto workers = must(Workers::create({.threads = 3}));
    must(serve<WorkerEcho>(*workers, Address::any_ipv6(kThreadsPort)));
    return workers;
  });
  auto cut_off = start(3, 1'000'000);
  world_.run_for(1ms);
  here_.crash();
  world_.run_for(10s);
  here_.restart();
  EXPECT_EQ(boots, 2);
  auto clients = start(3, 1000);
  finish(clients);
  world_.run_for(1min);
  for (const auto& client : cut_off) EXPECT_TRUE(client->error());
}

TEST_F(SimDrain, WorkersOfPausedHostStop) {
  const auto workers = make(2);
  serve_on(*workers);
  here_.pause();
  auto clients = start(3, 1000);
  world_.run_for(1min);
  for (const auto& client : clients) EXPECT_TRUE(client->echoed().empty());
  here_.resume();
  finish(clients);
}

TEST_F(SimDrain, HttpServerIsServedByWorkers) {
  const auto workers = make(3);
  here_.run([&](Loop&) {
    must(http::serve(*workers, Address::any_ipv6(kThreadsPort), [](http::Exchange exchange) {
      exchange.respond(std::string(exchange.request().path()));
    }));
  });
  http::Client client = there_.run([](Loop& loop) { return must(http::Client::create(loop)); });
  std::vector<http::Call> calls;
  int answers = 0;
  there_.run([&](Loop&) {
    for (int i = 0; i < 20; ++i) {
      const std::string path = '/' + std::to_string(i);
      calls.push_back(client.fetch("http://" + here_.address(kThreadsPort).to_string() + path,
                                   [&answers, path](Result<http::Response> response) {
                                     ASSERT_TRUE(response);
                                     EXPECT_EQ(response->text(), path);
                                     ++answers;
                                   }));
    }
  });
  EXPECT_EQ(world_.run_until([&] { return answers == 20; }, 1min), Outcome::done);
}

TEST_F(SimDrain, HostsHaveTwoProcessors) { EXPECT_EQ(make(0)->count(), 2u); }

// ---- work of other threads

class SimOffload : public ::testing::Test {
 protected:
  World world_{1};
  Host& here_ = world_.add_host("here");
};

TEST_F(SimOffload, WorkRunsOnAnotherThread) {
  std::optional<std::thread::id> where;
  Offloading offloading = here_.run([&](Loop& loop) {
    return must(offload(
        loop, [] { return std::this_thread::get_id(); }, [&](std::thread::id id) { where = id; }));
  });
  EXPECT_FALSE(where);
  EXPECT_EQ(world_.run_until([&] { return where.has_value(); }, 1min), Outcome::done);
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_EQ(world_.now(), 0ns);
}

TEST_F(SimOffload, WorkTakesConfiguredTime) {
  here_.delay_work(10s);
  int done = 0;
  std::vector<Offloading> offloading;
  here_.run([&](Loop& loop) {
    for (int i = 0; i < 3; ++i)
      offloading.push_back(must(offload(loop, [] { return 1; }, [&](int one) { done += one; })));
  });
  EXPECT_EQ(world_.run_until([&] { return done == 3; }, 1min), Outcome::done);
  EXPECT_GT(world_.now(), 0s);
  EXPECT_LE(world_.now(), 30s);
}

TEST_F(SimOffload, CancelledWorkIsNotRun) {
  bool was_called = false;
  bool was_told = false;
  Offloading offloading = here_.run([&](Loop& loop) {
    return must(offload(loop, [&] { was_called = true; }, [&] { was_told = true; }));
  });
  offloading.cancel();
  world_.run_for(1min);
  EXPECT_FALSE(was_called);
  EXPECT_FALSE(was_told);
}

TEST_F(SimOffload, CrashedHostLosesItsThreads) {
  const auto boot = [](Loop& loop) {
    return std::make_shared<Offloading>(must(offload(loop, [] {}, [] {})));
  };
  here_.boot(boot);
  here_.crash();
  world_.run_for(1s);
  here_.restart();
  world_.run_for(1s);
}

TEST_F(SimOffload, PrivatePoolWaitsForItsWork) {
  int done = 0;
  Host& other = world_.add_host("other");
  std::vector<Offloading> offloading;
  {
    ThreadPool pool({.max_threads = 2});
    for (Host* host : {&here_, &other}) {
      host->run([&](Loop& loop) {
        for (int i = 0; i < 5; ++i)
          offloading.push_back(must(offload(loop, [] {}, [&] { ++done; }, pool)));
      });
    }
    EXPECT_LE(pool.threads(), 2u);
  }
  world_.run_for(1s);
  EXPECT_EQ(done, 10);
}

coro::Task<> ask_another_loop(Loop& there, std::vector<std::string>& story) {
  const Result<int> answer = co_await coro::on(there, [] { return 42; });
  story.push_back(std::to_string(answer.value_or(0)));
  const Result<std::string> text = co_await coro::offload([] { return std::string("done"); });
  story.push_back(text.value_or("failed"));
}

TEST_F(SimOffload, CoroutinesCallOtherLoopsAndThreads) {
  std::vector<std::string> story;
  const auto workers = here_.run([](Loop&) { return must(Workers::create({.threads = 1})); });
  coro::Scope scope(here_.loop());
  here_.run([&](Loop&) { EXPECT_TRUE(scope.spawn(ask_another_loop(workers->loop(0), story))); });
  world_.run_for(1s);
  EXPECT_EQ(story, (std::vector<std::string>{"42", "done"}));
}

// ---- equal for equal seeds

std::uint64_t trace_of_workers(std::uint64_t seed) {
  World world(seed);
  Host& here = world.add_host("here");
  Host& there = world.add_host("there");
  world.link(here, there, {.latency = 1ms, .jitter = 5ms, .loss = 0.1});
  here.delay_work(1s);
  const auto workers = here.run([&](Loop&) {
    auto made = must(Workers::create({.threads = 3}));
    must(serve<WorkerEcho>(*made, Address::any_ipv6(kThreadsPort),
                           {.balance = Balance::least_connections}));
    return made;
  });
  std::vector<std::unique_ptr<EchoClient>> clients;
  std::vector<Offloading> offloading;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<EchoClient>(std::string(20'000 + i, 'x')));
    there.run([&](Loop& loop) { clients.back()->start(loop, here.address(kThreadsPort)); });
    here.run([&](Loop& loop) {
      offloading.push_back(must(offload(
          loop, [] {},
          [&world, i] {
            sim::note(std::to_string(i) + ' ' + std::to_string(world.now().count()));
          })));
    });
  }
  world.run_for(1min);
  for (const auto& client : clients) EXPECT_TRUE(client->has_all());
  return world.trace();
}

TEST(SimThreads, AreSameForOneSeed) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    traces.insert(trace_of_workers(seed));
    EXPECT_EQ(trace_of_workers(seed), *traces.find(trace_of_workers(seed)));
  }
  EXPECT_EQ(traces.size(), 10u);
}

// In every build: a wait in a World for an event that cannot happen aborts.
TEST(SimThreadsDeathTest, HopelessWaitAborts) {
  const auto waits_in_vain = [] {
    World world(1);
    world.add_host("alone").run(
        [](Loop&) { sim::Kernel::current()->wait([] { return false; }, kForever); });
  };
  EXPECT_DEATH(waits_in_vain(), "alone is running.*waits for will happen");
}

}  // namespace
}  // namespace spate::testing
