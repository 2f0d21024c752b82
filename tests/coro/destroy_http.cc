// Each operation of HTTP and of WebSockets that can be awaited, destroyed at each moment: no
// destroyed task is resumed, no frame leaks, and the object serves the next task.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "spate/http/client.h"
#include "spate/http/coro.h"
#include "spate/http/coro_call.h"
#include "spate/http/coro_exchange.h"
#include "spate/http/coro_websocket.h"
#include "spate/http/server.h"
#include "tests/coro/destroy_moments.h"
#include "tests/coro/http_field.h"
#include "tests/coro/mark.h"
#include "tests/support/backends.h"
#include "tests/support/websocket_frames.h"

namespace spate::testing {
namespace {

using coro::Task;

constexpr std::size_t kMuch = 3'000'000;

// A server of coroutines whose client is raw bytes, and a client of coroutines whose server is raw
// bytes. The clock stands still unless it is advanced.
struct Talk {
  explicit Talk(std::string_view backend)
      : loop(must(Loop::create({.backend = backend, .clock = &clock}))) {
    http::ClientOptions options;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto pair = must(Stream::memory_pair(*loop));
      far = std::make_unique<HttpPeer>(std::move(pair.second));
      return std::move(pair.first);
    };
    client = must(http::Client::create(*loop, std::move(options)));
    server =
        must(http::Server::create(*loop, [this](http::Exchange next) { asked = std::move(next); }));
    auto pair = must(Stream::memory_pair(*loop));
    server.add(std::move(pair.second));
    near = std::make_unique<HttpPeer>(std::move(pair.first));
  }

