// A RequestPipe in Worlds with all kinds of faults, against a model: each request has exactly one
// result, its own response or an error that is possible, in order; and in the end all succeed.
#include "spate/net/request_pipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "spate/net/bytes.h"
#include "spate/net/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kPipePort = 7005;
constexpr Nanos kPipeTrouble = 1min;

enum class PipeMistake : std::uint8_t { none, skips_a_response };

// Pushes now and then. Responds to "n" with "=n", in order, after a
// while for some; a connection that has not said hello gets no response.
struct PipeTalker : Session {
  PipeTalker(World& all, PipeMistake made) : world(all), mistake(made) {}
  void on_open() override {
    stream().set_idle_timeout(90s);
    later.emplace(stream().loop(), [this] { respond(); });
  }
  std::size_t on_data(Bytes bytes) override {
    return split(bytes, Delimiter{},
                 [this](Bytes line) {
                   if (due.empty() && !later->is_active())
                     later->start(world.draw(3) == 0 ? drawn_span(world, 4s) : 0s);
                   due.emplace_back(text_of(line));
                 })
        .used;
  }
  void respond() {
    std::size_t count = 1 + world.draw(4);
    for (; count > 0 && !due.empty(); --count) {
      if (!has_hello) sim::always(due.front() == "hello", "the set-up comes first");
      has_hello = true;
      if (world.draw(5) == 0) stream().write(">push\n");
      if (mistake == PipeMistake::none || world.draw(20) != 0)
        stream().write("=" + due.front() + "\n");
      due.pop_front();
    }
    if (!due.empty()) later->start(drawn_span(world, 1s));
  }

  World& world;
  const PipeMistake mistake;
  std::deque<std::string> due;
  std::optional<Timer> later;
  bool has_hello = false;
};

auto serve_lines(World& world, PipeMistake mistake) {
  return [&world, mistake](Loop& loop) {
    auto server = serve<PipeTalker>(loop, Address::any_ipv6(kPipePort), std::ref(world), mistake);
    return server ? std::move(*server) : Server<PipeTalker>();
  };
}

struct PushedLines : Delimiter {
  bool is_push(Bytes message) const { return text_of(message).starts_with('>'); }
};

PipeOptions drawn_pipe(World& world) {
  PipeOptions options;
  options.client.connect.timeout = 500ms + drawn_span(world, 10s);
  options.client.first_delay = drawn_span(world, 2s);
  options.client.max_delay = options.client.first_delay + drawn_span(world, 5s);
  options.deadline = world.draw(3) == 0 ? 0s : 1s + drawn_span(world, 20s);
  options.max_requests = 5 + world.draw(200);
  options.limits = {.low = 10, .high = 200, .max = 50 + world.draw(3000)};
  options.limits.high = std::min(options.limits.high, options.limits.max);
  return options;
}

// Makes requests, cancels some, resets and replaces the pipe, and compares each result.
class PipeCaller {
 public:
  PipeCaller(World& world, Loop& loop, const Address& server)
      : world_(world), loop_(loop), server_(server), act_(loop, [this] { act(); }) {
    open();
    act_.start(0s);
  }
  bool is_done() const { return is_over_ && std::ranges::all_of(asked_, &Asked::is_cancelled); }

 private:
  struct Asked {
    std::uint64_t number;
    bool may_repeat;
    PipeRequest handle;
    bool is_cancelled = false;
  };

