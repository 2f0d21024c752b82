// serve() on Workers: sessions live and end on their worker's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "spate/error.h"
#include "spate/net/server.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

struct Counts {
  std::atomic<int> alive{0};
  std::atomic<int> drained{0};
  std::atomic<int> closed{0};
  std::atomic<int> late{0};
  std::atomic<int> elsewhere{0};
  bool closes = true;
};

class Counting : public Session {
 public:
  explicit Counting(Counts& counts) : counts_(counts) { ++counts_.alive; }
  ~Counting() override {
    look();
    --counts_.alive;
  }

  std::size_t on_data(Bytes bytes) override {
    look();
    stream().write(bytes);
    return bytes.size();
  }
  void on_drain() override {
    look();
    ++counts_.drained;
    if (counts_.closes) Session::on_drain();
  }
  void on_closed(std::error_code error) override {
    look();
    ++counts_.closed;
    if (error == Error::deadline) ++counts_.late;
  }

 private:
  void look() {
    if (std::this_thread::get_id() != thread_) ++counts_.elsewhere;
  }

  Counts& counts_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

class ServingOnWorkers : public WorkersTest {
 protected:
  void serve() {
    const Result<WorkersServer> server = spate::serve<Counting>(
        *workers_, Address::loopback_ipv4(0), {.balance = GetParam()}, std::ref(counts_));
    ASSERT_TRUE(server) << server.error().message();
    for (int i = 0; i < 6; ++i) clients_.emplace_back(*loop_, server->address(), echoed_);
    run_until([&] { return echoed_ == 6; });
  }
  void expect_all_gone() {
    EXPECT_EQ(counts_.alive, 0);
    EXPECT_EQ(counts_.elsewhere, 0);
  }

  std::unique_ptr<Workers> workers_ = *Workers::create({.threads = 2});
  Counts counts_;
  int echoed_ = 0;
  std::list<Client> clients_;
};
INSTANTIATE_TEST_SUITE_P(Balances, ServingOnWorkers,
                         ::testing::Values(Balance::reuse_port, Balance::round_robin),
                         ::testing::PrintToStringParamName());

TEST_P(ServingOnWorkers, StopDrainsSessions) {
  serve();
  std::atomic<bool> is_done{false};
  bool all = false;
  std::thread stopping([&] {
    all = workers_->stop(30s);
    is_done = true;
  });
  run_until([&] { return is_done.load(); });
  stopping.join();
  EXPECT_TRUE(all);
  EXPECT_EQ(counts_.drained, 6);
  EXPECT_EQ(counts_.closed, 6);
  EXPECT_EQ(counts_.late, 0);
  expect_all_gone();
}

TEST_P(ServingOnWorkers, LateSessionsAreClosedWhenGraceExpires) {
  counts_.closes = false;
  serve();
  EXPECT_FALSE(workers_->stop(20ms));
  EXPECT_EQ(counts_.drained, 6);
  EXPECT_EQ(counts_.closed, 6);
  EXPECT_EQ(counts_.late, 6);
  expect_all_gone();
}

TEST_P(ServingOnWorkers, DestructionEndsSessions) {
  serve();
  workers_.reset();
  EXPECT_EQ(counts_.drained, 0);
  EXPECT_EQ(counts_.closed, 6);
  expect_all_gone();
}

TEST_P(ServingOnWorkers, SessionsEndByThemselves) {
  serve();
  clients_.clear();
  run_until([&] { return counts_.alive == 0; });
  EXPECT_EQ(counts_.closed, 6);
  EXPECT_TRUE(workers_->stop(30s));
  expect_all_gone();
}

TEST(Workers, MayCreateServiceEach) {
  struct Telling final : WorkerService {
    explicit Telling(std::atomic<int>& counter) : services(counter) { ++services; }
    ~Telling() override { --services; }
    void on_accept(Stream stream, const Address&) override { Echo::make(std::move(stream)); }
    std::atomic<int>& services;
  };
  std::atomic<int> services{0};
  const std::unique_ptr<Workers> workers = *Workers::create({.threads = 2});
  const Result<Address> address = workers->listen(
      Address::loopback_ipv4(0),
      [&services](Loop&) -> std::unique_ptr<WorkerService> {
        return std::make_unique<Telling>(services);
      },
      Balance::round_robin);
  ASSERT_TRUE(address);
  EXPECT_EQ(services, 0);
  const std::unique_ptr<Loop> loop = *Loop::create();
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(*loop, *address, echoed);
  while (echoed < 4) loop->run(Run::once);
  EXPECT_EQ(services, 2);
  workers->stop(0ms);
  EXPECT_EQ(services, 0);
}

}  // namespace
}  // namespace spate::testing
