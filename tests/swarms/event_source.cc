// An EventSource in Worlds with all kinds of faults: it receives each event once and in order,
// across all connections.
#include "spate/http/event_source.h"

#include <gtest/gtest.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "spate/net/bytes.h"
#include "spate/net/framing.h"
#include "spate/net/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kEventsPort = 7006;
constexpr Nanos kEventsTrouble = 1min;

std::string text_of_event(std::uint64_t id) { return "event " + std::to_string(id * 7); }

enum class EventMistake : std::uint8_t { none, ignores_the_last_id };

// Sends the events that follow Last-Event-ID, slowly, and ends the stream at random.
struct EventTalker : Session {
  EventTalker(World& all, EventMistake made) : world(all), mistake(made) {}
  void on_open() override {
    stream().set_idle_timeout(90s);
    next.emplace(stream().loop(), [this] { send_some(); });
  }
  std::size_t on_data(Bytes bytes) override {
    return split(bytes, Delimiter{"\r\n\r\n"}, [this](Bytes head) { respond(text_of(head)); }).used;
  }
  void respond(std::string_view head) {
    constexpr std::string_view kName = "Last-Event-ID: ";
    if (const std::size_t at = head.find(kName); at != std::string_view::npos)
      std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), id);
    if (mistake == EventMistake::ignores_the_last_id) id = 0;
    if (world.draw(6) == 0) {
      stream().write("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return stream().close();
    }
    stream().write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: " +
                   std::to_string(world.draw(2000)) + "\n\n");
    next->start(0s);
  }
  void send_some() {
    for (std::uint64_t left = world.draw(5); left > 0; --left) {
      ++id;
      stream().write("id: " + std::to_string(id) + "\ndata: " + text_of_event(id) + "\n\n");
    }
    if (world.draw(20) == 0) {
      stream().write("id: " + std::to_string(id + 1) + "\ndata: cut");
      return stream().close();
    }
    next->start(drawn_span(world, 2s));
  }

  World& world;
  const EventMistake mistake;
  std::uint64_t id = 0;
  std::optional<Timer> next;
};

class EventReader final : public http::EventSourceHandler {
 public:
  EventReader(World& world, Loop& loop, const Address& server)
      : world_(world), client_(must(http::Client::create(loop))), act_(loop, [this] { act(); }) {
    http::EventSourceOptions options{.retry = drawn_span(world, 3s),
                                     .max_delay = 1s + drawn_span(world, 5s),
                                     .response_timeout = 1s + drawn_span(world, 10s),
                                     .idle_timeout = 10s + drawn_span(world, 10s)};
    source_ = http::EventSource::connect(client_, "http://" + server.to_string() + "/", *this,
                                         std::move(options));
    act_.start(0s);
  }
  bool is_done() const {
    return world_.now() > kEventsTrouble + 10s && source_.is_open() && last_ > most_ + 20;
  }

 private:
  void on_open() override { sim::always(source_.is_open(), "it is open when it is opened"); }
  void on_event(const http::ReceivedEvent& event) override {
    ++last_;
    sim::always(event.last_id == std::to_string(last_), "each event comes once and in order");
    sim::always(event.data == text_of_event(last_), "an event is whole");
    if (world_.now() < kEventsTrouble) most_ = last_;
    if (world_.draw(30) == 0) source_.reconnect();
  }
  void on_lost(std::error_code) override {
    sim::always(!source_.is_open(), "it is not open when it was lost");
    sim::sometimes(source_.failures() > 2, "it fails again and again");
  }
  void on_closed(std::error_code) override { sim::always(false, "it never stops"); }
  void act() {
    if (is_paused_ || world_.now() > kEventsTrouble) {
      source_.resume();
      is_paused_ = false;
    } else if (world_.draw(3) == 0) {
      source_.pause();
      is_paused_ = true;
    }
    act_.start(drawn_span(world_, 5s));
  }

  World& world_;
  std::uint64_t last_ = 0;
  std::uint64_t most_ = 0;
  bool is_paused_ = false;
  http::Client client_;
  http::EventSource source_;
  Timer act_;
};

void play_events(World& world, EventMistake mistake) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot([&](Loop& loop) {
    auto made = serve<EventTalker>(loop, Address::any_ipv6(kEventsPort), std::ref(world), mistake);
    return made ? std::move(*made) : Server<EventTalker>();
  });
  draw_weather(world, server, client, kEventsTrouble);
  world.at(kEventsTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto reader = client.run([&](Loop& loop) {
      return std::make_unique<EventReader>(world, loop, server.address(kEventsPort));
    });
    const Outcome end = world.run_until([&] { return reader->is_done(); }, 20min);
    sim::always(end == Outcome::done, "events come in the end");
  }
  world.run_for(30min);
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(EventOfASourceComesOnce, 600,
            [](World& world) { play_events(world, EventMistake::none); })

TEST(SimSwarmDefects, EventServerThatIgnoresLastIdIsDetected) {
  expect_found(50, "each event comes once and in order",
               [](World& world) { play_events(world, EventMistake::ignores_the_last_id); });
}

}  // namespace
}  // namespace spate::testing
