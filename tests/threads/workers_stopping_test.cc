// Workers: stopping, and the calls allowed after it.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <latch>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "base/fault.h"
#include "sys/socket.h"
#include "tests/support/await.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

using WorkersStopping = WorkersTest;

INSTANTIATE_TEST_SUITE_P(Balances, WorkersStopping, all_balances(),
                         ::testing::PrintToStringParamName());

// ---- user code that stops or runs the workers' loops

TEST_P(WorkersStopping, StoppingLoopDoesNotStopItsWorker) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  const Address address = *workers->listen(
      Address::loopback_ipv4(0),
      [](Stream stream, const Address&) {
        stream.loop().stop();
        Echo::make(std::move(stream));
      },
      GetParam());
  std::atomic<int> calls{0};
  EXPECT_TRUE(workers->post_to_all([&](Loop& loop) { loop.stop(), ++calls; }));
  EXPECT_TRUE(workers->post_to_all([&](Loop& loop) { loop.stop_all(), ++calls; }));
  EXPECT_TRUE(workers->post_to_all([&](Loop& loop) { loop.unref(), loop.stop(), ++calls; }));
  EXPECT_TRUE(workers->post_to_all([&](Loop&) { ++calls; }));
  run_until([&] { return calls == 8; });
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(*loop_, address, echoed);
  run_until([&] { return echoed == 8; });
  clients.clear();
  EXPECT_TRUE(workers->stop(30s, [](Loop& loop) { loop.stop(); }));
}

TEST(Workers, EndWithoutStopThoughTheirLoopsWereStopped) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  std::latch stopped(2);
  EXPECT_TRUE(workers->post_to_all([&](Loop& loop) { loop.stop(), stopped.count_down(); }));
  stopped.wait();
}

TEST(Workers, StopDuringNestedRun) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 1});
  std::latch runs(1);
  EXPECT_TRUE(workers->post(0, [&, &loop = workers->loop(0)] {
    runs.count_down();
    loop.run();
  }));
  runs.wait();
  EXPECT_TRUE(workers->stop(30s));
}

TEST(Workers, BackOffWhenWaitingFailsAndCallPosts) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 1});
  FaultPlan plan;
  plan.fail_share(SystemCall::epoll_wait, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  std::latch first(1);
  EXPECT_TRUE(workers->post(0, [&] { first.count_down(); }));
  first.wait();
  const std::uint64_t before = plan.calls(SystemCall::epoll_wait);
  std::this_thread::sleep_for(200ms);  // Counts the calls during this time.
  EXPECT_LE(plan.calls(SystemCall::epoll_wait) - before, 30u);
  std::latch second(1);
  EXPECT_TRUE(workers->post(0, [&] { second.count_down(); }));
  second.wait();
  EXPECT_TRUE(workers->stop(30s));
}

// ---- after it

TEST_P(WorkersStopping, PreventsFurtherListening) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  EXPECT_TRUE(workers->stop(0s));
  EXPECT_EQ(workers->listen(Address::loopback_ipv4(0), kEcho, GetParam()).error(),
            std::errc::operation_canceled);
  EXPECT_EQ(workers->adopt(0, kEcho, GetParam()).error(), std::errc::operation_canceled);
}

TEST(Workers, DestroyEachTaskPostedDuringStop) {
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<Workers> workers = *Workers::create({.threads = 1});
    Loop& loop = workers->loop(0);
    const auto token = std::make_shared<int>();
    std::atomic<bool> is_over{false};
    std::atomic<bool> has_begun{false};
    std::thread other([&] {
      do {
        EXPECT_TRUE(loop.post([token] {}));
        has_begun = true;
      } while (!is_over);
    });
    while (!has_begun) std::this_thread::yield();
    EXPECT_TRUE(workers->stop(0s));
    is_over = true;
    other.join();
    EXPECT_TRUE(loop.post([token] {}));
    EXPECT_EQ(token.use_count(), 1);
  }
}

