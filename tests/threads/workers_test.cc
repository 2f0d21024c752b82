// Workers: connections are distributed as configured, and stopping waits for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/own_loopback.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Balances, WorkersTest, all_balances(),
                         ::testing::PrintToStringParamName());

TEST_P(WorkersTest, DistributeConnections) {
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 3});
  ASSERT_TRUE(workers);
  const auto address = (*workers)->listen(Address::loopback_ipv4(0), kEcho, GetParam());
  ASSERT_TRUE(address) << address.error().message();
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 60; ++i) clients.emplace_back(*loop_, *address, echoed);
  run_until([&] { return echoed == 60; });
  EXPECT_EQ(connections(**workers), 60u);
  for (unsigned i = 0; i < 3; ++i) {
    const std::size_t count = (*workers)->connections(i);
    if (GetParam() == Balance::round_robin || GetParam() == Balance::least_connections) {
      EXPECT_EQ(count, 20u);
    } else if (GetParam() == Balance::peer_hash) {
      EXPECT_TRUE(count == 0 || count == 60) << count;
    }
  }
  clients.clear();
  EXPECT_TRUE((*workers)->stop(5s));
  EXPECT_EQ(Echo::alive, 0);
}

TEST_P(WorkersTest, ClosedListenerAcceptsNoMore) {
  const auto workers = must(Workers::create({.threads = 2}));
  std::atomic<int> accepted{0};
  struct Counting final : WorkerService {
    explicit Counting(std::atomic<int>& to) : count(to) {}
    void on_accept(Stream stream, const Address& peer) override {
      ++count;
      kEcho(std::move(stream), peer);
    }
    std::atomic<int>& count;
  };
  const auto listener = must(workers->open(
      own_address(0), [&](Loop&) { return std::make_unique<Counting>(accepted); }, GetParam()));
  const Address other = must(workers->listen(Address::loopback_ipv4(0), kEcho, GetParam()));
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(*loop_, listener.address(), echoed);
  run_until([&] { return echoed == 20; });
  std::atomic<int> closed{0};
  std::atomic<int> elsewhere{0};
  listener.close([&](Loop& loop) {
    if (accepted != 20 || workers->index_of(loop) == workers->count()) ++elsewhere;
    ++closed;
  });
  run_until([&] { return closed == 2; });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(Echo::alive, 20);
  std::optional<std::error_code> error;
  const Connecting refused = connect(*loop_, listener.address(), [&](Result<Stream> made) {
    error = made ? std::error_code() : made.error();
  });
  run_until([&] { return error.has_value(); });
  EXPECT_EQ(*error, std::errc::connection_refused);
  clients.emplace_back(*loop_, other, echoed);
  run_until([&] { return echoed == 21; });
  listener.close();  // Again.
  clients.clear();
  EXPECT_TRUE(workers->stop(5s));
  listener.close();
}

TEST_P(WorkersTest, SecondCopyIsRefusedPort) {
  for (const Address& wanted : {Address::loopback_ipv4(0), Address::any_ipv6(0)}) {
    const auto first = Workers::create({.threads = 2});
    const auto second = Workers::create({.threads = 2});
    ASSERT_TRUE(first && second);
    const auto address = (*first)->listen(wanted, kEcho, GetParam());
    ASSERT_TRUE(address) << address.error().message();
    const auto again = (*second)->listen(*address, kEcho, GetParam());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error(), std::errc::address_in_use);
    const auto shared = (*second)->listen(*address, kEcho, GetParam(), {.reuse_port = true});
    EXPECT_EQ(shared.has_value(), GetParam() == Balance::reuse_port);
  }
}

TEST_P(WorkersTest, CopiesSharePortIfBothAllowIt) {
  const auto first = Workers::create({.threads = 2});
  const auto second = Workers::create({.threads = 2});
  ASSERT_TRUE(first && second);
  const ListenOptions options{.reuse_port = true};
  const auto address = (*first)->listen(Address::loopback_ipv4(0), kEcho, GetParam(), options);
  ASSERT_TRUE(address) << address.error().message();
  EXPECT_TRUE((*second)->listen(*address, kEcho, GetParam(), options));
  EXPECT_EQ((*second)->listen(*address, kEcho, GetParam()).error(), std::errc::address_in_use);
}

TEST_P(WorkersTest, RespectConnectionLimit) {
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  ASSERT_TRUE(workers);
  const auto address =
      (*workers)->listen(Address::loopback_ipv4(0), kEcho, GetParam(), {.max_connections = 4});
  ASSERT_TRUE(address);
  int echoed = 0;
  std::list<Client> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(*loop_, *address, echoed);
  const std::size_t max = GetParam() == Balance::reuse_port ? 5 : 4;
  for (int served = 4; served <= 40; ++served) {  // Each closed connection frees a place.
    run_until([&] { return echoed >= served; });
    EXPECT_LE(connections(**workers), max);
    const auto done = std::ranges::find_if(clients, &Client::is_served);
    ASSERT_NE(done, clients.end());
    clients.erase(done);
  }
  clients.clear();
  EXPECT_TRUE((*workers)->stop(5s));
}

