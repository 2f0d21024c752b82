// WebSockets whose messages coroutines receive and send, on both sides, against one another and
// against raw bytes.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "spate/http/coro_websocket.h"
#include "tests/coro/http_field.h"
#include "tests/coro/kept.h"
#include "tests/coro/promised.h"
#include "tests/support/websocket_frames.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Message;
using coro::Scope;
using coro::Task;
using http::CloseCode;
using http::MessageKind;
using Texts = std::vector<std::string>;

constexpr std::string_view kSocketUrl = "ws://a.example/";
constexpr std::string_view kAsk =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

std::string text_in(const Message& message) {
  return (message.kind == MessageKind::binary ? "binary " : "") +
         std::string(text_of(message.bytes)) + (message.is_last ? "" : "...");
}

// Echoes until its end, and records the reason.
struct Ending {
  std::error_code error;
  CloseCode code = CloseCode::abnormal;
  std::string reason;
  bool is_there = false;
};

Task<void> echo(http::Exchange asked, const http::WebSocketOptions* options, Ending* ending) {
  coro::WebSocket socket;
  ending->error = socket.accept(std::move(asked), *options);
  for (;;) {
    const Result<Message> message = co_await socket.receive();
    if (!message) {
      *ending = {message.error(), socket.close_code(), std::string(socket.close_reason()), true};
      co_return;
    }
    const Result<void> sent = co_await socket.send(message->kind, message->bytes);
    if (!sent) co_return;
  }
}

class CoroWebSocket : public HttpField {
 protected:
  CoroWebSocket() {
    on_request_ = [this](http::Exchange asked) {
      sessions_.spawn(echo(std::move(asked), &options_, &ending_));
    };
  }

  // A server's end that the test owns, and a client of raw bytes.
  std::unique_ptr<HttpPeer> accept(coro::WebSocket& socket) {
    on_request_ = [&](http::Exchange asked) {
      EXPECT_FALSE(socket.accept(std::move(asked), options_));
    };
    return peer(kAsk);
  }
  static std::string text(std::string_view what) { return frame({}, what); }

  http::WebSocketOptions options_;
  Ending ending_;
  Scope sessions_{loop()};
};

Task<Result<void>> hear(coro::WebSocket* socket, std::size_t count, Texts* heard) {
  while (heard->size() < count) {
    const Message message = co_await coro::or_return(socket->receive());
    heard->push_back(text_in(message));
  }
  co_return Result<void>();
}

Task<Result<Texts>> ask(http::Client* client) {
  Texts heard;
  coro::WebSocket socket;
  co_await coro::or_return(socket.connect(*client, kSocketUrl));
  co_await coro::or_return(socket.send("hello"));
  co_await coro::or_return(hear(&socket, 1, &heard));
  co_await coro::or_return(socket.send(MessageKind::binary, bytes_of("")));
  co_await coro::or_return(hear(&socket, 2, &heard));
  const CloseCode code = co_await coro::or_return(socket.close(CloseCode::normal, "bye"));
  heard.push_back(std::to_string(static_cast<int>(code)));
  co_return heard;
}

TEST_F(CoroWebSocket, ClientAndServerExchangeMessagesUntilOneCloses) {
  const Result<Texts> heard = coro::run(loop(), ask(&client_));
  ASSERT_TRUE(heard) << heard.error().message();
  EXPECT_EQ(*heard, (Texts{"hello", "binary ", "1000"}));
  turns();
  EXPECT_TRUE(ending_.is_there);
  EXPECT_EQ(ending_.error, Error::ended);
  EXPECT_EQ(ending_.code, CloseCode::normal);
  EXPECT_EQ(ending_.reason, "bye");
  EXPECT_TRUE(sessions_.empty());
}

// ---- receiving

