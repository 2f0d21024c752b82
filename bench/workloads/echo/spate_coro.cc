// A coroutine for each connection: input is written back. Its frame has the Stream's handler in it,
// so all of its memory is the library's. State that all share is one argument, since arguments live
// as long as the Task.
#include <spate/coro/stream.h>
#include <spate/net/listener.h>

#include "harness/server.h"
#include "harness/spate_loop.h"

namespace {

using namespace spate;

struct Terms {
  Nanos idle;
  Tally& tally;
};

coro::Task<void> echo(spate::Stream accepted, const Terms* terms) {
  coro::Stream stream(std::move(accepted));
  if (terms->idle > Nanos{0}) stream.stream().set_idle_timeout(terms->idle);
  for (;;) {
    const Result<Bytes> some = co_await stream.read_some();
    if (!some && some.error() == Error::idle_timeout) ++terms->tally.expired;
    if (!some || some->empty()) break;
    terms->tally.bytes += some->size();
    stream.write(*some);
  }
  ++terms->tally.closed;
}

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        terms_{std::chrono::milliseconds(options.number("idle_ms")), tally},
        sessions_(*loop_),
        listener_(std::move(
            *Listener::adopt(*loop_, socket, [this](spate::Stream stream, const Address&) {
              ++terms_.tally.accepted;
              sessions_.spawn(echo(std::move(stream), &terms_));
            }))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<Loop> loop_;
  const Terms terms_;
  coro::Scope sessions_;
  Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
