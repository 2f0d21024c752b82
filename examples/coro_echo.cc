// A TCP echo server, with coroutines.
//   coro_echo 7000          talk to it: nc localhost 7000
#include <csignal>
#include <iostream>

#include "spate/coro/listener.h"
#include "spate/coro/run.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/until_stop.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;

namespace {

coro::Task<void> echo(spate::Stream accepted) {
  coro::Stream stream(std::move(accepted));
  for (;;) {
    const spate::Result<spate::Bytes> some = co_await coro::until_stop(stream.read_some());
    if (!some || some->empty()) break;
    co_await stream.send(*some);
  }
  co_await stream.finish();
}

coro::Task<void> accept_all(coro::Listener* listener, coro::Scope* sessions) {
  for (;;) {
    spate::Result<coro::Accepted> next = co_await coro::until_stop(listener->accept());
    if (!next) co_return;
    sessions->spawn(echo(std::move(next->stream)));
  }
}

coro::Task<void> serve(spate::Loop& loop, spate::Address address) {
  coro::Listener listener = spate::must(coro::Listener::create(loop, address));
  coro::Signals signals(loop);
  spate::must(signals.add(SIGTERM));
  coro::Scope sessions(loop);
  sessions.spawn(accept_all(&listener, &sessions));
  std::cout << listener.listener().address().to_string() << std::endl;
  co_await signals.next();
  co_await sessions.join(5s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: coro_echo [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  coro::run(*loop, serve(*loop, spate::must(spate::Address::parse_listen(argv[1]))));
}