TEST_P(WorkersTest, EndWhenGraceExpires) {
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  ASSERT_TRUE(workers);
  std::mutex mutex;
  std::list<Stream> kept;
  const auto address = (*workers)->listen(
      Address::loopback_ipv4(0),
      [&](Stream stream, const Address&) {
        const std::scoped_lock lock(mutex);
        kept.push_back(std::move(stream));
      },
      GetParam());
  ASSERT_TRUE(address);
  int results = 0;
  std::list<Connecting> attempts;
  std::list<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    attempts.push_back(connect(*loop_, *address, [&](Result<Stream> made) {
      ++results;
      if (made) streams.push_back(std::move(*made));
    }));
  }
  run_until([&] { return results == 4 && connections(**workers) == 4; });
  EXPECT_FALSE((*workers)->stop(20ms));
  for (const Stream& stream : kept) EXPECT_FALSE(stream.is_open());
}

// Answers each byte with one, and closes on request.
class Answering final : public StreamHandler {
 public:
  static inline std::atomic<std::size_t> written{0};

  explicit Answering(Stream stream) : stream_(std::move(stream)) {
    stream_.start(*this);
    sessions.insert(this);
  }
  std::size_t on_data(Bytes bytes) override {
    if (stream_.write(bytes)) written += bytes.size();
    return bytes.size();
  }
  void on_closed(std::error_code) override { delete this; }
  static void close_all() {
    for (Answering* session : sessions) session->stream_.close();
  }

 private:
  ~Answering() { sessions.erase(this); }

  static inline thread_local std::set<Answering*> sessions;
  Stream stream_;
};

// Sends without a pause, and counts the bytes that return.
class SendingClient final : public StreamHandler {
 public:
  SendingClient(Loop& loop, const Address& address) {
    connecting_ = connect(loop, address, [this](Result<Stream> made) {
      ASSERT_TRUE(made) << made.error().message();
      stream_ = std::move(*made);
      stream_.set_half_open(true);
      stream_.start(*this);
      for (int i = 0; i < 100; ++i) stream_.write("?");
    });
  }
  std::size_t on_data(Bytes bytes) override {
    answered_ += bytes.size();
    stream_.write(bytes);
    return bytes.size();
  }
  void on_end() override { stream_.end(); }
  void on_closed(std::error_code error) override {
    EXPECT_FALSE(error) << error.message();
    closed_ = true;
  }
  std::size_t answered() const { return answered_; }
  bool is_closed() const { return closed_; }

 private:
  Connecting connecting_;
  Stream stream_;
  std::size_t answered_ = 0;
  bool closed_ = false;
};

TEST_P(WorkersTest, LoseNoResponseWhenStoppedUnderLoad) {
  Answering::written = 0;
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  ASSERT_TRUE(workers);
  const auto address = (*workers)->listen(
      Address::loopback_ipv4(0),
      [](Stream stream, const Address&) { new Answering(std::move(stream)); }, GetParam());
  ASSERT_TRUE(address);
  std::list<SendingClient> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(*loop_, *address);
  run_until([&] {
    return std::ranges::all_of(clients,
                               [](const SendingClient& client) { return client.answered() > 500; });
  });
  bool drained = false;
  std::thread stopper(
      [&] { drained = (*workers)->stop(30s, [](Loop&) { Answering::close_all(); }); });
  run_until([&] { return std::ranges::all_of(clients, &SendingClient::is_closed); });
  stopper.join();
  EXPECT_TRUE(drained);
  std::size_t answered = 0;
  for (const SendingClient& client : clients) answered += client.answered();
  EXPECT_EQ(answered, Answering::written);
}

TEST_P(WorkersTest, ReportGraceExpiryWhenThreadLocalSessionsEnd) {
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  ASSERT_TRUE(workers);
  const auto address = (*workers)->listen(
      Address::loopback_ipv4(0),
      [](Stream stream, const Address&) {
        thread_local std::list<Stream> kept;
        kept.push_back(std::move(stream));
      },
      GetParam());
  ASSERT_TRUE(address);
  std::optional<Stream> guest;
  const Connecting attempt = connect(*loop_, *address, [&](Result<Stream> made) {
    ASSERT_TRUE(made) << made.error().message();
    guest = std::move(*made);
  });
  run_until([&] { return guest && connections(**workers) == 1; });
  EXPECT_FALSE((*workers)->stop(20ms));
}

TEST(Workers, CallPostsOnTheirThreads) {
  Result<std::unique_ptr<Workers>> workers =
      Workers::create({.threads = 4, .name = "test", .pin = true});
  ASSERT_TRUE(workers);
  EXPECT_EQ((*workers)->count(), 4u);
  std::mutex mutex;
  std::multiset<Loop*> called;
  std::atomic<int> calls{0};
  EXPECT_TRUE((*workers)->post_to_all([&](Loop& loop) {
    const std::scoped_lock lock(mutex);
    called.insert(&loop);
    ++calls;
  }));
  EXPECT_TRUE((*workers)->post(2, [&] { ++calls; }));
  EXPECT_TRUE((*workers)->stop(1s));
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(called.size(), 4u);
}

TEST(Workers, ReportWhyTheyCannotListen) {
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  ASSERT_TRUE(workers);
  const auto ignore = [](Stream, const Address&) {};
  EXPECT_EQ((*workers)->listen(Address(), ignore).error(), std::errc::invalid_argument);
  EXPECT_EQ((*workers)->listen(*Address::parse("192.0.2.1:1"), ignore).error(),
            std::errc::address_not_available);
}

}  // namespace
}  // namespace spate::testing
