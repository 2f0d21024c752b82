// The server that table.py leads other programs to, over HTTP/1 and HTTP/2 on one port. Prints its
// address. SIGTERM drains it.
//
// The path says when the response comes, and each response ends with the query of its request, so
// that no response passes for another one:
//   /before   at once, whatever the body is     /aborts    the connection is reset
//   /during   with the first piece of the body  /drops     500, as the Exchange is destroyed
//   /after    with the end of the body          /never     none until the client ends
//   /limited  413 if the body is long           /upgrades  an echo if requested, or 200
//   /chunks   at once, in pieces                /open      how many other exchanges there are
#include <csignal>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "spate/signal.h"

using spate::http::Exchange;
using spate::http::ExchangeHandler;
using spate::http::Status;

namespace {

constexpr std::size_t kLimit = 1000;
constexpr spate::Nanos kGrace{10'000'000'000};
// The end of a client is not noticed while its pipelined request is unread.
constexpr spate::Nanos kPatience{3'000'000'000};

std::string answer_of(const Exchange& exchange) {
  return std::string(exchange.request().path()) + " " + std::string(exchange.request().query()) +
         "\n";
}

enum class When { first_piece, end, never };

class Reader final : public ExchangeHandler {
 public:
  Reader(std::list<Reader>& all, Exchange exchange, When when)
      : all_(all),
        exchange_(std::move(exchange)),
        answer_(answer_of(exchange_)),
        when_(when),
        has_body_(exchange_.request().has_body()) {}

  void start() {
    exchange_.start(*this);
    if (when_ == When::never) exchange_.set_deadline(kPatience);
    if (!has_body_ && when_ != When::never) respond();
  }
  void on_body(spate::Bytes) override {
    if (when_ == When::first_piece) respond();
  }
  void on_body_end(const spate::http::FieldsView&) override {
    if (when_ != When::never) respond();
  }
  void on_client_end() override {
    if (when_ != When::never) return;
    exchange_.abort();
    remove();
  }
  void on_closed(std::error_code) override { remove(); }

 private:
  void respond() {
    if (!std::exchange(has_answered_, true)) exchange_.respond(answer_);
  }
  void remove() {
    all_.remove_if([this](const Reader& each) { return &each == this; });
  }

  std::list<Reader>& all_;
  Exchange exchange_;
  std::string answer_;
  When when_;
  bool has_body_;
  bool has_answered_ = false;
};

// Echoes each byte of an upgraded connection.
class Echo final : public spate::StreamHandler {
 public:
  Echo(std::list<Echo>& all, spate::Stream stream) : all_(all), stream_(std::move(stream)) {}
  void start() { stream_.start(*this); }
  std::size_t on_data(spate::Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override {
    all_.remove_if([this](const Echo& each) { return &each == this; });
  }

 private:
  std::list<Echo>& all_;
  spate::Stream stream_;
};

class Table final : public spate::http::Service {
 public:
  void watch(const spate::http::Server& server) { server_ = &server; }

  void on_request(Exchange exchange) override {
    const std::string path(exchange.request().path());
    if (path == "/during") return read(std::move(exchange), When::first_piece);
    if (path == "/after") return read(std::move(exchange), When::end);
    if (path == "/never") return read(std::move(exchange), When::never);
    if (path == "/limited") return read_limited(std::move(exchange));
    if (path == "/aborts") return exchange.abort();
    if (path == "/drops") return;
    if (path == "/chunks") return send_chunks(std::move(exchange));
    if (path == "/upgrades" || path.empty()) return upgrade(std::move(exchange));
    if (path == "/open") return count(std::move(exchange));
    exchange.respond(answer_of(exchange));
  }

 private:
  void read(Exchange exchange, When when) {
    readers_.emplace_back(readers_, std::move(exchange), when).start();
  }
  static void read_limited(Exchange exchange) {
    read_body(std::move(exchange), kLimit,
              [](Exchange whole, spate::Bytes) { whole.respond(answer_of(whole)); });
  }
  static void send_chunks(Exchange exchange) {
    const std::string answer = answer_of(exchange);
    exchange.begin(Status::ok);
    for (const char& letter : answer) exchange.write(std::string_view(&letter, 1));
    exchange.end();
  }
  void upgrade(Exchange exchange) {
    const bool is_tunnel = exchange.request().method() == spate::http::Method::connect;
    auto stream = exchange.upgrade(is_tunnel ? "" : "echo");
    if (stream) return echoes_.emplace_back(echoes_, std::move(*stream)).start();
    exchange.respond(answer_of(exchange));
  }
  void count(Exchange exchange) {
    exchange.respond(std::to_string(server_->metrics().exchanges - 1) + "\n");
  }

  const spate::http::Server* server_ = nullptr;
  std::list<Reader> readers_;
  std::list<Echo> echoes_;
};

}  // namespace

int main() {
  const auto loop = spate::must(spate::Loop::create());
  Table table;
  spate::http::ServerOptions options;
  options.http2 = spate::must(spate::http::Http2::create());
  spate::http::Server server = spate::must(
      spate::http::serve(*loop, spate::Address::loopback_ipv4(0), table, std::move(options)));
  table.watch(server);
  std::cout << server.address().to_string() << std::endl;
  spate::Signal terminate(*loop, [&server](spate::Signal& self) {
    self.stop();
    server.drain(kGrace);
  });
  spate::must(terminate.start(SIGTERM));
  loop->run();
}