  void turns(int count) {
    for (int i = 0; i < count && resumed == 0; ++i) loop->run(Run::no_wait);
  }
  void run_a_little() {
    for (int i = 0; i < 5; ++i) loop->run(Run::no_wait);
  }
  // Sends a request to the server.
  void be_asked(std::string_view head) {
    near->stream().pause();
    near->say(head);
    run_a_little();
  }
  void post() {
    if (exchange) return;
    be_asked("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    exchange.emplace(std::move(asked));
  }
  void open_socket() {
    if (socket) return;
    be_asked(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    EXPECT_FALSE(socket.emplace().accept(std::move(asked)));
  }
  // A call is under way.
  void call_out(http::CallOptions options = {}) {
    if (call) return;
    call.emplace(client, kUrl, std::move(options));
    run_a_little();
  }
  // Responds, once there is a connection.
  void answer(std::string_view text) {
    run_a_little();
    if (far != nullptr) far->say(text);
  }

  ScriptedClock clock;
  std::unique_ptr<Loop> loop;
  int live = 0;
  int resumed = 0;  // Tasks that were resumed.
  http::Client client;
  http::Server server;
  http::Exchange asked;
  std::unique_ptr<HttpPeer> near;  // The server's peer.
  std::unique_ptr<HttpPeer> far;   // The client's peer.
  std::optional<coro::Exchange> exchange;
  std::optional<coro::WebSocket> socket;
  std::optional<coro::Call> call;

  coro::Scope others{*loop};
  std::optional<coro::Scope> scope{*loop};
};

// ---- tasks that wait

Task<void> fetches(Talk* talk) {
  const Mark mark(&talk->live);
  co_await coro::fetch(talk->client, kUrl);
  ++talk->resumed;
}
Task<void> calls_and_waits(Talk* talk) {
  const Mark mark(&talk->live);
  coro::Call call(talk->client, kUrl);
  co_await call.response();
  ++talk->resumed;
}
Task<void> waits_for_a_head(Talk* talk) {
  const Mark mark(&talk->live);
  talk->call_out();
  co_await talk->call->response();
  ++talk->resumed;
}
Task<void> reads_an_answer(Talk* talk) {
  const Mark mark(&talk->live);
  talk->call_out();
  co_await talk->call->read();
  ++talk->resumed;
}
Task<void> uploads(Talk* talk) {
  const Mark mark(&talk->live);
  http::CallOptions options{.method = http::Method::post, .upload = http::kUnknownSize};
  talk->call_out(std::move(options));
  talk->far->stream().pause();
  const std::string much(kMuch, 'x');
  co_await talk->call->send(much);
  ++talk->resumed;
}
Task<void> reads_a_body(Talk* talk) {
  const Mark mark(&talk->live);
  talk->post();
  co_await talk->exchange->read();
  ++talk->resumed;
}
Task<void> answers(Talk* talk) {
  const Mark mark(&talk->live);
  talk->post();
  talk->exchange->exchange().begin(http::Status::ok);
  const std::string much(kMuch, 'x');
  co_await talk->exchange->send(much);
  ++talk->resumed;
}
Task<void> waits_for_drain(Talk* talk) {
  const Mark mark(&talk->live);
  talk->post();
  talk->exchange->exchange().begin(http::Status::ok);
  const std::string much(kMuch, 'x');
  talk->exchange->exchange().write(bytes_of(much));
  co_await talk->exchange->drained();
  ++talk->resumed;
}
Task<void> connects_a_socket(Talk* talk) {
  const Mark mark(&talk->live);
  coro::WebSocket socket;
  co_await socket.connect(talk->client, "ws://a.example/");
  ++talk->resumed;
}
Task<void> receives_a_message(Talk* talk) {
  const Mark mark(&talk->live);
  talk->open_socket();
  co_await talk->socket->receive();
  ++talk->resumed;
}
Task<void> sends_a_message(Talk* talk) {
  const Mark mark(&talk->live);
  talk->open_socket();
  const std::string much(kMuch, 'x');
  co_await talk->socket->send(much);
  ++talk->resumed;
}
Task<void> closes(Talk* talk) {
  const Mark mark(&talk->live);
  talk->open_socket();
  co_await talk->socket->close();
  ++talk->resumed;
}

// ---- completing them

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc";

void answer_some(Talk& talk) { talk.answer(kAnswer); }
void answer_all(Talk& talk) { talk.answer("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"); }
void let_far_read(Talk& talk) {
  if (talk.far != nullptr) talk.far->stream().resume();
}
void let_near_read(Talk& talk) { talk.near->stream().resume(); }
void send_some(Talk& talk) {
  if (talk.exchange) talk.near->say("abc");
}
void say_something(Talk& talk) {
  if (talk.socket) talk.near->say(frame({}, "abc"));
}
void say_goodbye_too(Talk& talk) {
  if (!talk.socket) return;
  talk.near->stream().resume();
  talk.near->say(frame({.first = 0x88}, close_text(1000)));
  talk.near->stream().end();
}

using TalkOperation = destroying::Operation<Talk>;
using TalkMoment = destroying::Moment<Talk>;

const TalkOperation kTalkOperations[] = {
    {"fetch", fetches, answer_all},
    {"call", calls_and_waits, answer_some},
    {"call_response", waits_for_a_head, answer_some},
    {"call_read", reads_an_answer, answer_some},
    {"call_send", uploads, let_far_read},
    {"exchange_read", reads_a_body, send_some},
    {"exchange_send", answers, let_near_read},
    {"exchange_drained", waits_for_drain, let_near_read},
    {"websocket_connect", connects_a_socket, answer_all},
    {"websocket_receive", receives_a_message, say_something},
    {"websocket_send", sends_a_message, let_near_read},
    {"websocket_close", closes, say_goodbye_too},
};

class DestroyHttp : public ::testing::TestWithParam<std::tuple<TalkOperation, TalkMoment>> {};
INSTANTIATE_TEST_SUITE_P(All, DestroyHttp,
                         ::testing::Combine(::testing::ValuesIn(kTalkOperations),
                                            ::testing::ValuesIn(destroying::kMoments<Talk>)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  std::get<1>(test.param).name;
                         });

TEST_P(DestroyHttp, DestroyedWaiterIsSkippedAndNextOneIsServed) {
  for (const std::string_view backend : backends_here()) {
    SCOPED_TRACE(backend);
    Talk talk(backend);
    destroying::check(talk, std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
}

}  // namespace
}  // namespace spate::testing
