// Sessions: the owner of a session, its lifetime, and its callbacks.
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/fault.h"
#include "spate/error.h"
#include "spate/net/relay.h"
#include "spate/net/session.h"
#include "streams/harness.h"
#include "streams/sessions_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// A scripted clock, so that a grace takes no time.
class SessionsTest : public ::testing::Test {
 protected:
  // The other end.
  Stream& open() {
    auto pair = Stream::memory_pair(loop_);
    EXPECT_TRUE(pair);
    sessions_->open(std::move(pair->first), book_);
    peers_.push_back(std::move(pair->second));
    return peers_.back();
  }
  void turns() { run_turns(loop_, 5); }
  void pass(Nanos time) {
    clock_.advance(time);
    turns();
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> owned_ = *Loop::create({.clock = &clock_});
  Loop& loop_ = *owned_;
  Book book_;
  std::list<Stream> peers_;
  std::optional<Sessions<Noting>> sessions_{loop_};
};

TEST_F(SessionsTest, EndWithTheirConnections) {
  Stream& peer = open();
  open();
  EXPECT_EQ(sessions_->size(), 2u);
  peer.write("hello ");
  turns();
  EXPECT_EQ(book_.log, "hello ");
  peer.end();
  Recorder log;
  peer.start(log);
  turns();
  EXPECT_EQ(book_.log, "hello closed ");
  EXPECT_FALSE(book_.error);
  EXPECT_EQ(sessions_->size(), 1u);
  EXPECT_EQ(book_.alive, 1);
}

TEST_F(SessionsTest, AreDestroyedWithList) {
  Stream& peer = open();
  open();
  peer.write("lost");
  sessions_.reset();
  EXPECT_EQ(book_.alive, 0);
  turns();
  EXPECT_EQ(book_.log, "");
}

TEST_F(SessionsTest, MayOutliveLoop) {
  open();
  peers_.clear();
  owned_.reset();
  EXPECT_EQ(sessions_->size(), 1u);
  sessions_.reset();
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(SessionsTest, EndThemselvesByAbort) {
  book_.when_data = [](Session& session) { session.abort(); };
  Stream& peer = open();
  Recorder log;
  peer.start(log);
  peer.write("x");
  turns();
  EXPECT_EQ(book_.log, "x");  // on_closed() was not called.
  EXPECT_EQ(book_.alive, 0);
  EXPECT_EQ(log.error, std::errc::connection_reset);
}

TEST_F(SessionsTest, SessionEndedInOnOpenIsNeverStarted) {
  book_.when_opened = [](Session& session) { session.abort(); };
  auto pair = Stream::memory_pair(loop_);
  pair->second.write("x");
  EXPECT_EQ(sessions_->open(std::move(pair->first), book_), nullptr);
  EXPECT_EQ(sessions_->size(), 0u);
  turns();
  EXPECT_EQ(book_.log, "");
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(SessionsTest, MayDestroyAllSessionsInAnyCallback) {
  const auto take_all = [this](Session&) { sessions_.reset(); };
  for (std::function<void(Session&)>* when :
       {&book_.when_opened, &book_.when_data, &book_.when_drained, &book_.when_closed}) {
    *when = take_all;
    sessions_.emplace(loop_);
    Stream& peer = open();
    if (sessions_) open();
    if (when == &book_.when_data) peer.write("x");
    if (when == &book_.when_drained) sessions_->drain(1s);
    if (when == &book_.when_closed) peer.abort();
    turns();
    EXPECT_FALSE(sessions_);
    EXPECT_EQ(book_.alive, 0);
    *when = {};
  }
}

// Ended sessions are destroyed from the loop, which may be running inside their last callback.
TEST_F(SessionsTest, ExistUntilLastCallReturnsThoughItRunsLoop) {
  for (const bool are_all_ended : {false, true}) {
    int calls = 0;
    book_.when_closed = [&](Session&) {
      if (++calls > 1) return;
      sessions_->for_each([](Noting& other) { other.abort(); });
      turns();
      EXPECT_EQ(book_.alive, 1);
    };
    Stream& peer = open();
    open();
    are_all_ended ? sessions_->end_all(Error::deadline) : peer.abort();
    turns();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(book_.alive, 0);
  }
}

TEST_F(SessionsTest, MayBeDestroyedInNestedRunInLastCall) {
  book_.when_closed = [this](Session&) {
    loop_.post([this] { sessions_.reset(); });
    turns();
    EXPECT_EQ(book_.alive, 0);
  };
  Stream& peer = open();
  open();
  peer.abort();
  turns();
  EXPECT_FALSE(sessions_);
}

TEST_F(SessionsTest, AreVisitedThoughTheyEndMeanwhile) {
  for (int i = 0; i < 10; ++i) open();
  int visits = 0;
  sessions_->for_each([&](Noting& session) {
    ++visits;
    session.abort();
    // Aborts the next one as well.
    int others = 0;
    sessions_->for_each([&](Noting& other) {
      if (++others == 1) other.abort();
    });
  });
  EXPECT_EQ(visits, 5);
  EXPECT_EQ(sessions_->size(), 0u);
  turns();
  EXPECT_EQ(book_.alive, 0);
}

// ---- draining

TEST_F(SessionsTest, AreDrained) {
  open();
  open();
  int done = 0;
  sessions_->drain(10s, [&] { ++done; });
  EXPECT_EQ(book_.log, "drain drain ");
  EXPECT_EQ(done, 0);
  turns();
  EXPECT_EQ(book_.log, "drain drain closed closed ");
  EXPECT_EQ(done, 1);
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(SessionsTest, AreDrainedWhenLastHasEnded) {
  bool is_first = true;
  book_.when_drained = [&](Session& session) {
    if (std::exchange(is_first, false)) session.stream().close();
  };
  open();
  open();
  int done = 0;
  sessions_->drain(10s, [&] { ++done; });
  turns();
  EXPECT_EQ(sessions_->size(), 1u);
  EXPECT_EQ(done, 0);
  pass(11s);
  EXPECT_EQ(done, 1);
}

TEST_F(SessionsTest, CallEachCallbackWhenDrainedTwice) {
  book_.when_drained = [](Session&) {};
  open();
  std::string done;
  sessions_->drain(100s, [&] { done += "first "; });
  turns();
  sessions_->drain(10s);
  sessions_->drain(10s, [&] { done += "third "; });
  turns();
  EXPECT_EQ(done, "");
  pass(11s);
  EXPECT_EQ(done, "first third ");
}

TEST_F(SessionsTest, CallNoFurtherCallbackAfterDestructionInOne) {
  std::string done;
  sessions_->drain(10s, [&] {
    done += "first ";
    sessions_.reset();
  });
  sessions_->drain(10s, [&] { done += "second "; });
  turns();
  EXPECT_EQ(done, "first ");
}

TEST_F(SessionsTest, CallNoFurtherCallbackWhileSessionOfDestructorIsOpen) {
  book_.when_drained = [](Session&) {};
  std::string done;
  std::shared_ptr<void> opens(nullptr, [&](void*) { open(); });
  sessions_->drain(10s, [&done, opens = std::move(opens)] { done += "first "; });
  sessions_->drain(10s, [&] { done += "second "; });
  turns();
  EXPECT_EQ(done, "first ");
  pass(11s);
  EXPECT_EQ(done, "first second ");
}

TEST_F(SessionsTest, AreDrainedAsynchronouslyWhenEmpty) {
  int done = 0;
  sessions_->drain(10s, [&] { ++done; });
  EXPECT_EQ(done, 0);
  turns();
  EXPECT_EQ(done, 1);
  open();  // A session that opens later is drained at once.
  EXPECT_EQ(book_.log, "drain ");
  turns();
  EXPECT_EQ(done, 1);
}

TEST_F(SessionsTest, AreResetWithOnClosedWhenGraceExpires) {
  book_.when_drained = [](Session&) {};
  int done = 0;
  open();
  sessions_->drain(10s, [&] { ++done; });
  pass(10s - 1ms);
  EXPECT_EQ(book_.log, "drain ");
  pass(10ms);
  EXPECT_EQ(book_.log, "drain closed ");
  EXPECT_EQ(book_.error, Error::deadline);
  EXPECT_EQ(done, 1);
}

TEST_F(SessionsTest, AcceptAnyGrace) {
  book_.when_drained = [](Session&) {};
  open();
  for (const Nanos grace : {Nanos::max(), kForever}) {
    sessions_->drain(grace);
    pass(24h * 365);
    EXPECT_EQ(sessions_->size(), 1u);
  }
  for (const Nanos grace : {Nanos::min(), Nanos{0}}) {
    if (sessions_->empty()) open();
    sessions_->drain(grace);
    pass(1ns);
    EXPECT_EQ(book_.error, Error::deadline);
    EXPECT_TRUE(sessions_->empty());
  }
}

TEST_F(SessionsTest, AreEndedTogetherByEndAll) {
  open();
  open();
  sessions_->end_all(Error::deadline);
  EXPECT_EQ(book_.log, "closed closed ");
  EXPECT_EQ(sessions_->size(), 0u);
  turns();
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(SessionsTest, MayMoveStreamToRelayInOnOpen) {
  auto onward = Stream::memory_pair(loop_);
  Recorder client_log;
  Recorder server_log;
  Relaying relaying;
  book_.when_opened = [&](Session& session) {
    relaying = relay(std::move(session.stream()), std::move(onward->first),
                     [&](const RelayResult&) { session.abort(); });
  };
  Stream& client = open();
  client.start(client_log);
  onward->second.start(server_log);
  client.write("hello");
  turns();
  EXPECT_EQ(server_log.received, "hello");
  EXPECT_EQ(sessions_->size(), 1u);
  client.end();
  onward->second.end();
  turns();
  EXPECT_EQ(book_.log, "");
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(SessionsTest, AreNotifiedOnceOfDrainStartedInOnOpen) {
  book_.when_opened = [this](Session&) { sessions_->drain(1s); };
  open();
  turns();
  EXPECT_EQ(book_.log, "drain closed ");
}

TEST_F(SessionsTest, AreNotifiedOfDrainStartedInOnDrain) {
  bool is_first = true;
  book_.when_drained = [&](Session&) {
    if (std::exchange(is_first, false)) sessions_->drain(2s);
  };
  open();
  open();
  sessions_->drain(1s);
  EXPECT_EQ(book_.log, "drain drain drain ");
}

TEST_F(SessionsTest, MayAccessEachOther) {
  book_.when_data = [](Session& session) {
    session.sessions<Noting>().for_each([&](Noting& other) {
      if (&other != &session) other.stream().write("heard");
    });
  };
  Recorder log;
  open().start(log);
  open().write("x");
  turns();
  EXPECT_EQ(log.received, "heard");
}

TEST_F(SessionsTest, SessionWithoutReaderDiscardsInput) {
  struct Mute : Session {};
  Sessions<Mute> mutes(loop_);
  auto pair = Stream::memory_pair(loop_);
  mutes.open(std::move(pair->first));
  pair->second.write("x");
  pair->second.end();
  turns();
  EXPECT_TRUE(mutes.empty());
}

// Sessions whose Stream was moved to a relay.
class RelayingSessionsTest : public SessionsTest {
 protected:
  void SetUp() override {
    auto onward = Stream::memory_pair(loop_);
    server_ = std::move(onward->second);
    server_.start(server_log_);
    client_ = &open();
    client_->start(client_log_);
    sessions_->for_each([&](Noting& session) {
      relaying_ = relay(std::move(session.stream()), std::move(onward->first),
                        [&](const RelayResult&) { session.abort(); });
    });
    book_.when_closed = [this](Session&) { relaying_.cancel(); };
  }

  Stream server_;
  Stream* client_ = nullptr;
  Recorder server_log_;
  Recorder client_log_;
  Relaying relaying_;
};

TEST_F(RelayingSessionsTest, FinishWithinGrace) {
  int done = 0;
  sessions_->drain(10s, [&] { ++done; });
  client_->write("late");
  turns();
  EXPECT_EQ(book_.log, "drain ");
  EXPECT_EQ(server_log_.received, "late");
  client_->end();
  server_.end();
  turns();
  EXPECT_EQ(book_.log, "drain ");
  EXPECT_EQ(done, 1);
  EXPECT_EQ(book_.alive, 0);
  EXPECT_FALSE(loop_.run() || loop_.has_work());  // The grace's timer is gone.
}

TEST_F(RelayingSessionsTest, EndWhenGraceExpires) {
  int done = 0;
  sessions_->drain(10s, [&] { ++done; });
  pass(10s - 1ms);
  EXPECT_EQ(book_.log, "drain ");
  pass(10ms);
  EXPECT_EQ(book_.log, "drain closed ");
  EXPECT_EQ(book_.error, Error::deadline);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(book_.alive, 0);
  EXPECT_EQ(client_log_.log, "end closed ");
  EXPECT_EQ(server_log_.log, "end closed ");
}

TEST_F(RelayingSessionsTest, DoNotAffectOtherSessions) {
  book_.when_drained = [](Session& session) { session.stream().set_deadline(0s); };
  open();
  sessions_->drain(10s);
  pass(20s);
  EXPECT_EQ(book_.log, "drain drain closed ");
  EXPECT_EQ(sessions_->size(), 1u);
}

TEST_F(SessionsTest, MayBeDestroyedInOnDrain) {
  auto sessions = std::make_unique<Sessions<Noting>>(loop_);
  auto pair = Stream::memory_pair(loop_);
  sessions->open(std::move(pair->first), book_);
  book_.when_drained = [&](Session&) { sessions.reset(); };
  int done = 0;
  const std::int64_t active = loop_.active_count();
  sessions->drain(1s, [&] { ++done; });
  EXPECT_EQ(loop_.active_count(), active);  // A destroyed list leaves no timer.
  turns();
  EXPECT_EQ(done, 0);
  EXPECT_EQ(book_.alive, 0);
}

// A session of a connection that had failed before: on_closed() is due.
class LateSessionsTest : public SessionsTest {
 protected:
  void SetUp() override {
    auto pair = Stream::memory_pair(loop_);
    pair->first.set_deadline(1ms);
    pass(1s);
    EXPECT_FALSE(pair->first.is_open());
    sessions_->open(std::move(pair->first), book_);
  }
};

TEST_F(LateSessionsTest, ReceiveOnClosedAtDeadline) {
  turns();
  EXPECT_EQ(book_.log, "closed ");
  EXPECT_EQ(book_.error, Error::deadline);
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(LateSessionsTest, EndWithoutFurtherCallsAfterAbort) {
  sessions_->for_each([](Noting& session) { session.abort(); });
  turns();
  EXPECT_EQ(book_.log, "");
  EXPECT_EQ(book_.alive, 0);
}

TEST_F(LateSessionsTest, ReceiveOneOnClosedFromEndAll) {
  sessions_->end_all(Error::idle_timeout);
  turns();
  EXPECT_EQ(book_.log, "closed ");
  EXPECT_EQ(book_.error, Error::idle_timeout);
}

TEST_F(SessionsTest, OutOfMemoryClosesConnection) {
  auto pair = Stream::memory_pair(loop_);
  Recorder log;
  pair->second.start(log);
  sessions_->open(std::move(pair->first), book_);
  book_.alive = 0;
  sessions_.reset();
  turns();
  EXPECT_EQ(log.log, "end closed ");
}

}  // namespace
}  // namespace spate::testing
