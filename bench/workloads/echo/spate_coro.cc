// A coroutine for each connection: what arrives is written back. Its frame has the Stream's handler
// in it, so all of its memory is the library's. Arguments last as long as the Task, so what is
// needed once, the time limit, is none.
#include <spate/coro/stream.h>
#include <spate/net/listener.h>

#include "harness/server.h"
#include "harness/spate_loop.h"

namespace {

using namespace spate;

coro::Task<void> echo(spate::Stream accepted, Tally* tally) {
  coro::Stream stream(std::move(accepted));
  for (;;) {
    const Result<Bytes> some = co_await stream.read_some();
    if (!some && some.error() == Error::idle_timeout) ++tally->expired;
    if (!some || some->empty()) break;
    tally->bytes += some->size();
    stream.write(*some);
  }
  ++tally->closed;
}

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        idle_(std::chrono::milliseconds(options.number("idle_ms"))),
        sessions_(*loop_),
        listener_(std::move(
            *Listener::adopt(*loop_, socket, [this, &tally](spate::Stream stream, const Address&) {
              ++tally.accepted;
              if (idle_ > Nanos{0}) stream.set_idle_timeout(idle_);
              sessions_.spawn(echo(std::move(stream), &tally));
            }))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<Loop> loop_;
  const Nanos idle_;
  coro::Scope sessions_;
  Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
