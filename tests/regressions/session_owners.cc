// Sessions whose destructors destroy the list that contains them.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "http/websocket_harness.h"
#include "spate/http/websocket_sessions.h"
#include "spate/net/session.h"
#include "streams/harness.h"
#include "support/websocket_frames.h"

namespace spate::testing {
namespace {

// Each session holds the list that contains it, so that the last one destroys it.
struct OwningSession;
using OwningSessions = Sessions<OwningSession>;

struct OwningSession : Session {
  explicit OwningSession(std::shared_ptr<OwningSessions> shared) : list(std::move(shared)) {}
  std::shared_ptr<OwningSessions> list;
};

struct OwningNewcomer : PendingSession {
  explicit OwningNewcomer(std::shared_ptr<OwningSessions> shared)
      : PendingSession(*shared), list(std::move(shared)) {}
  std::shared_ptr<OwningSessions> list;
};

class SessionOwners : public ::testing::Test {
 protected:
  // The other end.
  Stream open() {
    auto pair = Stream::memory_pair(*loop_);
    list_->open(std::move(pair->first), list_);
    return std::move(pair->second);
  }
  void let_go() { list_.reset(); }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::shared_ptr<OwningSessions> list_ = std::make_shared<OwningSessions>(*loop_);
  const std::weak_ptr<OwningSessions> watch_ = list_;
};

TEST_F(SessionOwners, SessionDestroysItsListWhenItsConnectionEnds) {
  Stream peer = open();
  let_go();
  peer.end();
  run_until(*loop_, [&] { return watch_.expired(); });
}

TEST_F(SessionOwners, LastOfManySessionsDestroysList) {
  Stream first = open();
  Stream second = open();
  let_go();
  first.abort();
  run_until(*loop_, [&] { return watch_.lock()->size() == 1; });
  second.abort();
  run_until(*loop_, [&] { return watch_.expired(); });
}

TEST_F(SessionOwners, AllSessionsEndInOneTurn) {
  const Stream first = open();
  const Stream second = open();
  std::exchange(list_, nullptr)->end_all(Error::deadline);
  run_until(*loop_, [&] { return watch_.expired(); });
}

TEST_F(SessionOwners, LoopEndsFirst) {
  Stream peer = open();
  peer.abort();
  let_go();
  run_turns(*loop_, 5);
  EXPECT_TRUE(watch_.expired());
  loop_.reset();
}

TEST_F(SessionOwners, NewSessionDestroysListInEndAll) {
  new OwningNewcomer(list_);
  new OwningNewcomer(list_);
  OwningSessions& list = *list_;
  let_go();
  list.end_all(Error::deadline);
  EXPECT_TRUE(watch_.expired());
}

TEST_F(SessionOwners, NewSessionDestroysListWhenGraceEnds) {
  new OwningNewcomer(list_);
  std::exchange(list_, nullptr)->drain(Nanos{1});
  run_until(*loop_, [&] { return watch_.expired(); });
}

struct OwningSocket;
using OwningSockets = http::WebSocketSessions<OwningSocket>;

struct OwningSocket : http::WebSocketSession {
  explicit OwningSocket(std::shared_ptr<OwningSockets> shared) : list(std::move(shared)) {}
  void on_message(http::MessageKind, Bytes) override {}
  std::shared_ptr<OwningSockets> list;
};

class WebSocketSessionOwners : public WebSocketTest {
 protected:
  WebSocketSessionOwners() {
    on_request = [this](http::Exchange exchange) { list_->accept(std::move(exchange), list_); };
  }

  std::shared_ptr<OwningSockets> list_ = std::make_shared<OwningSockets>(loop_);
  const std::weak_ptr<OwningSockets> watch_ = list_;
};

TEST_F(WebSocketSessionOwners, LastSessionDestroysItsList) {
  const auto first = raw();
  const auto second = raw();
  list_.reset();
  first->stream().abort();
  turns();
  ASSERT_FALSE(watch_.expired());
  EXPECT_EQ(watch_.lock()->size(), 1u);
  second->stream().abort();
  turns();
  EXPECT_TRUE(watch_.expired());
}

}  // namespace
}  // namespace spate::testing