TEST(Workers, MayBeQueriedAndPostedToAfterStop) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  Loop& loop = workers->loop(1);
  std::atomic<bool> is_over{false};
  std::atomic<bool> was_refused{false};
  std::atomic<int> called{0};
  std::thread other([&] {
    while (!is_over) {
      if (!workers->post(1, [&] { ++called; })) was_refused = true;
      workers->loop(0).wake();
    }
  });
  while (called == 0) std::this_thread::yield();
  EXPECT_TRUE(workers->stop(0s));
  while (!was_refused) std::this_thread::yield();
  is_over = true;
  other.join();
  const int before = called;
  auto owned = std::make_shared<int>();
  EXPECT_FALSE(workers->post(0, [owned] {}));
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_FALSE(workers->post_to_all([&](Loop&) { ++called; }));
  loop.post([&] { ++called; });
  EXPECT_EQ(&loop, &workers->loop(1));
  EXPECT_EQ(workers->index_of(loop), 1u);
  EXPECT_EQ(workers->count(), 2u);
  EXPECT_EQ(workers->connections(0), 0u);
  EXPECT_TRUE(workers->stop(0s));
  EXPECT_EQ(called, before);
}

TEST_P(WorkersStopping, ReturnsSameResultWhenRepeated) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  const Address address = *workers->listen(Address::loopback_ipv4(0), kEcho, GetParam());
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(*loop_, address, echoed);
  run_until([&] { return echoed == 4; });
  EXPECT_FALSE(workers->stop(1ms));
  EXPECT_FALSE(workers->stop(30s));
  EXPECT_EQ(connections(*workers), 0u);
}

TEST_P(WorkersStopping, AcceptsAnyGrace) {
  for (const Nanos grace : {Nanos::max(), Nanos::min()}) {
    const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
    const Address address = *workers->listen(Address::loopback_ipv4(0), kEcho, GetParam());
    int echoed = 0;
    std::list<Client> clients;
    clients.emplace_back(*loop_, address, echoed);
    run_until([&] { return echoed == 1; });
    bool drained = false;
    std::thread stopper([&] { drained = workers->stop(grace); });
    if (grace < 0s) stopper.join();
    std::this_thread::sleep_for(10ms);  // Time in which it could wrongly have stopped waiting.
    clients.clear();
    if (grace > 0s) stopper.join();
    EXPECT_EQ(drained, grace > 0s);
  }
}

thread_local std::list<Stream> kept;

// The session is destroyed, and its connection waits for the peer's EOF. It is dropped when its
// loop is destroyed, and frees a place under the limit, but nothing accepts any more.
TEST_P(WorkersStopping, EndsLingeringConnectionsAtLimit) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  std::atomic<int> accepted{0};
  const Address address = *workers->listen(Address::loopback_ipv4(0),
                                           [&](Stream stream, const Address&) {
                                             stream.write("hello");
                                             kept.push_back(std::move(stream));
                                             ++accepted;
                                           },
                                           GetParam(), {.max_connections = 1});
  const sys::Descriptor peer(sys::open_socket(AF_INET, SOCK_STREAM));
  sys::connect(peer.get(), address.data(), address.size());
  run_until([&] { return accepted == 1; });
  EXPECT_TRUE(workers->stop(10ms, [](Loop&) { kept.clear(); })) << "it was sent all";
  EXPECT_EQ(connections(*workers), 0u);
}

// ---- the backlog

// Clients whose connections are in the backlog while every worker is busy.
class WorkersBacklog : public WorkersStopping {
 protected:
  // With one accept a turn, connections that the loops accept before stop() do not decide the test.
  void listen(std::size_t max = SIZE_MAX) {
    address_ = *workers_->listen(Address::loopback_ipv4(0), kEcho, GetParam(),
                                 {.accepts_per_turn = 1, .max_connections = max});
  }
  // The workers are released after stop() has told them to close their listeners.
  bool stop_with_clients(int count, Nanos grace) {
    std::latch busy(2);
    std::latch released(1);
    EXPECT_TRUE(workers_->post_to_all([&](Loop&) {
      busy.count_down();
      released.wait();
    }));
    busy.wait();
    for (int i = 0; i < count; ++i) {
      sockets_.emplace_back(sys::open_socket(AF_INET, SOCK_STREAM));
      const long result = sys::connect(sockets_.back().get(), address_.data(), address_.size());
      EXPECT_TRUE(result == 0 || result == -EINPROGRESS);
      EXPECT_TRUE(await(sockets_.back().get(), POLLOUT));
      EXPECT_EQ(sys::send(sockets_.back().get(), "hello", 5), 5);
      EXPECT_EQ(sys::shut_down_writing(sockets_.back().get()), 0);
    }
    std::thread releaser([&] {
      std::this_thread::sleep_for(20ms);
      released.count_down();
    });
    const bool drained = workers_->stop(grace, [&](Loop&) { ++drains_; });
    releaser.join();
    return drained;
  }
  int served() const {
    int served = 0;
    for (const sys::Descriptor& socket : sockets_) {
      await(socket.get(), POLLIN);
      char text[8];
      if (sys::receive(socket.get(), text, sizeof(text)) == 5) ++served;
    }
    return served;
  }

