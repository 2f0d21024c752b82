// LengthField finds the messages in the input. A reply is a new header and the body as it arrived,
// gathered by the Stream into one write.
#include <spate/net/framing.h>
#include <spate/net/listener.h>
#include <spate/net/stream.h>

#include "harness/spate_loop.h"
#include "workloads/header_body/server.h"

namespace {

constexpr spate::LengthField kFraming = {.width = 4, .after = 4, .keep_header = true};

class Session final : public spate::StreamHandler {
 public:
  Session(spate::Stream stream, Tally& tally) : tally_(tally), stream_(std::move(stream)) {
    stream_.start(*this);
  }

  std::size_t on_data(spate::Bytes bytes) override {
    const std::size_t used =
        split(bytes, kFraming, [this](spate::Bytes message) { answer(message); }).used;
    tally_.bytes += used;
    return used;
  }
  void on_closed(std::error_code) override {
    ++tally_.closed;
    delete this;
  }

 private:
  void answer(spate::Bytes message) {
    Header header = header_at(message.data());
    header.count_up();
    stream_.write(std::as_bytes(std::span(&header, 1)));
    stream_.write(message.subspan(sizeof header));
  }

  Tally& tally_;
  spate::Stream stream_;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [&tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              new Session(std::move(stream), tally);
            }))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
