// DatagramGroup: packets reach the worker that their contents select.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spate/loop.h"
#include "spate/net/bytes.h"
#include "spate/net/datagram_group.h"
#include "spate/net/workers.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kWorkers = 3;

// The behaviour of a test's services, and their counts.
struct Plan {
  explicit Plan(Workers& team) : workers(team) {}

  Workers& workers;
  std::atomic<int> alive = 0;
  std::atomic<int> packets = 0;
  std::atomic<int> wrong = 0;      // Calls on another thread than the worker's.
  std::atomic<int> fd = -1;        // A socket of the group.
  bool fails = false;              // make() returns nullptr for the last worker.
  std::function<void(Loop&)> act;  // Called with each batch.
};

// Responds to a packet with the number of its worker and the packet.
class Answering final : public DatagramService {
 public:
  Answering(Plan& plan, Loop& loop, const Datagram& socket)
      : plan_(plan), loop_(loop), index_(plan.workers.index_of(loop)) {
    ++plan_.alive;
    plan_.fd = socket.fd();
  }
  ~Answering() override {
    plan_.wrong += thread_ != std::this_thread::get_id();
    --plan_.alive;
  }

 private:
  void on_packets(Datagram& socket, std::span<const Packet> packets) override {
    plan_.wrong += thread_ != std::this_thread::get_id();
    for (const Packet& packet : packets) {
      ++plan_.packets;
      const std::string text = std::to_string(index_) + std::string(text_of(packet.bytes));
      const Outgoing response{.bytes = bytes_of(text),
                              .peer = &packet.peer,
                              .local = packet.local.is_ip() ? &packet.local : nullptr,
                              .ecn = packet.ecn};
      EXPECT_EQ(socket.send({&response, 1}), 1u);
    }
    if (plan_.act) plan_.act(loop_);
  }

  Plan& plan_;
  Loop& loop_;
  const unsigned index_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

DatagramGroup::MakeService answering(Plan& plan) {
  return [&plan](Loop& loop, Datagram& socket) -> std::unique_ptr<DatagramService> {
    if (plan.fails && plan.workers.index_of(loop) == kWorkers - 1) return nullptr;
    return std::make_unique<Answering>(plan, loop, socket);
  };
}

// A client that sends texts, and keeps the responses.
class DatagramClient final : public DatagramHandler {
 public:
  DatagramClient(Loop& loop, const Address& server)
      : loop_(loop), server_(server), socket_(must(Datagram::create(loop, Address::any_ipv4(0)))) {
    socket_.start(*this);
  }
  std::string ask(const std::string& text) {
    response_.clear();
    EXPECT_FALSE(socket_.send(bytes_of(text), server_));
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (response_.empty() && std::chrono::steady_clock::now() < limit)
      EXPECT_FALSE(loop_.run(Run::no_wait));
    return response_;
  }
  Datagram& socket() { return socket_; }
  const Address& source() const { return source_; }

 private:
  void on_packets(std::span<const Packet> packets) override {
    response_ = text_of(packets.back().bytes);
    source_ = packets.back().peer;
  }

  Loop& loop_;
  const Address server_;
  Datagram socket_;
  std::string response_;
  Address source_;
};

class DatagramGroupTest : public ::testing::Test {
 protected:
  std::unique_ptr<DatagramGroup> group(const DatagramGroupOptions& options = {},
                                       const Address& address = Address::loopback_ipv4(0)) {
    auto made = DatagramGroup::create(*workers_, address, answering(plan_), options);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : nullptr;
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::unique_ptr<Workers> workers_ = must(Workers::create({.threads = kWorkers}));
  Plan plan_{*workers_};
};

TEST_F(DatagramGroupTest, DistributesPeersOverWorkers) {
  auto made = group();
  std::set<char> seen;
  for (int i = 0; i < 200 && seen.size() < kWorkers; ++i) {
    DatagramClient client(*loop_, made->address());
    const std::string first = client.ask("hello");
    ASSERT_EQ(first.substr(1), "hello");
    EXPECT_EQ(client.ask("hello"), first) << "a peer stays at its worker";
    seen.insert(first[0]);
  }
  EXPECT_EQ(seen.size(), kWorkers);
  EXPECT_EQ(made->worker_of(bytes_of("any text")), 0u);
  made.reset();
  EXPECT_EQ(plan_.alive, 0);
  EXPECT_EQ(plan_.wrong, 0);
}

TEST_F(DatagramGroupTest, SteersPacketsByTheirContents) {
  auto made = group({.steering = {.offset = 1, .mask = 0xff}});
  DatagramClient one(*loop_, made->address());
  DatagramClient other(*loop_, made->address());
  for (unsigned number = 0; number < 256; ++number) {
    const std::string text{'x', 'y', 'y', 'y', static_cast<char>(number), 'z'};
    const std::string expected = std::to_string(number % kWorkers) + text;
    EXPECT_EQ(one.ask(text), expected);
    EXPECT_EQ(other.ask(text), expected);
    EXPECT_EQ(made->worker_of(bytes_of(text)), number % kWorkers);
  }
  EXPECT_EQ(one.ask("xyyy"), "0xyyy") << "it ends before the number";
  EXPECT_EQ(made->worker_of(bytes_of("xyyy")), 0u);
  EXPECT_EQ(made->dropped(), 0u);
}

// Makes the kernel select the group's first socket for all packets.
void stop_steering(int fd) {
  sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{.len = 1, .filter = filter};
  ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)), 0);
}

const std::string kToSecond("\0\0\0\1", 4);
constexpr DatagramSteering kByNumber{.offset = 0, .mask = 0xff};

