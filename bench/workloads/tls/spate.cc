// A Listener with_tls(), and a Stream for each connection, as in echo: a Stream that carries TLS is
// a Stream as any other. The large answer is referred to, not copied.
#include <spate/net/listener.h>
#include <spate/net/stream.h>
#include <spate/net/tls.h>

#include "harness/spate_loop.h"
#include "workloads/tls/server.h"

namespace {

class Session final : public spate::StreamHandler {
 public:
  Session(spate::Stream stream, bool is_bulk, Tally& tally)
      : tally_(tally), is_bulk_(is_bulk), stream_(std::move(stream)) {
    stream_.start(*this);
  }

  std::size_t on_data(spate::Bytes bytes) override {
    tally_.bytes += bytes.size();
    if (is_bulk_) {
      for (std::size_t left = asked_.take(bytes.size()); left > 0; --left) send_bulk();
    } else {
      stream_.write(bytes);
    }
    return bytes.size();
  }
  void on_closed(std::error_code) override {
    ++tally_.closed;
    delete this;
  }

 private:
  void send_bulk() {
    spate::Buffer buffer;
    buffer.append_reference(std::as_bytes(std::span(bench_bulk())), [](void*) {}, nullptr);
    stream_.write(std::move(buffer));
  }

  Tally& tally_;
  const bool is_bulk_;
  Asked asked_;
  spate::Stream stream_;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : kind_(options),
        loop_(bench_loop(options.argc, options.argv)),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket,
            spate::with_tls(
                spate::must(spate::TlsContext::server(
                    {.identities = {{.chain_file = kind_.chain, .key_file = kind_.key}}})),
                [this, &tally](spate::Stream stream, const spate::Address&) {
                  ++tally.accepted;
                  new Session(std::move(stream), kind_.is_bulk, tally);
                })))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", "libssl"); }

 private:
  const TlsServerKind kind_;
  std::unique_ptr<spate::Loop> loop_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
