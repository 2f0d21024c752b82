// A chat in the browser with rooms, by WebSocket: a message is sent to all in its room. A slow
// reader with 64 kB queued misses messages.
//   websocket_chat 8080    look at it, in several windows: http://localhost:8080/#lobby
#include <csignal>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include "spate/http/router.h"
#include "spate/http/topic.h"
#include "spate/http/websocket_sessions.h"

using namespace std::chrono_literals;
using spate::http::CloseCode;
using spate::http::Exchange;
using spate::http::MessageKind;
using spate::http::Status;
using spate::http::Topic;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<meta charset="utf-8">
<title>chat</title>
<ul id="said"></ul>
<form><input autofocus> <button>say</button></form>
<script>
const room = location.hash.slice(1) || "lobby";
const socket = new WebSocket(`ws://${location.host}/rooms/${room}`);
const show = text => {
  const line = document.createElement("li");
  line.textContent = text;
  document.getElementById("said").append(line);
};
socket.onopen = () => document.title = room;
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

using Rooms = std::map<std::string, Topic>;

class User : public spate::http::WebSocketSession {
 public:
  explicit User(Topic& room) : room_(room) {}

  void on_open() override {
    room_.subscribe(socket());
    room_.publish("a guest joined; here: " + std::to_string(room_.size()));
  }
  void on_message(MessageKind kind, spate::Bytes bytes) override {
    if (kind != MessageKind::text) return socket().close(CloseCode::unsupported_data, "text only");
    room_.publish(spate::text_of(bytes));
  }
  void on_closed(CloseCode, std::string_view, std::error_code) override {
    room_.publish("a guest left; here: " + std::to_string(room_.size()));
  }

 private:
  Topic& room_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: websocket_chat [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));

  Rooms rooms;
  spate::http::WebSocketSessions<User> users(
      *loop,
      {.max_message = 1000,
       .limits = {
           .low = 4'000, .high = 16'000, .max = 64'000, .when_full = spate::WhenFull::drop}});
  spate::http::Router router;
  router.get("/", [](Exchange exchange) {
    exchange.respond(Status::ok, kPage, "text/html; charset=utf-8");
  });
  router.get("/rooms/:room", [&](Exchange exchange) {
    Topic& room = rooms[exchange.request().param("room")];
    users.accept(std::move(exchange), room);
  });
  auto server = spate::must(spate::http::serve(*loop, address, router));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
