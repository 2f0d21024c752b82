// Files of a host of a World: the threads of its pool open and read them, and runs are equal.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "spate/http/client.h"
#include "spate/http/files.h"
#include "spate/http/server.h"
#include "spate/sim/world.h"
#include "tests/support/own_tree.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kFilesPort = 7011;

struct FileServer {
  explicit FileServer(Loop& loop, const std::string& root)
      : files(must(http::Files::open(root))),
        server(must(http::serve(loop, Address::any_ipv6(kFilesPort), files))) {}

  http::Files files;
  http::Server server;
};

class SimHttpFiles : public ::testing::Test {
 protected:
  SimHttpFiles() {
    tree_.write("small", "small\n");
    tree_.write("large", large_);
  }

  // Returns the trace of a run in which each file is requested three times.
  std::uint64_t run(std::uint64_t seed) {
    World world(seed);
    Host& here = world.add_host("here");
    Host& there = world.add_host("there");
    here.delay_work(10ms);
    auto server =
        here.run([&](Loop& loop) { return std::make_unique<FileServer>(loop, tree_.root()); });
    auto client = there.run([](Loop& loop) {
      return std::make_unique<http::Client>(must(http::Client::create(loop)));
    });
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(get(world, there, *client, here.address(kFilesPort), "/small"), "small\n");
      EXPECT_EQ(get(world, there, *client, here.address(kFilesPort), "/large"), large_);
    }
    there.run([&](Loop&) { client.reset(); });
    here.run([&](Loop&) { server.reset(); });
    return world.trace();
  }

  const std::string large_ = std::string(1'500'000, 'x') + "end";

 private:
  static std::string get(World& world, Host& host, http::Client& client, const Address& server,
                         const std::string& path) {
    std::string text;
    bool is_over = false;
    http::Call call = host.run([&](Loop&) {
      return client.fetch("http://" + server.to_string() + path,
                          [&](Result<http::Response> response) {
                            text = response ? std::string(response->text())
                                            : response.error().message();
                            is_over = true;
                          },
                          {.max_body = 10'000'000});
    });
    EXPECT_EQ(world.run_until([&] { return is_over; }, 1min), Outcome::done);
    host.run([&](Loop&) { call.cancel(); });
    return text;
  }

  OwnTree tree_;
};

TEST_F(SimHttpFiles, AreServedBySimulatedThreads) { run(1); }

TEST_F(SimHttpFiles, RunsOfSeedAreEqual) { EXPECT_EQ(run(2), run(2)); }

}  // namespace
}  // namespace spate::testing
