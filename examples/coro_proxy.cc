// A TCP proxy, with coroutines: a session is two flows, one per direction. It forwards the end of
// one side while the other continues, and an error of either side resets both. A slow reader slows
// its sender down. (proxy.cc does this with relay(), in fewer lines.)
//   coro_proxy 8080 example.org 80         talk through it: nc localhost 8080
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "spate/coro/connect.h"
#include "spate/coro/listener.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/when.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;
using spate::Bytes;
using spate::Result;

namespace {

struct Target {
  std::string host;
  std::uint16_t port;
};

// Forwards bytes until the end of `from`, and then ends `to`.
coro::Task<Result<void>> flow(coro::Stream* from, coro::Stream* to) {
  for (;;) {
    const Bytes some = co_await coro::or_return(from->read_some());
    if (some.empty()) break;
    co_await coro::or_return(to->send(some));
  }
  to->stream().end();
  co_return {};
}

// The first error ends both flows.
coro::Task<Result<void>> relay(coro::Stream* client, const Target* target) {
  coro::Stream server(
      co_await coro::or_return(coro::connect(target->host, target->port, {.timeout = 10s})));
  server.stream().set_half_open(true);
  const auto both = co_await coro::when_all(flow(client, &server), flow(&server, client));
  if (both) co_return {};
  server.stream().abort();
  co_return std::unexpected(both.error());
}

coro::Task<void> session(spate::Stream accepted, const Target* target) {
  coro::Stream client(std::move(accepted));
  client.stream().set_half_open(true);
  const Result<void> ended = co_await relay(&client, target);
  if (!ended) client.stream().abort();
}

coro::Task<void> accept_all(coro::Listener* listener, coro::Scope* sessions, const Target* target) {
  for (;;) {
    Result<coro::Accepted> next = co_await listener->accept();
    sessions->spawn(session(std::move(next->stream), target));
  }
}

coro::Task<int> next_of(coro::Signals* signals) { co_return co_await signals->next(); }

// Serves until a signal arrives. The Scope's destructor then ends the sessions.
coro::Task<void> serve(spate::Loop& loop, spate::Address address, const Target* target) {
  coro::Listener listener = spate::must(coro::Listener::create(loop, address));
  coro::Signals signals(loop);
  spate::must(signals.add(SIGTERM));
  coro::Scope sessions(loop);
  std::cout << listener.listener().address().to_string() << std::endl;
  co_await coro::when_any(accept_all(&listener, &sessions, target), next_of(&signals));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: coro_proxy [HOST:]PORT HOST HOST-PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  const Target target{argv[2], static_cast<std::uint16_t>(std::atoi(argv[3]))};
  coro::run(*loop, serve(*loop, address, &target));
}
