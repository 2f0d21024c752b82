// The handles of a loop that runs belong to the thread that runs it, as the loop does.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
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

// Of each kind one that is at work: the name server says nothing.
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

// Does `misuse` in a second thread while the loop is inside run().
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

using HandleMisuse = void (*)(Handles&);

class WrongThreadHandlesDeathTest : public ::testing::TestWithParam<HandleMisuse> {};

TEST_P(WrongThreadHandlesDeathTest, Traps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(misuse_while_it_runs(GetParam()), "another thread is running this loop");
}

INSTANTIATE_TEST_SUITE_P(
    OfListener, WrongThreadHandlesDeathTest,
    ::testing::Values([](Handles& handles) { std::ignore = handles.listener->connections(); },
                      [](Handles& handles) { std::ignore = handles.listener->address(); },
                      [](Handles& handles) { std::ignore = handles.listener->release(); },
                      [](Handles& handles) { handles.listener->pause(); },
                      [](Handles& handles) { handles.listener->resume(); },
                      [](Handles& handles) { handles.listener->close(); },
                      [](Handles& handles) { handles.listener.reset(); }));
INSTANTIATE_TEST_SUITE_P(
    OfClient, WrongThreadHandlesDeathTest,
    ::testing::Values([](Handles& handles) { std::ignore = handles.client->state(); },
                      [](Handles& handles) { handles.client->connect(); },
                      [](Handles& handles) { handles.client->stop(); },
                      [](Handles& handles) { handles.client.reset(); }));

INSTANTIATE_TEST_SUITE_P(OfConnecting, WrongThreadHandlesDeathTest,
                         ::testing::Values([](Handles& handles) { handles.connecting.cancel(); },
                                           [](Handles& handles) { handles.begin_connecting(); },
                                           [](Handles& handles) { handles.resolving.cancel(); },
                                           [](Handles& handles) { handles.begin_resolving(); }));
INSTANTIATE_TEST_SUITE_P(
    OfOthers, WrongThreadHandlesDeathTest,
    ::testing::Values([](Handles& handles) { handles.relaying.cancel(); },
                      [](Handles& handles) { handles.process = Process(); },
                      [](Handles& handles) {
                        std::ignore = spawn(handles.loop, {.file = "true"}, [](const Child&) {});
                      },
                      [](Handles& handles) { handles.job.cancel(); },
                      [](Handles& handles) { std::ignore = offload(handles.loop, [] {}, [] {}); },
                      [](Handles& handles) { handles.sessions->drain(Nanos{1}); },
                      [](Handles& handles) { handles.sessions.reset(); },
                      [](Handles& handles) { std::ignore = Stream::memory_pair(handles.loop); },
                      [](Handles& handles) {
                        std::ignore = Datagram::create(handles.loop, Address::loopback_ipv4(0));
                      }));

TEST(WrongThreadHandles, MayBeUsedByTheLoopsOwn) {
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
