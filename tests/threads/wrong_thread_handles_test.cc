// The handles of a loop that runs belong to the thread that runs it, as the loop does.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>

#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/net/client.h"
#include "spate/net/listener.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

struct Handles {
  std::optional<Listener> listener;
  std::optional<Client> client;
};

// Does `misuse` in a second thread while the loop is inside run().
void misuse_while_it_runs(const std::function<void(Handles&)>& misuse) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  Handles handles;
  handles.listener =
      *Listener::create(*loop, Address::loopback_ipv4(0), [](Stream, const Address&) {});
  handles.client = *Client::create(*loop, handles.listener->address(), [](Result<Stream>) {});
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
