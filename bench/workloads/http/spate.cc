// A service of http::Server: answers are given where the request is seen, files by http::Files,
// uploads counted as they come.
#include <spate/http/exchange.h>
#include <spate/http/files.h>
#include <spate/http/server.h>
#include <spate/net/listener.h>

#include "harness/spate_loop.h"
#include "workloads/http/server.h"

namespace {

using spate::http::Exchange;
using spate::http::Status;

// Receives an upload.
class Upload final : public spate::http::ExchangeHandler {
 public:
  explicit Upload(Exchange exchange) : exchange_(std::move(exchange)) { exchange_.start(*this); }

  void on_body(spate::Bytes bytes) override { size_ += bytes.size(); }
  void on_body_end(const spate::http::FieldsView&) override {
    exchange_.respond(std::to_string(size_));
  }
  void on_closed(std::error_code) override { delete this; }

 private:
  ~Upload() = default;
  Exchange exchange_;
  std::uint64_t size_ = 0;
};

class Server final : public spate::http::Service {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        files_(std::move(*spate::http::Files::open(BenchFileTree::directory()))),
        server_(std::move(*spate::http::Server::create(*loop_, *this))),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [this, &tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              server_.add(std::move(stream));
            }))) {}

  void on_request(Exchange exchange) override {
    const std::string_view path = exchange.request().path();
    if (path == "/hello") {
      exchange.respond(kHello);
    } else if (path == "/page") {
      exchange.respond(Status::ok, bench_page(), Exchange::kText);
    } else if (path == "/file") {
      files_.serve(std::move(exchange));
    } else {
      new Upload(std::move(exchange));
    }
  }

  void run() { loop_->run(); }
  static void remove_files() { BenchFileTree::remove(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  spate::http::Files files_;
  spate::http::Server server_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
