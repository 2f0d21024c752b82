// resolve() and connect() by name on several loops at once, each on its own thread.
#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/resolver.h"
#include "tests/support/name_server.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;
constexpr int kNames = 25;

// Looks up names that exist and names that do not, and connects to one. Returns how many results
// were right.
int names_on_a_loop_of_its_own(std::barrier<>& start) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  NameServer server(*loop);
  server.names["here.test"] = {.ipv4 = {"127.0.0.1"}};
  int right = 0;
  Listener listener = *Listener::create(*loop, Address::loopback_ipv4(0),
                                        [&right](Stream, const Address&) { ++right; });
  start.arrive_and_wait();
  if (configure_resolver(*loop, {.servers = {server.address()}, .timeout = 1min})) return 0;
  std::vector<Resolving> questions;
  int answers = 0;
  for (int i = 0; i < kNames; ++i) {
    const bool is_there = i % 2 == 0;
    questions.push_back(
        resolve(*loop, is_there ? "here.test" : "nobody.test", 80, [&, is_there](auto result) {
          ++answers;
          if (result.has_value() == is_there) ++right;
        }));
  }
  const Connecting connecting =
      connect(*loop, "here.test", listener.address().port(), [&](auto result) {
        ++answers;
        if (result) ++right;
      });
  while (answers < kNames + 1 || listener.accepted() == 0) loop->run(Run::once);
  return right;
}

TEST(ResolvingOnThreads, HasOneResolverPerLoop) {
  std::barrier start(kThreads);
  std::vector<int> right(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int& one : right) threads.emplace_back([&] { one = names_on_a_loop_of_its_own(start); });
  }
  for (const int one : right) EXPECT_EQ(one, kNames + 2);
}

}  // namespace
}  // namespace spate::testing
