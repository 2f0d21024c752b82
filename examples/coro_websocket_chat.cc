// A chat in the browser, with WebSockets and coroutines. Each client must send a name within 30
// seconds; further messages are sent to all. A slow reader with 64 kB queued misses messages.
//   coro_websocket_chat 8080    look at it, in several windows: http://localhost:8080/
#include <csignal>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "spate/coro/or_return.h"
#include "spate/coro/time.h"
#include "spate/http/coro_websocket.h"
#include "spate/http/router.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;
namespace http = spate::http;
using spate::Result;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<meta charset="utf-8">
<title>chat</title>
<ul id="said"></ul>
<form><input autofocus> <button>say</button></form>
<script>
const socket = new WebSocket(`ws://${location.host}/chat`);
const show = text => {
  const line = document.createElement("li");
  line.textContent = text;
  document.getElementById("said").append(line);
};
socket.onmessage = event => show(event.data);
socket.onclose = event => show(`(closed: ${event.code} ${event.reason})`);
document.forms[0].onsubmit = event => {
  event.preventDefault();
  const input = event.target.elements[0];
  socket.send(input.value);
  input.value = "";
};
</script>
)";

// Is in the room from its construction to its destruction.
class Member {
 public:
  using Room = std::vector<Member*>;

  Member(Room& room, coro::WebSocket& socket, std::string name)
      : room_(room), socket_(socket), name_(std::move(name)) {
    room_.push_back(this);
    broadcast(name_ + " joined; here: " + std::to_string(room_.size()));
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() {
    std::erase(room_, this);
    broadcast(name_ + " left; here: " + std::to_string(room_.size()));
  }

  void say(std::string_view text) { broadcast(name_ + ": " + std::string(text)); }

 private:
  // Does not wait, so that a slow reader delays no other member.
  void broadcast(const std::string& text) {
    for (Member* member : room_) member->socket_.socket().send(text);
  }

  Room& room_;
  coro::WebSocket& socket_;
  std::string name_;
};

coro::Task<Result<std::string>> receive_text(coro::WebSocket* socket) {
  const coro::Message message = co_await coro::or_return(socket->receive());
  if (message.kind == http::MessageKind::text) co_return std::string(spate::text_of(message.bytes));
  co_await socket->close(http::CloseCode::unsupported_data, "text only");
  co_return std::unexpected(spate::Error::ended);
}

coro::Task<Result<std::string>> log_in(coro::WebSocket* socket) {
  co_await coro::or_return(socket->send("who are you?"));
  co_return co_await receive_text(socket);
}

coro::Task<Result<void>> chat(coro::WebSocket* socket, Member::Room* room) {
  std::string name = co_await coro::or_return(coro::with_deadline(30s, log_in(socket)));
  Member member(*room, *socket, std::move(name));
  for (;;) {
    const std::string text = co_await coro::or_return(receive_text(socket));
    member.say(text);
  }
}

coro::Task<void> session(http::Exchange exchange, const http::WebSocketOptions* options,
                         Member::Room* room) {
  coro::WebSocket socket;
  if (socket.accept(std::move(exchange), *options)) co_return;  // The client got an error response.
  const Result<void> left = co_await chat(&socket, room);
  if (left.error() == spate::Error::deadline) {
    co_await socket.close(http::CloseCode::policy_violation, "no name");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: coro_websocket_chat [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  const http::WebSocketOptions options{
      .max_message = 1000,
      .limits = {.low = 4'000, .high = 16'000, .max = 64'000, .when_full = spate::WhenFull::drop}};

  Member::Room room;
  coro::Scope sessions(*loop);
  http::Router router;
  router.get("/", [](http::Exchange exchange) {
    exchange.respond(http::Status::ok, kPage, "text/html; charset=utf-8");
  });
  router.get("/chat", [&](http::Exchange exchange) {
    sessions.spawn(session(std::move(exchange), &options, &room));
  });
  auto server = spate::must(http::serve(*loop, address, router));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