  std::unique_ptr<Workers> workers_ = *Workers::create({.threads = 2});
  Address address_;
  std::list<sys::Descriptor> sockets_;
  std::atomic<int> drains_{0};
};

INSTANTIATE_TEST_SUITE_P(Balances, WorkersBacklog, all_balances(),
                         ::testing::PrintToStringParamName());

TEST_P(WorkersBacklog, IsServedBeforeStop) {
  listen();
  EXPECT_TRUE(stop_with_clients(40, 30s));
  EXPECT_EQ(served(), 40);
  EXPECT_EQ(drains_, 2);
}

// The first worker hands a connection over while the second is busy. It is drained like all others,
// although the order to drain reached the second worker first.
TEST(Workers, DrainConnectionsHandedOverDuringStop) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  const auto keep = [](Stream stream, const Address&) {
    stream.write("!");
    kept.push_back(std::move(stream));
  };
  const Address address = *workers->listen(Address::loopback_ipv4(0), keep, Balance::round_robin);
  std::list<sys::Descriptor> peers;
  const auto come = [&] {
    peers.emplace_back(sys::open_socket(AF_INET, SOCK_STREAM));
    sys::connect(peers.back().get(), address.data(), address.size());
  };
  for (int i = 0; i < 2; ++i) {
    come();
    ASSERT_TRUE(await(peers.back().get(), POLLIN));
  }
  std::latch first_goes_on(1);
  std::latch second_goes_on(1);
  std::latch second_is_busy(1);
  workers->post(0, [&] { first_goes_on.wait(); });
  for (int i = 0; i < 6; ++i) come();
  std::atomic<std::size_t> told{0};
  std::thread stopper([&] {
    EXPECT_TRUE(workers->stop(30s, [&](Loop&) {
      told += kept.size();
      for (Stream& stream : kept) stream.abort();
      kept.clear();
    }));
  });
  std::this_thread::sleep_for(20ms);  // Time for stop() to reach both workers' listeners.
  workers->post(1, [&] {
    second_is_busy.count_down();
    second_goes_on.wait();
  });
  second_is_busy.wait();
  first_goes_on.count_down();
  std::this_thread::sleep_for(20ms);  // Time for drain() to reach both, if it does not wait.
  second_goes_on.count_down();
  stopper.join();
  EXPECT_EQ(told, 8u);
}

TEST_P(WorkersBacklog, IsResetWithoutGrace) {
  listen();
  stop_with_clients(10, 0s);
  EXPECT_LT(served(), 10);
  EXPECT_EQ(drains_, 0);
}

TEST_P(WorkersBacklog, IsServedUpToLimit) {
  listen(3);
  EXPECT_TRUE(stop_with_clients(10, 30s));
  EXPECT_GE(served(), 3);
  EXPECT_LE(served(), 4);
}

// ---- one process follows another

TEST_P(WorkersStopping, RefusesNoConnectionIfOthersListenAtSameSocket) {
  std::unique_ptr<Workers> before = *Workers::create({.threads = 2});
  const std::unique_ptr<Workers> after = *Workers::create({.threads = 2});
  Result<Listener> listener =
      Listener::create(*loop_, Address::loopback_ipv4(0), [](Stream, const Address&) {});
  const int fd = *listener->release();
  const int passed_on = static_cast<int>(sys::duplicate(fd));
  const Address address = *before->adopt(fd, kEcho, GetParam());
  int echoed = 0;
  std::list<Client> clients;
  const auto come = [&](int number) {
    clients.emplace_back(*loop_, address, echoed);
    run_until([&] { return echoed >= number - 16; });
    std::erase_if(clients, [](const Client& client) { return client.is_served(); });
  };
  for (int i = 1; i <= 100; ++i) come(i);
  ASSERT_TRUE(after->adopt(passed_on, kEcho, GetParam()));
  bool drained = false;
  std::thread stopper([&] { drained = before->stop(30s); });
  for (int i = 101; i <= 400; ++i) come(i);
  run_until([&] { return echoed == 400; });
  clients.clear();
  stopper.join();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(after->stop(30s));
}