  void open() {
    asked_.clear();
    const PipeOptions options = drawn_pipe(world_);
    pipe_ = must(RequestPipe<PushedLines>::create(
        loop_, server_, {},
        {.on_connected = [this] { greet(); },
         .on_push = [](Bytes bytes) { sim::always(text_of(bytes) == ">push", "a push is whole"); },
         .on_drained = [this] { sim::sometimes(!pipe_.is_full(), "it is full and drains"); },
         .on_disconnected =
             [](std::error_code error) {
               sim::always(error != std::errc::protocol_error, "no response is without request");
             }},
        options));
  }
  void greet() {
    sim::always(!pipe_.is_connected(), "it is set up first");
    const std::error_code error = pipe_.request("hello\n", [this](Result<Bytes> response) {
      sim::always(!response || text_of(*response) == "=hello",
                  "the first response is the set-up's");
      sim::always(!is_inside_, "no callback is called inside");
    });
    sim::always(!error || error == std::errc::not_connected, "the set-up is accepted");
  }
  void act() {
    is_inside_ = true;
    if (world_.now() > kPipeTrouble + 30s) {
      ask(kWell);
      is_over_ = true;
    } else {
      random_act();
    }
    is_inside_ = false;
    if (!is_over_) act_.start(drawn_span(world_, world_.draw(2) == 0 ? 2s : 50ms));
  }
  void random_act() {
    switch (world_.draw(24)) {
      case 0:
        return pipe_.reset();
      case 1:
        return cancel_one();
      case 2:
        return pipe_.connect();
      case 3:
        if (world_.draw(4) == 0) open();
        return;
      default:
        for (std::uint64_t left = 1 + world_.draw(8); left > 0; --left) ask(++last_);
    }
  }
  void ask(std::uint64_t number) {
    Asked& asked = asked_.emplace_back(number, world_.draw(3) == 0);
    PipeRequestOptions options{.repeats = static_cast<std::uint8_t>(asked.may_repeat ? 5 : 0),
                               .handle = &asked.handle};
    if (number == kWell) options.deadline = 0s;
    if (number == kWell) options.repeats = 200;
    const std::error_code error = pipe_.request(
        std::to_string(number) + "\n",
        [this, number](Result<Bytes> result) { take(number, std::move(result)); }, options);
    if (!error) return;
    sim::sometimes(error == Error::queue_full, "a request is refused");
    sim::always(error == Error::queue_full, "a request is refused only by a limit");
    asked_.pop_back();
    if (number == kWell) asked_.clear();
  }
  void cancel_one() {
    if (asked_.empty()) return;
    Asked& chosen = asked_[world_.draw(asked_.size())];
    sim::sometimes(chosen.handle.is_pending(), "a request is cancelled");
    chosen.handle.cancel();
    chosen.is_cancelled = true;
  }
  void take(std::uint64_t number, Result<Bytes> result) {
    sim::always(!is_inside_, "no callback is called inside");
    const auto found = std::ranges::find(asked_, number, &Asked::number);
    sim::always(found != asked_.end(), "each request has one result");
    sim::always(!found->is_cancelled, "a cancelled request has no result");
    sim::always(!found->handle.is_pending(), "a request with a result is not pending");
    if (result) {
      sim::always(text_of(*result) == "=" + std::to_string(number), "it is its own response");
      check_order(found);
    } else {
      check_error(*found, result.error());
    }
    asked_.erase(found);
  }
  // Earlier requests without a result were cancelled.
  template <class Place>
  void check_order(Place found) {
    for (auto earlier = asked_.begin(); earlier != found; ++earlier)
      sim::always(earlier->is_cancelled, "responses come in order");
  }
  void check_error(const Asked& asked, std::error_code error) {
    sim::always(asked.number != kWell, "a request succeeds when all is well");
    sim::sometimes(error == Error::deadline, "a request is late");
    sim::sometimes(error == std::errc::connection_reset, "a request is lost");
    sim::always(error == Error::deadline || error == std::errc::connection_reset,
                "an error is one of two");
  }

  static constexpr std::uint64_t kWell = 1'000'000'000;
  World& world_;
  Loop& loop_;
  const Address server_;
  std::uint64_t last_ = 0;
  bool is_inside_ = false;
  bool is_over_ = false;
  std::deque<Asked> asked_;
  Timer act_;
  RequestPipe<PushedLines> pipe_;
};

void play_pipe(World& world, PipeMistake mistake) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot(serve_lines(world, mistake));
  draw_weather(world, server, client, kPipeTrouble);
  world.at(kPipeTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto asker = client.run([&](Loop& loop) {
      return std::make_unique<PipeCaller>(world, loop, server.address(kPipePort));
    });
    const Outcome end = world.run_until([&] { return asker->is_done(); }, 10min);
    sim::always(end == Outcome::done, "the last request has its result");
  }
  world.run_for(30min);
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(RequestOfAPipeHasOneResult, 1200,
            [](World& world) { play_pipe(world, PipeMistake::none); })

TEST(SimSwarmDefects, ServerThatSkipsResponseIsDetected) {
  expect_found(50, "it is its own response",
               [](World& world) { play_pipe(world, PipeMistake::skips_a_response); });
}

}  // namespace
}  // namespace spate::testing
