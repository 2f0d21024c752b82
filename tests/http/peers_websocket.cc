// One end of a WebSocket, for tests with other implementations.
//   http_peers_websocket serve      an echo; prints its address
//   http_peers_websocket ask URL    has messages echoed, and says goodbye; exits with 0 if all
//                                   was as it should be
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/websocket_sessions.h"

namespace {

using spate::http::CloseCode;
using spate::http::MessageKind;
using spate::http::WebSocket;

const spate::http::WebSocketOptions kOptions = {
    .max_message = 1 << 22,
    .protocols = {"echo"},
    .compression = spate::http::WebSocketCompression::each_message,
};

struct Echo : spate::http::WebSocketSession {
  void on_message(spate::Bytes bytes, MessageKind kind) override { socket().send(kind, bytes); }
};

int serve(spate::Loop& loop) {
  spate::http::WebSocketSessions<Echo> echoes(loop, kOptions);
  auto server = spate::must(spate::http::serve(
      loop, spate::Address::loopback_ipv4(0),
      [&](spate::http::Exchange exchange) { echoes.accept(std::move(exchange)); }));
  spate::must(loop.on_signal(SIGTERM, [&] { loop.stop(); }));
  std::cout << server.address().to_string() << std::endl;
  loop.run();
  return 0;
}

class Asking final : public spate::http::WebSocketHandler {
 public:
  void on_open() override {
    is_good_ = socket.protocol() == "echo";
    ask();
  }
  void on_message(spate::Bytes bytes, MessageKind kind) override {
    const bool is_echo = spate::text_of(bytes) == message() && kind == this->kind();
    is_good_ = is_good_ && is_echo;
    ++asked_;
    asked_ == kSizes.size() ? static_cast<void>(socket.ping(spate::bytes_of("last"))) : ask();
  }
  void on_pong(spate::Bytes bytes) override {
    is_good_ = is_good_ && spate::text_of(bytes) == "last";
    has_ponged_ = true;
    socket.close(CloseCode{3456}, "enough");
  }
  void on_closed(CloseCode code, std::string_view, std::error_code error) override {
    is_good_ = is_good_ && has_ponged_ && code == CloseCode{3456} && !error;
    std::cout << "closed " << static_cast<int>(code) << " " << error.message() << std::endl;
  }
  bool is_good() const { return is_good_; }

  WebSocket socket;

 private:
  inline static const std::vector<std::size_t> kSizes = {0,   1,     20,    125,     126,
                                                         300, 65535, 65536, 1 << 20, 5};

  MessageKind kind() const { return asked_ % 2 == 0 ? MessageKind::text : MessageKind::binary; }
  std::string message() const { return std::string(kSizes[asked_], char('a' + asked_)); }
  void ask() { socket.send(kind(), spate::bytes_of(message())); }

  std::size_t asked_ = 0;
  bool is_good_ = false;
  bool has_ponged_ = false;
};

int ask(spate::Loop& loop, std::string_view url) {
  auto client = spate::must(spate::http::Client::create(loop));
  Asking asking;
  asking.socket = spate::must(WebSocket::connect(client, url, asking, kOptions));
  loop.run();
  return asking.is_good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  auto loop = spate::must(spate::Loop::create());
  if (what == "serve") return serve(*loop);
  if (what == "ask" && argc == 3) return ask(*loop, argv[2]);
  std::cerr << "usage: http_peers_websocket serve | ask URL\n";
  return 2;
}
