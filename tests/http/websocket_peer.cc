// One end of a WebSocket, for tests with other implementations.
//   http_websocket_peer certify DIR      writes root.pem, and server.pem, signed by it
//   http_websocket_peer serve DIR        an echo; prints its URL, and the one over TLS
//   http_websocket_peer ask URL DIR      has messages echoed, and closes; exits with 0 if all
//                                         was right
//   http_websocket_peer ask-http2 URL DIR  the same over HTTP/2, by three on one connection
//   http_websocket_peer run-cases URL     lets a server of Autobahn's cases test our client
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/websocket_sessions.h"
#include "spate/net/tls.h"
#include "tls/testing/certificates.h"

namespace {

using spate::http::CloseCode;
using spate::http::MessageKind;
using spate::http::WebSocket;

const spate::http::WebSocketOptions kOptions = {
    .max_message = 1 << 24,
    .protocols = {"echo"},
    .compression = spate::http::WebSocketCompression::each_message,
};

struct Echo : spate::http::WebSocketSession {
  void on_message(MessageKind kind, spate::Bytes bytes) override { socket().send(kind, bytes); }
};

int certify(const std::string& directory) {
  const auto& server = spate::testing::test_server();
  std::ofstream(directory + "/root.pem") << spate::testing::test_root().pem();
  std::ofstream(directory + "/server.pem") << server.pem() << server.key_pem();
  return 0;
}

int serve(spate::Loop& loop, const std::string& directory) {
  spate::http::WebSocketSessions<Echo> echoes(loop, kOptions);
  const auto accept = [&](spate::http::Exchange exchange) { echoes.accept(std::move(exchange)); };
  const spate::Address anywhere = spate::Address::loopback_ipv4(0);
  const std::string file = directory + "/server.pem";
  spate::http::ServerOptions options;
  options.tls = spate::must(spate::TlsContext::server(
      {.identities = {{.chain_file = file, .key_file = file}}, .alpn = {"h2", "http/1.1"}}));
  options.http2 = spate::must(spate::http::Http2::create());
  auto plain = spate::must(spate::http::serve(loop, anywhere, accept,
                                              spate::http::ServerOptions{.http2 = options.http2}));
  auto secure = spate::must(spate::http::serve(loop, anywhere, accept, std::move(options)));
  spate::must(loop.on_signal(SIGTERM, [&] { loop.stop(); }));
  std::cout << "ws://" << plain.address().to_string() << "/\n"
            << "wss://" << secure.address().to_string() << "/" << std::endl;
  loop.run();
  return 0;
}

class Asking final : public spate::http::WebSocketHandler {
 public:
  void on_open() override {
    is_good_ = socket.protocol() == "echo";
    ask();
  }
  void on_message(MessageKind kind, spate::Bytes bytes) override {
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

int ask(spate::Loop& loop, std::string_view url, const std::string& directory) {
  const spate::TlsContext context = spate::must(
      spate::TlsContext::client({.system_cas = false, .ca_file = directory + "/root.pem"}));
  auto client = spate::must(spate::http::Client::create(loop, {.tls = context}));
  Asking asking;
  asking.socket = spate::must(WebSocket::connect(client, url, asking, kOptions));
  loop.run();
  return asking.is_good() ? 0 : 1;
}

int ask_http2(spate::Loop& loop, std::string_view url, const std::string& directory) {
  spate::http::ClientOptions options{.max_per_origin = 1};
  options.tls = spate::must(spate::TlsContext::client(
      {.system_cas = false, .ca_file = directory + "/root.pem", .alpn = {"h2", "http/1.1"}}));
  options.http2 = spate::must(spate::http::Http2::create());
  options.http2_without_tls = true;
  auto client = spate::must(spate::http::Client::create(loop, std::move(options)));
  std::vector<Asking> asking(3);
  for (Asking& each : asking)
    each.socket = spate::must(WebSocket::connect(client, url, each, kOptions));
  loop.run();
  const bool is_shared = client.metrics().connections <= 1 && client.metrics().reused >= 2;
  return is_shared && std::ranges::all_of(asking, &Asking::is_good) ? 0 : 1;
}

// The server numbers its cases, and each is a connection on which we echo. We request the number of
// cases before the first, and the report after the last.
class Tried final : public spate::http::WebSocketHandler {
 public:
  Tried(spate::http::Client& client, std::string url) : client_(client), url_(std::move(url)) {
    connect("/getCaseCount");
  }

  void on_message(MessageKind kind, spate::Bytes bytes) override {
    if (number_ == 0) {
      count_ = std::stoi(std::string(spate::text_of(bytes)));
    } else {
      socket_.send(kind, bytes);
    }
  }
  void on_closed(CloseCode, std::string_view, std::error_code) override {
    if (++number_ <= count_) {
      connect("/runCase?case=" + std::to_string(number_) + "&agent=spate");
    } else if (number_ == count_ + 1) {
      connect("/updateReports?agent=spate");
    }
  }
  bool is_done() const { return count_ > 0 && number_ == count_ + 2; }

 private:
  void connect(const std::string& path) {
    socket_ = spate::must(WebSocket::connect(client_, url_ + path, *this, options()));
  }
  static spate::http::WebSocketOptions options() {
    return {.max_message = 1 << 24,
            .compression = spate::http::WebSocketCompression::each_message,
            .compress_from = 0};
  }

  spate::http::Client& client_;
  const std::string url_;
  int count_ = 0;
  int number_ = 0;
  WebSocket socket_;
};

int run_cases(spate::Loop& loop, const std::string& url) {
  auto client = spate::must(spate::http::Client::create(loop));
  const Tried tried(client, url);
  loop.run();
  return tried.is_done() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  auto loop = spate::must(spate::Loop::create());
  if (what == "certify" && argc == 3) return certify(argv[2]);
  if (what == "serve" && argc == 3) return serve(*loop, argv[2]);
  if (what == "ask" && argc == 4) return ask(*loop, argv[2], argv[3]);
  if (what == "ask-http2" && argc == 4) return ask_http2(*loop, argv[2], argv[3]);
  if (what == "run-cases" && argc == 3) return run_cases(*loop, argv[2]);
  std::cerr
      << "usage: http_websocket_peer certify DIR | serve DIR | ask URL DIR | ask-http2 URL DIR |"
         " run-cases URL\n";
  return 2;
}