TEST_F(CoroWebSocket, MessagesOfOneReadAreReceivedOneByOneWithDelays) {
  const auto hear_slowly = [](coro::WebSocket* socket, Texts* heard) -> Task<Result<void>> {
    for (;;) {
      {
        const Message message = co_await coro::or_return(socket->receive());
        heard->push_back(text_in(message));
      }
      co_await coro::next_turn();
    }
  };
  coro::WebSocket socket;
  const auto client = accept(socket);
  client->say(text("one") + text("two") + frame({.first = 0x82}, "three") + text("four"));
  client->say(frame({.first = 0x88}, close_text(4000, "enough")));
  Texts heard;
  sessions_.spawn(hear_slowly(&socket, &heard));
  turns(50);
  EXPECT_EQ(heard, (Texts{"one", "two", "binary three", "four"}));
  EXPECT_TRUE(sessions_.empty());
  EXPECT_EQ(static_cast<int>(socket.close_code()), 4000);
  EXPECT_EQ(socket.close_reason(), "enough");
}

TEST_F(CoroWebSocket, MessageIsReceivedInParts) {
  options_.view = http::MessageView::parts;
  coro::WebSocket socket;
  const auto client = accept(socket);
  Texts heard;
  sessions_.spawn(hear(&socket, 3, &heard));
  client->say(frame({.first = 0x02}, "abc"));
  turns();
  EXPECT_EQ(heard, Texts{"binary abc..."});
  client->say(frame({.first = 0x80}, "def") + text("next"));
  turns();
  EXPECT_EQ(heard, (Texts{"binary abc...", "binary def", "next"}));
}

TEST_F(CoroWebSocket, NothingIsReadWithoutReceiver) {
  coro::WebSocket socket;
  const auto client = accept(socket);
  client->say(text("one"));
  turns();
  EXPECT_TRUE(socket.socket().stream().is_paused());
  Texts heard;
  EXPECT_TRUE(coro::run(loop(), hear(&socket, 1, &heard)));
  EXPECT_EQ(heard, Texts{"one"});
  EXPECT_TRUE(socket.socket().stream().is_paused());
}

TEST_F(CoroWebSocket, CancelledReceiveConsumesNothing) {
  coro::WebSocket socket;
  const auto client = accept(socket);
  Texts heard;
  Texts said;
  for (int i = 0; i < 20; ++i) {
    Scope scope(loop());
    scope.spawn(hear(&socket, 1000, &heard));
    turns(i % 3);
    said.push_back(std::to_string(i));
    client->say(text(said.back()));
    turns(i % 4);
  }
  EXPECT_TRUE(coro::run(loop(), hear(&socket, 20, &heard)));
  EXPECT_EQ(heard, said);
}

TEST_F(CoroWebSocket, MessageReservedForCancelledReceiverIsKept) {
  coro::WebSocket socket;
  const auto client = accept(socket);
  Texts heard;
  cancel_when_promised(loop(), hear(&socket, 2, &heard),
                       [&] { client->say(text("one") + text("two")); });
  EXPECT_TRUE(heard.empty());
  EXPECT_TRUE(coro::run(loop(), hear(&socket, 2, &heard)));
  EXPECT_EQ(heard, (Texts{"one", "two"}));
}

TEST_F(CoroWebSocket, CloseReservedForCancelledReceiverIsReportedLater) {
  coro::WebSocket socket;
  const auto client = accept(socket);
  Texts heard;
  cancel_when_promised(loop(), hear(&socket, 2, &heard), [&] { client->go(); });
  EXPECT_EQ(coro::run(loop(), hear(&socket, 1, &heard)).error(), std::errc::connection_reset);
}

TEST_F(CoroWebSocket, ReceiverMayDestroySocket) {
  const auto hear_one = [](http::Exchange asked, Texts* heard) -> Task<void> {
    coro::WebSocket socket;
    if (socket.accept(std::move(asked))) co_return;
    const Result<Message> message = co_await socket.receive();
    heard->push_back(text_in(*message));
  };
  Texts heard;
  on_request_ = [&](http::Exchange asked) { sessions_.spawn(hear_one(std::move(asked), &heard)); };
  const auto client = peer(std::string(kAsk) + text("one") + text("two"));
  EXPECT_EQ(heard, Texts{"one"});
  EXPECT_TRUE(client->heard().ends_with("\x88\x02\x03\xe9")) << "going away";
}

// ---- sending

