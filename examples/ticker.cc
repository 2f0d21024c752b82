// Broadcasts a price ten times a second, by WebSocket over HTTP/1.1 or HTTP/2. Each message is
// framed once for thousands of subscribers. A slow reader with 8 kB queued misses messages.
//   ticker 8080    look at it: http://localhost:8080/
#include <csignal>
#include <iostream>
#include <random>
#include <string>
#include <utility>

#include "spate/http/http2.h"
#include "spate/http/router.h"
#include "spate/http/topic.h"
#include "spate/http/websocket_sessions.h"
#include "spate/timer.h"

using namespace std::chrono_literals;
using spate::http::CloseCode;
using spate::http::Exchange;
using spate::http::MessageKind;
using spate::http::Status;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<meta charset="utf-8">
<title>ticker</title>
<h1>...</h1>
<script>
const socket = new WebSocket(`ws://${location.host}/prices`);
const show = text => document.querySelector("h1").textContent = text;
socket.onmessage = event => show(JSON.parse(event.data).price);
socket.onclose = () => show("closed");
</script>
)";

class Ticker {
 public:
  void move() {
    cents_ += static_cast<int>(random_() % 201) - 100;
    if (cents_ < 100) cents_ = 100;
    ++tick_;
    listeners_.publish(latest());
  }
  // Sends the last price at once.
  void add(spate::http::WebSocket& socket) {
    socket.send(latest());
    listeners_.subscribe(socket);
  }

 private:
  std::string latest() const {
    const std::string cents = std::to_string(cents_);
    return R"({"tick": )" + std::to_string(tick_) + R"(, "price": )" +
           cents.substr(0, cents.size() - 2) + "." + cents.substr(cents.size() - 2) + "}";
  }

  std::minstd_rand random_;
  spate::http::Topic listeners_;
  int tick_ = 0;
  int cents_ = 100'00;
};

class Listener : public spate::http::WebSocketSession {
 public:
  explicit Listener(Ticker& ticker) : ticker_(ticker) {}

  void on_open() override { ticker_.add(socket()); }
  void on_message(MessageKind, spate::Bytes) override {
    socket().close(CloseCode::policy_violation, "listen");
  }

 private:
  Ticker& ticker_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: ticker [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));

  Ticker ticker;
  spate::http::WebSocketSessions<Listener> listeners(
      *loop,
      {.max_message = 100,
       .limits = {.low = 1'000, .high = 4'000, .max = 8'000, .when_full = spate::WhenFull::drop}});
  spate::http::Router router;
  router.get("/", [](Exchange exchange) {
    exchange.respond(Status::ok, kPage, "text/html; charset=utf-8");
  });
  router.get("/prices", [&](Exchange exchange) { listeners.accept(std::move(exchange), ticker); });
  spate::http::ServerOptions options;
  options.http2 = spate::must(spate::http::Http2::create());
  auto server = spate::must(spate::http::serve(*loop, address, router, std::move(options)));

  spate::Timer timer(*loop, [&](spate::Timer&) { ticker.move(); });
  timer.start(100ms, 100ms);
  spate::must(loop->on_signal(SIGTERM, [&] {
    timer.stop();
    server.drain(5s, [&] { loop->stop(); });
  }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
