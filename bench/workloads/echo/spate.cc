// A Listener, and a Stream for each connection: input is written back.
#include <spate/net/listener.h>
#include <spate/net/stream.h>

#include "harness/server.h"
#include "harness/spate_loop.h"

namespace {

class Session final : public spate::StreamHandler {
 public:
  Session(spate::Stream stream, spate::Nanos idle, Tally& tally)
      : tally_(tally), stream_(std::move(stream)) {
    if (idle > spate::Nanos{0}) stream_.set_idle_timeout(idle);
    stream_.start(*this);
  }

  std::size_t on_data(spate::Bytes bytes) override {
    tally_.bytes += bytes.size();
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    if (error == spate::Error::idle_timeout) ++tally_.expired;
    ++tally_.closed;
    delete this;
  }

 private:
  Tally& tally_;
  spate::Stream stream_;
};

spate::LoopOptions options_of(const ServerOptions& given) {
  spate::LoopOptions options;
  const std::chrono::microseconds window(given.number("busy_poll_us"));
  options.spin =
      given.number("adaptive") != 0 ? spate::Spin::adaptive(1, window) : spate::Spin::fixed(window);
  return options;
}

class Server {
 public:
  // A Session, the Stream's handle in it included, as the heap rounds it up.
  static constexpr std::size_t kUserBytes = (sizeof(Session) + 8 + 15) / 16 * 16;

  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv, options_of(options))),
        idle_(std::chrono::milliseconds(options.number("idle_ms"))),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [this, &tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              new Session(std::move(stream), idle_, tally);
            }))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  const spate::Nanos idle_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