TEST(Workers, AdoptOnlyListeningSockets) {
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 1});
  const sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
  EXPECT_EQ(workers->adopt(socket.get(), kEcho).error(), std::errc::invalid_argument);
  EXPECT_TRUE(sys::is_open(socket.get()));
  EXPECT_EQ(workers->adopt(-1, kEcho).error(), std::errc::bad_file_descriptor);
}

// ---- connections that cannot be taken are not counted

TEST(Workers, DoNotCountConnectionsWithoutMemory) {
  FaultPlan plan;
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  EXPECT_TRUE(workers->post_to_all([](Loop& one) { one.reserve(1024, 64); }));
  const Address address = *workers->listen(Address::loopback_ipv4(0), kEcho, Balance::round_robin);
  std::list<sys::Descriptor> sockets;
  const auto come = [&] {
    sockets.emplace_back(sys::open_socket(AF_INET, SOCK_STREAM));
    sys::connect(sockets.back().get(), address.data(), address.size());
    EXPECT_TRUE(await(sockets.back().get(), POLLOUT));
    sys::send(sockets.back().get(), "?", 1);
    EXPECT_TRUE(await(sockets.back().get(), POLLIN));
    char text[8];
    return sys::receive(sockets.back().get(), text, sizeof(text)) > 0;
  };
  // Memory for connections comes in blocks of 64. The first worker accepts, so it always has the
  // next block earlier.
  for (int i = 0; i < 129; ++i) ASSERT_TRUE(come());
  {
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    EXPECT_FALSE(come());
  }
  EXPECT_EQ(workers->connections(0), 65u);
  EXPECT_EQ(workers->connections(1), 64u);
  sockets.clear();
  EXPECT_TRUE(workers->stop(30s));
}

TEST(Workers, DoNotCountConnectionsThatCannotBeHandedOver) {
  FaultPlan plan;
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 1});
  EXPECT_TRUE(workers->post_to_all([](Loop& one) { one.reserve(1024, 64); }));
  const Address address = *workers->listen(Address::loopback_ipv4(0), kEcho, Balance::round_robin);
  const auto is_served = [&] {
    const sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
    sys::connect(socket.get(), address.data(), address.size());
    EXPECT_TRUE(await(socket.get(), POLLOUT));
    sys::send(socket.get(), "?", 1);
    EXPECT_TRUE(await(socket.get(), POLLIN));
    char text[8];
    return sys::receive(socket.get(), text, sizeof(text)) > 0;
  };
  int refused = 0;
  {
    ASSERT_TRUE(is_served());
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    for (int i = 0; i < 300 && refused == 0; ++i) refused += is_served() ? 0 : 1;
  }
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(workers->stop(30s));
}

// ---- misuse

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

TEST(WorkersDeathTest, WaitingForItselfTraps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto on_a_worker = [](const std::function<void(Workers&)>& misuse) {
    std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
    std::latch done(1);
    workers->post(1, [&] { misuse(*workers), done.count_down(); });
    done.wait();
  };
  EXPECT_DEATH(on_a_worker([](Workers& workers) { workers.stop(1s); }),
               "Workers::stop.*a worker cannot wait");
  EXPECT_DEATH(on_a_worker([](Workers& workers) {
                 std::ignore = workers.listen(Address::loopback_ipv4(0), kEcho);
               }),
               "");
  EXPECT_DEATH(on_a_worker([](Workers& workers) { std::ignore = workers.adopt(0, kEcho); }), "");
  // A worker's thread may own other Workers.
  on_a_worker([](Workers&) {
    const std::unique_ptr<Workers> own = *Workers::create({.threads = 1});
    EXPECT_TRUE(own->listen(Address::loopback_ipv4(0), kEcho));
    EXPECT_TRUE(own->stop(1s));
  });
}

#endif

}  // namespace
}  // namespace spate::testing