TEST_F(DatagramGroupTest, PassesPacketsOnWhenKernelDoesNotSteer) {
  const auto made = group({.socket = {.local_address = true, .ecn = true}, .steering = kByNumber},
                          Address::any_ipv4(0));
  stop_steering(plan_.fd);
  DatagramClient client(*loop_, *Address::ip("127.0.0.9", made->address().port()));
  EXPECT_FALSE(client.socket().set_ecn(Ecn::congested));
  const std::string to_first(4, 0);
  EXPECT_EQ(client.ask(to_first), '0' + to_first);
  EXPECT_EQ(made->forwarded(), 0u);
  EXPECT_EQ(client.ask(kToSecond), '1' + kToSecond);
  EXPECT_EQ(client.source().host(), "127.0.0.9") << "the destination is passed on";
  EXPECT_EQ(client.ask(to_first), '0' + to_first);
  EXPECT_EQ(made->forwarded(), 1u);
  EXPECT_EQ(made->dropped(), 0u);
  EXPECT_EQ(plan_.wrong, 0);
}

TEST_F(DatagramGroupTest, DropsPacketsForBusyWorkerBeyondLimit) {
  const auto made = group({.steering = kByNumber, .max_forwarded = 2});
  stop_steering(plan_.fd);
  std::atomic<bool> is_busy = false;
  std::atomic<bool> may_go_on = false;
  ASSERT_TRUE(workers_->post(1, [&] {
    is_busy = true;
    while (!may_go_on) std::this_thread::yield();
  }));
  while (!is_busy) std::this_thread::yield();
  DatagramClient client(*loop_, made->address());
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(client.socket().send(bytes_of(kToSecond), made->address()));
  while (made->forwarded() + made->dropped() < 5) std::this_thread::yield();
  EXPECT_EQ(made->forwarded(), 2u);
  EXPECT_EQ(made->dropped(), 3u);
  may_go_on = true;
  while (plan_.packets < 2) std::this_thread::yield();
  EXPECT_EQ(client.ask(kToSecond), '1' + kToSecond);
}

TEST_F(DatagramGroupTest, EndsWhileServiceRunsLoop) {
  std::atomic<bool> is_inside = false;
  std::atomic<bool> may_return = false;
  plan_.act = [&](Loop& loop) {
    is_inside = true;
    while (!may_return) EXPECT_FALSE(loop.run(Run::no_wait));
  };
  auto made = group();
  DatagramClient client(*loop_, made->address());
  EXPECT_FALSE(client.socket().send(bytes_of("x"), made->address()));
  while (!is_inside) std::this_thread::yield();
  made.reset();
  EXPECT_EQ(plan_.alive, 1);
  may_return = true;
  while (plan_.alive > 0) std::this_thread::yield();
  EXPECT_EQ(plan_.wrong, 0);
}

TEST_F(DatagramGroupTest, SecondCopyIsRefusedAddress) {
  const auto made = group({.steering = {.mask = 1}});
  const auto again = DatagramGroup::create(*workers_, made->address(), answering(plan_));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), std::errc::address_in_use);
}

TEST_F(DatagramGroupTest, CopiesShareAddressIfBothAllowIt) {
  const auto made = group({.socket = {.reuse_port = true}});
  EXPECT_TRUE(DatagramGroup::create(*workers_, made->address(), answering(plan_),
                                    {.socket = {.reuse_port = true}}));
  EXPECT_EQ(plan_.alive, int{kWorkers});
}

TEST_F(DatagramGroupTest, RejectsInvalidOptions) {
  const auto fails = [&](const Address& address, const DatagramGroupOptions& options) {
    return DatagramGroup::create(*workers_, address, answering(plan_), options).error();
  };
  const Address any = Address::any_ipv4(0);
  EXPECT_EQ(fails(Address(), {}), std::errc::invalid_argument);
  EXPECT_EQ(fails(*Address::abstract("spate group"), {}), std::errc::invalid_argument);
  EXPECT_EQ(fails(any, {.socket = {.packet_size = 0}}), std::errc::invalid_argument);
  EXPECT_EQ(fails(any, {.socket = {.reuse_port = true}, .steering = {.mask = 1}}),
            std::errc::invalid_argument);
  EXPECT_EQ(fails(*Address::ip("192.0.2.1", 0), {}), std::errc::address_not_available);
  EXPECT_EQ(plan_.alive, 0);
}

TEST_F(DatagramGroupTest, EndsServicesOfAllWorkersIfOneIsNotMade) {
  plan_.fails = true;
  const auto made = DatagramGroup::create(*workers_, Address::loopback_ipv4(0), answering(plan_));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), std::errc::not_enough_memory);
  EXPECT_EQ(plan_.alive, 0);
}

TEST_F(DatagramGroupTest, EndsWithWorkers) {
  auto made = group();
  DatagramClient client(*loop_, made->address());
  EXPECT_EQ(client.ask("x").substr(1), "x");
  EXPECT_TRUE(workers_->stop(5s));
  EXPECT_EQ(plan_.alive, 0);
  made.reset();
  EXPECT_EQ(DatagramGroup::create(*workers_, Address::loopback_ipv4(0), answering(plan_)).error(),
            std::errc::operation_canceled);
}

TEST_F(DatagramGroupTest, OutlivesWorkers) {
  const auto made = group();
  workers_.reset();
  EXPECT_EQ(plan_.alive, 0);
  EXPECT_EQ(made->address().host(), "127.0.0.1");
}

}  // namespace
}  // namespace spate::testing
