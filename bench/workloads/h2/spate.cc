// A service of http::Server, which speaks HTTP/2 by its engine: answers are given where the request
// is seen.
#include <spate/http/exchange.h>
#include <spate/http/http2.h>
#include <spate/http/server.h>
#include <spate/net/listener.h>

#include "harness/spate_loop.h"
#include "workloads/http/server.h"

namespace {

using spate::http::Exchange;
using spate::http::Status;

spate::http::ServerOptions options_of_server() {
  spate::http::ServerOptions options;
  options.http2 = spate::must(spate::http::Http2::create());
  return options;
}

class Server final : public spate::http::Service {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        server_(spate::must(spate::http::Server::create(*loop_, *this, options_of_server()))),
        listener_(spate::must(spate::Listener::adopt(
            *loop_, socket, [this, &tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              server_.add(std::move(stream));
            }))) {}

  void on_request(Exchange exchange) override {
    if (exchange.request().path() == "/hello")
      exchange.respond(kHello);
    else
      exchange.respond(Status::ok, bench_page(), Exchange::kText);
  }

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  spate::http::Server server_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
