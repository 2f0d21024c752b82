// The handles of a running loop belong to the thread that runs it, as the loop does.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <tuple>

#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/net/session.h"
#include "spate/offload.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

struct Quiet : Session {
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
};

// An active object of each kind: the name server never answers.
struct Handles {
  explicit Handles(Loop& its_loop) : loop(its_loop) {
    (void)configure_resolver(
        loop,
        {.servers = {silent.local_address()}, .resolv_conf = "/dev/null", .hosts = "/dev/null"});
    begin_connecting();
    begin_resolving();
    auto pair = Stream::memory_pair(loop).value();
    relaying = relay(std::move(pair.first), std::move(pair.second), [](const RelayResult&) {});
    const ProcessOptions waiting{.file = "cat", .input = Stdio::pipe()};  // It ends with us.
    process = spawn(loop, waiting, [](const Child&) {}).value();
    job =
        offload(loop, [] { std::this_thread::sleep_for(std::chrono::minutes(1)); }, [] {}).value();
    sessions.emplace(loop);
    pair = Stream::memory_pair(loop).value();
    sessions->open(std::move(pair.first));
    peer = std::move(pair.second);
  }
  void begin_connecting() {
    connecting = connect(loop, "a.test", 1, [](Result<Stream>) {});
  }
  void begin_resolving() {
    resolving = resolve(loop, "a.test", 1, [](const auto&) {});
  }

  Loop& loop;
  Datagram silent = *Datagram::create(loop, Address::loopback_ipv4(0));
  std::optional<Listener> listener =
      *Listener::create(loop, Address::loopback_ipv4(0), [](Stream, const Address&) {});
  std::optional<Client> client = *Client::create(loop, listener->address(), [](Result<Stream>) {});
  Connecting connecting;
  Resolving resolving;
  Relaying relaying;
  Process process;
  Offloading job;
  std::optional<Sessions<Quiet>> sessions;
  Stream peer;
};

// Calls `misuse` on a second thread while the loop is inside run().
void misuse_while_it_runs(const std::function<void(Handles&)>& misuse) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  Handles handles(*loop);
  std::atomic<bool> runs{false};
  Idle idle(*loop, [&runs] { runs.store(true); });
  idle.start();
  std::thread other([&] {
    while (!runs.load()) std::this_thread::yield();
    misuse(handles);
    loop->post([&loop] { loop->stop(); });
  });
  loop->run();
  other.join();
}

struct HandleMisuse {
  const char* name;
  void (*does)(Handles& handles);
};
void PrintTo(const HandleMisuse& misuse, std::ostream* out) { *out << misuse.name; }

const HandleMisuse kHandleMisuses[] = {
    {"ListenerConnections", [](Handles& all) { std::ignore = all.listener->connections(); }},
    {"ListenerAddress", [](Handles& all) { std::ignore = all.listener->address(); }},
    {"ListenerRelease", [](Handles& all) { std::ignore = all.listener->release(); }},
    {"ListenerPause", [](Handles& all) { all.listener->pause(); }},
    {"ListenerResume", [](Handles& all) { all.listener->resume(); }},
    {"ListenerClose", [](Handles& all) { all.listener->close(); }},
    {"ListenerDestroy", [](Handles& all) { all.listener.reset(); }},
    {"ClientState", [](Handles& all) { std::ignore = all.client->state(); }},
    {"ClientConnect", [](Handles& all) { all.client->connect(); }},
    {"ClientStop", [](Handles& all) { all.client->stop(); }},
    {"ClientDestroy", [](Handles& all) { all.client.reset(); }},
    {"ConnectingCancel", [](Handles& all) { all.connecting.cancel(); }},
    {"Connect", [](Handles& all) { all.begin_connecting(); }},
    {"ResolvingCancel", [](Handles& all) { all.resolving.cancel(); }},
    {"Resolve", [](Handles& all) { all.begin_resolving(); }},
    {"RelayingCancel", [](Handles& all) { all.relaying.cancel(); }},
    {"ProcessDestroy", [](Handles& all) { all.process = Process(); }},
    {"Spawn",
     [](Handles& all) { std::ignore = spawn(all.loop, {.file = "true"}, [](const Child&) {}); }},
    {"OffloadingCancel", [](Handles& all) { all.job.cancel(); }},
    {"Offload", [](Handles& all) { std::ignore = offload(all.loop, [] {}, [] {}); }},
    {"SessionsDrain", [](Handles& all) { all.sessions->drain(Nanos{1}); }},
    {"SessionsDestroy", [](Handles& all) { all.sessions.reset(); }},
    {"MemoryPair", [](Handles& all) { std::ignore = Stream::memory_pair(all.loop); }},
    {"DatagramCreate",
     [](Handles& all) {
       std::ignore = Datagram::create(all.loop, Address::loopback_ipv4(0));
     }},
};

class WrongThreadHandlesDeathTest : public ::testing::TestWithParam<HandleMisuse> {};
INSTANTIATE_TEST_SUITE_P(Each, WrongThreadHandlesDeathTest, ::testing::ValuesIn(kHandleMisuses),
                         ::testing::PrintToStringParamName());

TEST_P(WrongThreadHandlesDeathTest, MisuseTraps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(misuse_while_it_runs(GetParam().does), "another thread is running this loop");
}

TEST(WrongThreadHandles, MayBeUsedOnThreadOfLoop) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  const Listener listener =
      *Listener::create(*loop, Address::loopback_ipv4(0), [](Stream, const Address&) {});
  loop->post([&] {
    EXPECT_EQ(listener.connections(), 0u);
    loop->stop();
  });
  loop->run();
}

}  // namespace
}  // namespace spate

#endif
