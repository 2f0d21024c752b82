// Coroutines in Worlds with all kinds of faults: each request gets its response, deadlines hold,
// and cancelled operations leave nothing behind.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "spate/coro/connect.h"
#include "spate/coro/or_return.h"
#include "spate/coro/scope.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/net/framing.h"
#include "spate/net/listener.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::World;

constexpr std::uint16_t kLinePort = 7001;
constexpr int kQuestions = 20;
constexpr Nanos kCoroTrouble = 1min;

coro::Task<void> answer_lines(Stream accepted) {
  coro::Stream stream(std::move(accepted));
  for (;;) {
    const Result<Bytes> line = co_await stream.read(Delimiter{});
    if (!line) co_return;
    std::string answer(text_of(*line));
    answer += " indeed\n";
    const Result<void> sent = co_await stream.send(answer);
    if (!sent) co_return;
  }
}

struct LineServer {
  std::unique_ptr<coro::Scope> sessions;
  Listener listener;
};

LineServer serve_lines(Loop& loop) {
  LineServer server{std::make_unique<coro::Scope>(loop), {}};
  const auto accept = [sessions = server.sessions.get()](Stream stream, const Address&) {
    stream.set_idle_timeout(1min);
    sessions->spawn(answer_lines(std::move(stream)));
  };
  auto listener = Listener::create(loop, Address::any_ipv6(kLinePort), accept);
  if (listener) server.listener = std::move(*listener);
  return server;
}

struct Quest {
  World& world;
  Address server;
  int answered = 0;
  int attempts = 0;
  bool is_done = false;
};

coro::Task<Result<void>> converse(Quest* quest) {
  ++quest->attempts;
  const ConnectOptions options{.timeout = 5s};
  Stream connected = co_await coro::or_return(coro::connect(quest->server, options));
  coro::Stream peer(std::move(connected));
  while (quest->answered < kQuestions) {
    const std::string question = "question " + std::to_string(quest->answered);
    const std::string line = question + '\n';
    co_await coro::or_return(peer.send(line));
    const Bytes answer = co_await coro::or_return(peer.read(Delimiter{}));
    const bool is_right = text_of(answer) == question + " indeed";
    sim::always(is_right, "an answer is that to its question");
    ++quest->answered;
    const Nanos pause = drawn_span(quest->world, 5s);
    co_await coro::sleep(pause);
  }
  co_return Result<void>();
}

coro::Task<void> insist(Quest* quest) {
  while (quest->answered < kQuestions) {
    const Nanos begin = quest->world.now();
    const auto outcome = co_await coro::with_deadline(30s, converse(quest));
    const Nanos span = quest->world.now() - begin;
    const bool is_late = !outcome && outcome.error() == Error::deadline;
    sim::sometimes(is_late, "a conversation takes too long");
    sim::sometimes(!outcome && !is_late, "a conversation fails");
    sim::sometimes(outcome.has_value() && quest->attempts > 1, "another attempt succeeds");
    // By the host's own clock, which may be wrong by a tenth.
    sim::always(!is_late || span >= 27s, "no deadline is early");
    co_await coro::sleep(1s);
  }
  quest->is_done = true;
}

void play_coroutines(World& world) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  draw_weather(world, server, client, kCoroTrouble);
  server.boot(serve_lines);
  Quest quest{world, server.address(kLinePort)};
  {
    std::unique_ptr<coro::Scope> scope =
        client.run([](Loop& loop) { return std::make_unique<coro::Scope>(loop); });
    client.run([&](Loop&) { scope->spawn(insist(&quest)); });
    // Restarts a server that could not listen, as a service manager would.
    world.at(kCoroTrouble + 1s, [&] {
      server.resume();
      if (server.is_up()) server.crash();
      server.restart();
    });
    const bool is_cancelled = world.draw(4) == 0;
    world.run_until([&] { return quest.is_done; }, is_cancelled ? 20s : 1h);
    sim::always(is_cancelled || quest.is_done, "each question is answered");
  }
  world.run_for(1h);
  sim::always(client.open_descriptors() <= 4, "the client leaves nothing open");
}

SPATE_SWARM(ACoroutinesQuestionGetsItsOwnAnswer, 1200, play_coroutines)

}  // namespace
}  // namespace spate::testing
