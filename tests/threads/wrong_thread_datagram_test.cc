// A Datagram belongs to its loop's thread. In debug builds, a call from another thread while the
// loop runs aborts the process.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/net/datagram.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

class Deaf final : public DatagramHandler {
 public:
  void on_packets(std::span<const Packet>) override {}
};

// Calls `misuse` on a second thread while the loop is inside run().
void misuse_while_it_runs(const std::function<void(Datagram&)>& misuse) {
  const auto loop = std::move(*Loop::create());
  Datagram socket = std::move(*Datagram::create(*loop, Address::loopback_ipv4(0)));
  std::atomic<bool> runs{false};
  Idle idle(*loop, [&runs] { runs.store(true); });
  idle.start();
  std::thread other([&] {
    while (!runs.load()) std::this_thread::yield();
    misuse(socket);
    loop->post([&loop] { loop->stop(); });
  });
  loop->run();
  other.join();
}

const Address kPeer = Address::loopback_ipv4(9);
const Outgoing kPacket{.bytes = bytes_of("x"), .peer = &kPeer};

struct DatagramMisuse {
  const char* name;
  void (*does)(Datagram& socket);
};
void PrintTo(const DatagramMisuse& misuse, std::ostream* out) { *out << misuse.name; }

const DatagramMisuse kDatagramMisuses[] = {
    {"Start",
     [](Datagram& socket) {
       Deaf deaf;
       socket.start(deaf);
     }},
    {"Pause", [](Datagram& socket) { socket.pause(); }},
    {"Resume", [](Datagram& socket) { socket.resume(); }},
    {"Connect", [](Datagram& socket) { (void)socket.connect(kPeer); }},
    {"Send", [](Datagram& socket) { (void)socket.send(bytes_of("x"), kPeer); }},
    {"SendToThePeer", [](Datagram& socket) { (void)socket.send(bytes_of("x")); }},
    {"SendABatch", [](Datagram& socket) { (void)socket.send({&kPacket, 1}); }},
    {"SendSegments", [](Datagram& socket) { (void)socket.send_segments({}, 1, kPeer); }},
    {"SetAnOption", [](Datagram& socket) { (void)socket.set_hops(7); }},
    {"LocalAddress", [](Datagram& socket) { (void)socket.local_address(); }},
    {"Destroy", [](Datagram& socket) { socket = Datagram(); }},
};

class DatagramThreadDeathTest : public ::testing::TestWithParam<DatagramMisuse> {
 protected:
  DatagramThreadDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

INSTANTIATE_TEST_SUITE_P(, DatagramThreadDeathTest, ::testing::ValuesIn(kDatagramMisuses),
                         ::testing::PrintToStringParamName());

TEST_P(DatagramThreadDeathTest, MisuseTraps) {
  EXPECT_DEATH(misuse_while_it_runs(GetParam().does), "another thread is running this loop");
}

TEST(DatagramThread, MayChangeBetweenRuns) {
  const auto loop = std::move(*Loop::create());
  Datagram socket = std::move(*Datagram::create(*loop, Address::loopback_ipv4(0)));
  loop->run(Run::no_wait);
  std::thread([&] { EXPECT_FALSE(socket.set_hops(7)); }).join();
}

}  // namespace
}  // namespace spate

#endif
