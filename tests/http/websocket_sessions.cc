// WebSocketSessions: sessions that the library owns.
#include "spate/http/websocket_sessions.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http/websocket_harness.h"

namespace spate::testing {
namespace {

using http::CloseCode;
using http::MessageKind;
using ::testing::ElementsAre;

struct LoggedSession : http::WebSocketSession {
  explicit LoggedSession(std::vector<std::string>& log) : log(log) {}
  ~LoggedSession() override { log.push_back("destroyed"); }
  void on_open() override {
    log.push_back("open");
    if (then) then(*this);
  }
  void on_message(MessageKind kind, Bytes bytes) override {
    socket().send(kind, bytes);
    if (then) then(*this);
  }
  void on_closed(CloseCode code, std::string_view, std::error_code) override {
    log.push_back("closed " + std::to_string(static_cast<int>(code)));
    if (then) then(*this);
  }
  std::vector<std::string>& log;
  static inline std::function<void(LoggedSession&)> then;
};

class WebSocketSessionTest : public WebSocketTest {
 protected:
  WebSocketSessionTest() {
    sessions.emplace(loop_);
    on_request = [this](http::Exchange exchange) {
      session = sessions->accept(std::move(exchange), log);
    };
  }
  ~WebSocketSessionTest() override { LoggedSession::then = {}; }

  std::vector<std::string> log;
  std::optional<http::WebSocketSessions<LoggedSession>> sessions;
  LoggedSession* session = nullptr;
};

TEST_F(WebSocketSessionTest, IsDestroyedWithItsConnection) {
  const auto client = raw();
  EXPECT_EQ(sessions->size(), 1u);
  EXPECT_EQ(exchange(*client, frame({}, "echo")), from_server(0x81, "echo"));
  exchange_last(*client, frame({.first = 0x88}, close_text(1000)));
  EXPECT_THAT(log, ElementsAre("open", "closed 1000", "destroyed"));
  EXPECT_TRUE(sessions->empty());
}

TEST_F(WebSocketSessionTest, IsNotCreatedForRejectedHandshake) {
  raw("Origin: http://b\r\n");
  EXPECT_EQ(session, nullptr);
  EXPECT_THAT(log, ElementsAre("destroyed"));
}

TEST_F(WebSocketSessionTest, MayEndItselfOrAllInEveryCallback) {
  for (const bool is_all : {false, true}) {
    for (const char* where : {"open", "message", "closed"}) {
      log.clear();
      sessions.emplace(loop_);
      LoggedSession::then = {};
      const auto end = [&](LoggedSession& one) { is_all ? sessions.reset() : one.abort(); };
      if (where == std::string_view("open")) LoggedSession::then = end;
      const auto client = raw();
      if (where == std::string_view("open")) EXPECT_EQ(session, nullptr);
      LoggedSession::then = end;
      if (sessions) exchange(*client, frame({}, "a"));
      if (sessions) exchange_last(*client, frame({.first = 0x88}, ""));
      turns();
      EXPECT_EQ(std::ranges::count(log, "destroyed"), 1) << where;
      LoggedSession::then = {};
    }
  }
}

TEST_F(WebSocketSessionTest, OutlivesNestedRunInItsCallback) {
  const auto client = raw();
  LoggedSession::then = [&](LoggedSession& one) {
    turns();
    one.log.push_back("still there");
  };
  exchange_last(*client, frame({.first = 0x88}, ""));
  turns();
  EXPECT_THAT(log, ElementsAre("open", "closed 1005", "still there", "destroyed"));
}

TEST_F(WebSocketSessionTest, EachSessionIsVisitedOnce) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(raw());
  std::set<LoggedSession*> seen;
  sessions->for_each([&](LoggedSession& one) { EXPECT_TRUE(seen.insert(&one).second); });
  EXPECT_EQ(seen.size(), 5u);
}

TEST_F(WebSocketSessionTest, VisitsGoOnWhenSessionsEnd) {
  for (const bool all : {false, true}) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(raw());
    int calls = 0;
    sessions->for_each([&](LoggedSession&) {
      ++calls;
      std::vector<LoggedSession*> ending;
      sessions->for_each([&](LoggedSession& other) { ending.push_back(&other); });
      for (LoggedSession* other : ending)
        if (all || other != ending.back()) other->abort();
      turns();
    });
    EXPECT_EQ(calls, all ? 1 : 2);
    EXPECT_EQ(sessions->size(), all ? 0u : 1u);
    sessions.emplace(loop_);
  }
}

TEST_F(WebSocketSessionTest, VisitEndsWithItsList) {
  auto list = std::make_unique<http::WebSocketSessions<LoggedSession>>(loop_);
  on_request = [&](http::Exchange exchange) { list->accept(std::move(exchange), log); };
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(raw());
  int calls = 0;
  list->for_each([&](LoggedSession&) {
    ++calls;
    list.reset();
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(std::ranges::count(log, "destroyed"), 3);
}

TEST_F(WebSocketSessionTest, CloseAllClosesEachSession) {
  const auto first = raw();
  const auto second = raw();
  sessions->close_all(CloseCode::service_restart, "soon back");
  turns();
  const std::string expected = from_server(0x88, close_text(1012, "soon back"));
  EXPECT_EQ(first->received, expected);
  EXPECT_EQ(second->received, expected);
}

}  // namespace
}  // namespace spate::testing