TEST_F(CoroWebSocket, SenderWaitsForSlowReader) {
  options_.limits = {.low = 10'000, .high = 50'000};
  const auto flood = [](coro::WebSocket* socket, int* sent) -> Task<Result<void>> {
    const std::string much(10'000, 'x');
    for (; *sent < 500; ++*sent) {
      co_await coro::or_return(socket->send(much));
    }
    co_return co_await socket->drained();
  };
  coro::WebSocket socket;
  const auto client = accept(socket);
  client->stream().pause();
  int sent = 0;
  sessions_.spawn(flood(&socket, &sent));
  turns();
  EXPECT_LT(sent, 500);
  EXPECT_LE(socket.socket().queued(), 70'000u);
  client->stream().resume();
  turns(2000);
  EXPECT_EQ(sent, 500);
  EXPECT_TRUE(sessions_.empty());
}

TEST_F(CoroWebSocket, MessageIsSentInParts) {
  const auto say = [](coro::WebSocket* socket) -> Task<Result<void>> {
    co_await coro::or_return(socket->send_part(MessageKind::text, bytes_of("ab"), false));
    const Result<void> between = co_await socket->send("no");
    EXPECT_EQ(between.error(), std::errc::no_buffer_space);
    co_return co_await socket->send_part(MessageKind::text, bytes_of("cd"), true);
  };
  coro::WebSocket socket;
  const auto client = accept(socket);
  EXPECT_TRUE(coro::run(loop(), say(&socket)));
  turns();
  using namespace std::string_literals;
  EXPECT_TRUE(client->heard().ends_with("\x01\x02"s + "ab\x80\x02" + "cd")) << client->heard();
}

TEST_F(CoroWebSocket, SendAfterCloseFrameIsError) {
  const auto say = [](coro::WebSocket* socket) -> Task<Result<void>> {
    co_return co_await socket->send("late");
  };
  const auto both = [](Task<Result<void>> one, Task<Result<void>> other) -> Task<Result<void>> {
    co_await std::move(one);
    co_return co_await std::move(other);
  };
  coro::WebSocket socket;
  Texts heard;
  const auto client = accept(socket);
  client->say(frame({.first = 0x88}, close_text(1001)));
  const auto result = coro::run(loop(), both(hear(&socket, 1, &heard), say(&socket)));
  EXPECT_EQ(result.error(), std::errc::broken_pipe);
  EXPECT_EQ(socket.close_code(), CloseCode::going_away);
}

TEST_F(CoroWebSocket, CloseIsReportedToWaitingSender) {
  options_.limits = {.low = 10'000, .high = 50'000};
  const auto say = [](coro::WebSocket* socket, std::error_code* error) -> Task<void> {
    const std::string much(3'000'000, 'x');
    const Result<void> sent = co_await socket->send(much);
    *error = sent.error();
  };
  coro::WebSocket socket;
  const auto client = accept(socket);
  client->stream().pause();
  std::error_code error;
  Texts heard;
  sessions_.spawn(say(&socket, &error));
  sessions_.spawn(hear(&socket, 1, &heard));
  turns();
  EXPECT_EQ(sessions_.size(), 2u);
  client->go();
  turns();
  EXPECT_EQ(error, std::errc::connection_reset);
  EXPECT_TRUE(sessions_.empty());
}

// ---- how it ends

Task<Result<CloseCode>> say_goodbye(coro::WebSocket* socket) {
  co_return co_await socket->close(CloseCode::policy_violation, "out");
}

TEST_F(CoroWebSocket, CloseTimesOutWithoutCloseFrameFromPeer) {
  options_.close_timeout = 2s;
  coro::WebSocket socket;
  const auto client = accept(socket);
  Scope scope(loop());
  std::error_code error;
  const auto note = [](coro::WebSocket* closed, std::error_code* why) -> Task<void> {
    const Result<CloseCode> code = co_await say_goodbye(closed);
    *why = code.error();
  };
  scope.spawn(note(&socket, &error));
  turns();
  EXPECT_EQ(scope.size(), 1u);
  EXPECT_TRUE(client->heard().ends_with("out"));
  scripted_.clock.advance(2s);
  turns();
  EXPECT_EQ(error, Error::deadline);
  EXPECT_TRUE(scope.empty());
}

TEST_F(CoroWebSocket, CloseIsReportedToBothReceiverAndCloser) {
  coro::WebSocket socket;
  const auto client = accept(socket);
  Texts heard;
  std::error_code error;
  sessions_.on_error([&](std::error_code why) { error = why; });
  sessions_.spawn(hear(&socket, 1, &heard));
  client->say(frame({.first = 0x88}, close_text(3000)));
  const auto code = coro::run(loop(), say_goodbye(&socket));
  ASSERT_TRUE(code) << code.error().message();
  EXPECT_EQ(static_cast<int>(*code), 3000);
  turns();
  EXPECT_EQ(error, Error::ended);
}

TEST_F(CoroWebSocket, ProtocolViolationIsError) {
  const auto client = peer(kAsk);
  client->say(frame({.is_masked = false}, "x"));
  turns();
  EXPECT_EQ(ending_.error, std::errc::protocol_error);
  const auto other = peer(kAsk);
  other->say(text("\xff"));
  turns();
  EXPECT_EQ(ending_.error, std::errc::illegal_byte_sequence);
}

TEST_F(CoroWebSocket, DrainingServerClosesWebSockets) {
  const auto client = peer(kAsk);
  server_.drain(1s, [] {});
  turns();
  EXPECT_FALSE(ending_.is_there);
  client->say(frame({.first = 0x88}, close_text(1001)));
  turns();
  EXPECT_EQ(ending_.error, Error::ended);
}

// ---- handshakes that succeed, and those that fail

TEST_F(CoroWebSocket, RequestWithoutUpgradeIsRefusedPermanently) {
  coro::WebSocket socket;
  std::error_code refused;
  on_request_ = [&](http::Exchange asked) { refused = socket.accept(std::move(asked)); };
  const auto client = peer("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client->heard().starts_with("HTTP/1.1 426 ")) << client->heard();
  EXPECT_EQ(refused, std::errc::protocol_error);
  Texts heard;
  EXPECT_EQ(coro::run(loop(), hear(&socket, 1, &heard)).error(), refused);
  EXPECT_EQ(coro::run(loop(), say_goodbye(&socket)).error(), refused);
}

Task<Result<void>> connect_to(http::Client* client, std::string_view url) {
  coro::WebSocket socket;
  const http::WebSocketOptions options;
  http::CallOptions call{.deadline = 5s};
  co_return co_await socket.connect(*client, url, options, std::move(call));
}

TEST_F(CoroWebSocket, FailedConnectReportsReason) {
  EXPECT_EQ(coro::run(loop(), connect_to(&client_, "http://a/")).error(),
            http::HttpError::unknown_scheme);
  on_request_ = [](http::Exchange asked) { asked.respond(http::Status::not_found); };
  EXPECT_EQ(coro::run(loop(), connect_to(&client_, kSocketUrl)).error(),
            http::HttpError::not_upgraded);
  http::Exchange silent;
  on_request_ = [&](http::Exchange asked) { silent = std::move(asked); };
  EXPECT_EQ(coro::run(loop(), connect_to(&client_, kSocketUrl)).error(), Error::deadline);
  open_error_ = std::make_error_code(std::errc::connection_refused);
  EXPECT_EQ(coro::run(loop(), connect_to(&client_, kSocketUrl)).error(), open_error_);
}

TEST_F(CoroWebSocket, CancelledTaskCancelsItsConnect) {
  http::Exchange silent;
  on_request_ = [&](http::Exchange asked) { silent = std::move(asked); };
  Scope scope(loop());
  scope.spawn(connect_to(&client_, kSocketUrl));
  turns();
  EXPECT_EQ(client_.metrics().calls, 1u);
  scope.cancel();
  EXPECT_EQ(client_.metrics().calls, 0u);
  turns();
  EXPECT_FALSE(silent.is_open());
}

TEST_F(CoroWebSocket, StoppedConnectAllowsDestroyingSocket) {
  http::Exchange silent;
  on_request_ = [&](http::Exchange asked) { silent = std::move(asked); };
  const auto until_stopped = [](http::Client* client) -> Task<Result<void>> {
    coro::WebSocket socket;
    const Result<void> result = co_await coro::until_stop(socket.connect(*client, kSocketUrl));
    EXPECT_FALSE(socket.socket().is_open());
    co_return result;
  };
  Scope scope(loop());
  std::error_code error;
  scope.on_error([&](std::error_code why) { error = why; });
  scope.spawn(until_stopped(&client_));
  turns();
  scope.stop();
  turns();
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_EQ(client_.metrics().calls, 0u);
}

TEST_F(CoroWebSocket, DataAfterHandshakeIsNotLost) {
  const auto greet = [](http::Exchange asked) -> Task<void> {
    coro::WebSocket socket;
    if (socket.accept(std::move(asked))) co_return;
    co_await socket.send("one");
    co_await socket.send("two");
    co_await socket.close();
  };
  const auto listen = [](http::Client* client, Texts* heard) -> Task<Result<void>> {
    coro::WebSocket socket;
    co_await coro::or_return(socket.connect(*client, kSocketUrl));
    co_await coro::next_turn();
    co_await coro::next_turn();
    co_return co_await hear(&socket, 3, heard);
  };
  on_request_ = [&](http::Exchange asked) { sessions_.spawn(greet(std::move(asked))); };
  Texts heard;
  EXPECT_EQ(coro::run(loop(), listen(&client_, &heard)).error(), Error::ended);
  EXPECT_EQ(heard, (Texts{"one", "two"}));
}

TEST_F(CoroWebSocket, OperationsFailWithoutMemory) {
  begin_with_nothing_kept();
  const Texts right{"hello", "binary ", "1000"};
  EXPECT_EQ(coro::run(loop(), ask(&client_)), right);
  int failures = 0;
  for (std::uint64_t nth = 1; nth <= 60; ++nth) {
    SCOPED_TRACE(nth);
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    Result<Texts> heard;
    {
      const FaultScope faults(plan);
      heard = coro::run(loop(), ask(&client_));
    }
    if (heard) {
      EXPECT_EQ(*heard, right);
    } else {
      ++failures;
      EXPECT_NE(heard.error(), std::errc::operation_canceled) << "nobody is told";
    }
    sessions_.cancel();
    client_.close_idle();
    turns();
    EXPECT_EQ(client_.metrics().calls, 0u);
  }
  EXPECT_GT(failures, 3);
  EXPECT_EQ(coro::run(loop(), ask(&client_)), right);
}

// A message longer than any frame arrives while its reader cannot be resumed.
TEST_F(CoroWebSocket, ConnectionEndsWithoutMemoryForMessage) {
  const auto run_inside = [](std::function<void()> meanwhile) -> Task<void> {
    meanwhile();
    co_return;
  };
  const auto both = [](Task<Result<void>> one, Task<void> other) -> Task<void> {
    const auto results = co_await coro::when_all(std::move(one), std::move(other));
    EXPECT_EQ(std::get<0>(results).error(), std::errc::not_enough_memory);
  };
  coro::WebSocket socket;
  const auto client = accept(socket);
  client->say(text(std::string(5000, 'x')));
  Texts heard;
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  auto inside = run_inside([&] {
    const FaultScope faults(plan);
    turns();
  });
  sessions_.spawn(both(hear(&socket, 1, &heard), std::move(inside)));
  turns();
  EXPECT_TRUE(sessions_.empty());
  EXPECT_TRUE(heard.empty());
}

TEST_F(CoroWebSocket, LoopMayBeDestroyedDuringReceive) {
  sessions_.spawn(echo(http::Exchange(), &options_, &ending_));
  EXPECT_TRUE(ending_.is_there);
  EXPECT_EQ(ending_.error, std::errc::broken_pipe);
  ending_ = {};
  const auto client = peer(kAsk);
  EXPECT_EQ(sessions_.size(), 1u);
  scripted_.loop.reset();
  EXPECT_FALSE(ending_.is_there);
}

}  // namespace
}  // namespace spate::testing
