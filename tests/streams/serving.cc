// serve() on a loop: a session for each connection of a listener.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "spate/net/connect.h"
#include "spate/net/server.h"
#include "streams/harness.h"
#include "streams/sessions_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class ServingTest : public ::testing::Test {
 protected:
  Server<Noting> serve(const ListenOptions& options = {}) {
    auto made = spate::serve<Noting>(loop_, Address::loopback_ipv4(0), options, std::ref(book_));
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  // Connects a client. Returns its Stream once the session is open.
  Stream& knock(const Server<Noting>& server) {
    const int before = book_.opened;
    connecting_ = connect(loop_, server.address(), [this](Result<Stream> stream) {
      ASSERT_TRUE(stream);
      guests_.push_back(std::move(*stream));
      guests_.back().start(log_);
    });
    const std::size_t guests = guests_.size();
    run_until(loop_, [&] { return book_.opened > before && guests_.size() > guests; });
    return guests_.back();
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  Book book_;
  Recorder log_;
  std::list<Stream> guests_;
  Connecting connecting_;
};

TEST_F(ServingTest, HasSessionForEachConnection) {
  Server<Noting> server = serve();
  knock(server).write("a");
  knock(server).write("b");
  run_until(loop_, [&] { return book_.log.size() == 2; });
  EXPECT_EQ(server.sessions().size(), 2u);
  guests_.front().close();
  run_until(loop_, [&] { return server.sessions().size() == 1; });
  EXPECT_EQ(server.listener().accepted(), 2u);
}

TEST_F(ServingTest, ServesBacklogBeforeDrainEnds) {
  Server<Noting> server = serve();
  server.listener().pause();
  connecting_ = connect(loop_, server.address(), [this](Result<Stream> stream) {
    guests_.push_back(std::move(stream).value());
    guests_.back().start(log_);
  });
  run_until(loop_, [&] { return !guests_.empty(); });
  int done = 0;
  server.drain(10s, [&] { ++done; });
  run_until(loop_, [&] { return done == 1; });
  EXPECT_EQ(book_.opened, 1);
  EXPECT_EQ(book_.log, "drain closed ");
  EXPECT_FALSE(server.listener().is_open());
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(ServingTest, IsDrainedBySession) {
  Server<Noting> server = serve();
  knock(server);
  int done = 0;
  book_.when_data = [&](Session& session) {
    session.sessions<Noting>().drain(10s, [&] { ++done; });
  };
  guests_.front().write("stop ");
  run_until(loop_, [&] { return done == 1; });
  EXPECT_EQ(book_.log, "stop drain closed ");
  EXPECT_FALSE(server.listener().is_open());
}

TEST_F(ServingTest, MayBeMovedAndAssignedTo) {
  Server<Noting> server;
  server = serve();
  knock(server);
  Server<Noting> moved = std::move(server);
  knock(moved);
  EXPECT_EQ(moved.sessions().size(), 2u);
  moved = Server<Noting>();
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(ServingTest, ReportsWhyItCannotListen) {
  Server<Noting> server = serve();
  EXPECT_EQ(spate::serve<Noting>(loop_, server.address(), std::ref(book_)).error(),
            std::errc::address_in_use);
}

TEST_F(ServingTest, RespectsConnectionLimit) {
  Server<Noting> server = serve({.max_connections = 1});
  knock(server);
  connecting_ = connect(loop_, server.address(), [this](Result<Stream> stream) {
    guests_.push_back(std::move(stream).value());
  });
  run_until(loop_, [&] { return guests_.size() == 2; });
  EXPECT_EQ(book_.opened, 1);
  guests_.front().abort();
  run_until(loop_, [&] { return book_.opened == 2; });
}

}  // namespace
}  // namespace spate::testing
