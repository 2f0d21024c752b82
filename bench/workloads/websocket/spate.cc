// WebSocketSessions behind an http::Server: each message is sent back where it is shown, or
// published to a Topic.
#include <spate/http/server.h>
#include <spate/http/topic.h>
#include <spate/http/websocket_sessions.h>
#include <spate/net/listener.h>

#include "harness/server.h"
#include "harness/spate_loop.h"

namespace {

struct Echo : spate::http::WebSocketSession {
  void on_message(spate::http::MessageKind kind, spate::Bytes bytes) override {
    socket().send(kind, bytes);
  }
};

struct Teller : spate::http::WebSocketSession {
  explicit Teller(spate::http::Topic& all) : all_(all) {}
  void on_open() override { all_.subscribe(socket()); }
  void on_message(spate::http::MessageKind kind, spate::Bytes bytes) override {
    all_.publish(kind, bytes);
  }

 private:
  spate::http::Topic& all_;
};

class Server final : public spate::http::Service {
 public:
  static constexpr std::size_t kUserBytes = sizeof(Echo);

  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        sessions_(*loop_),
        tellers_(*loop_),
        server_(std::move(*spate::http::Server::create(*loop_, *this))),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [this, &tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              server_.add(std::move(stream));
            }))) {}

  void on_request(spate::http::Exchange exchange) override {
    if (exchange.request().path() == "/tell")
      tellers_.accept(std::move(exchange), all_);
    else
      sessions_.accept(std::move(exchange));
  }

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  spate::http::Topic all_;
  spate::http::WebSocketSessions<Echo> sessions_;
  spate::http::WebSocketSessions<Teller> tellers_;
  spate::http::Server server_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
