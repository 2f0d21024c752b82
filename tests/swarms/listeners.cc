// A listener that pauses, resumes, is handed over, closes and runs out of descriptors, and clients
// that come and go, in Worlds with all kinds of faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "spate/net/bytes.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/stream.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kDoorPort = 7002;
constexpr Nanos kDoorTrouble = 1min;
constexpr std::size_t kVisitors = 6;

// A deliberate bug, which the test must find.
enum class DoorMistake : std::uint8_t { none, answers_the_first_twice, forgets_to_resume };

struct DoorPlan {
  ListenOptions options;
  DoorMistake mistake = DoorMistake::none;
  std::set<std::string> served;  // The clients served by any process of the host.
};

ListenOptions drawn_listen(World& world) {
  ListenOptions options;
  options.backlog = 1 + static_cast<int>(world.draw(world.draw(2) == 0 ? 4 : 100));
  options.accepts_per_turn = static_cast<int>(world.draw(4));
  if (world.draw(2) == 0) options.max_connections = 1 + world.draw(kVisitors);
  return options;
}

class Door;

// An accepted connection: answers one line.
class Guest final : public StreamHandler {
 public:
  Guest(Door& door, int listener) : door_(door), listener_(listener) {}
  void start(Stream stream) {
    stream_ = std::move(stream);
    stream_.start(*this);
    stream_.set_idle_timeout(20s);
  }
  std::size_t on_data(Bytes bytes) override;
  void on_closed(std::error_code) override { is_over_ = true; }
  bool is_over() const { return is_over_; }
  int listener() const { return listener_; }

 private:
  Door& door_;
  const int listener_;
  bool is_over_ = false;
  Stream stream_;
};

class Door {
 public:
  Door(World& world, Host& host, Loop& loop, DoorPlan& plan)
      : world_(world), host_(host), loop_(loop), plan_(plan), next_(loop, [this] { act(); }) {
    listen();
    next_.start(drawn_span(world_, 5s));
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  DoorPlan& plan() { return plan_; }

 private:
  auto welcome() {
    return [this](Stream stream, const Address& peer) { accept(std::move(stream), peer); };
  }
  std::size_t inside() {
    std::erase_if(guests_, [](const auto& guest) { return guest->is_over(); });
    return static_cast<std::size_t>(std::ranges::count_if(
        guests_, [this](const auto& guest) { return guest->listener() == listeners_; }));
  }
  void take(Result<Listener> listener) {
    sim::sometimes(!listener && listener.error() == std::errc::too_many_files_open,
                   "there was no descriptor to listen with");
    if (!listener) return;
    listener_ = std::move(*listener);
    ++listeners_;
    accepted_ = 0;
    is_paused_ = is_closing_ = false;
  }
  void listen() {
    take(Listener::create(loop_, Address::any_ipv6(kDoorPort), welcome(), plan_.options));
  }
  void accept(Stream stream, const Address& peer) {
    sim::always(!is_paused_ || is_closing_, "nobody is accepted while it is paused");
    sim::always(peer.port() != 0, "who is accepted has an address");
    sim::always(listener_.accepted() == ++accepted_, "the accepted are counted");
    const std::size_t before = inside();
    sim::always(before < plan_.options.max_connections, "there are not more than may be");
    sim::sometimes(before + 1 == plan_.options.max_connections, "there are as many as may be");
    sim::always(listener_.connections() == before + 1, "the open ones are counted");
    guests_.push_back(std::make_unique<Guest>(*this, listeners_));
    guests_.back()->start(std::move(stream));
    if (world_.draw(16) == 0) pause();
  }
  void pause() {
    listener_.pause();
    is_paused_ = true;
  }
  void resume() {
    if (plan_.mistake == DoorMistake::forgets_to_resume) return;
    listener_.resume();
    is_paused_ = false;
  }
  void close() {
    is_closing_ = true;
    listener_.close();
  }
  std::size_t waiting() const {
    std::size_t sum = 0;
    for (const sim::ConnectionInfo& info : world_.connections())
      if (info.state == sim::ConnectionState::listening) sum += info.unread;
    return sum;
  }
  void hand_over() {
    sim::sometimes(waiting() != 0, "a listener is handed over while somebody waits");
    const Result<int> given = listener_.release();
    if (!given) return sim::always(is_closing_ || listeners_ == 0, "a listener is given away");
    sim::always(!listener_.is_open(), "what is given away is not open");
    auto listener = Listener::adopt(loop_, *given, welcome(), plan_.options);
    sim::always(listener.has_value(), "what was given away is taken");
    if (!listener) return close_descriptors(std::span(&*given, 1));
    take(std::move(listener));
  }
  void act() {
    sim::sometimes(listener_.last_error() == std::errc::too_many_files_open,
                   "accepting rests for want of descriptors");
    const bool is_well = world_.now() > kDoorTrouble;
    if (is_well) host_.limit_descriptors(1000);
    if (!listener_.is_open()) {
      listen();
    } else if (is_well) {
      resume();
    } else {
      do_something();
    }
    next_.start(drawn_span(world_, 4s));
  }
  void do_something() {
    switch (world_.draw(7)) {
      case 0:
        return pause();
      case 1:
        return close();
      case 2:
        return hand_over();
      case 3:
        return host_.limit_descriptors(host_.open_descriptors() - 2 + world_.draw(6));
      case 4:
        return host_.limit_descriptors(1000);
      default:
        return resume();
    }
  }

  World& world_;
  Host& host_;
  Loop& loop_;
  DoorPlan& plan_;
  std::list<std::unique_ptr<Guest>> guests_;
  int listeners_ = 0;  // The number of listeners made.
  std::uint64_t accepted_ = 0;
  bool is_paused_ = false;
  bool is_closing_ = false;
  Timer next_;
  Listener listener_;
};

std::size_t Guest::on_data(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (!text.ends_with('\n')) return 0;
  const bool is_new = door_.plan().served.emplace(text).second;
  sim::always(is_new, "nobody is served twice");
  const bool is_first = door_.plan().served.size() == 1;
  stream_.write(bytes);
  if (is_first && door_.plan().mistake == DoorMistake::answers_the_first_twice)
    stream_.write(bytes);
  return bytes.size();
}

// Connects, sends its name, reads the answer, stays for a while and closes; repeats this until the
// faults are over, and then once more.
class Caller final : public StreamHandler {
 public:
  Caller(World& world, Loop& loop, const Address& door, std::size_t number)
      : world_(world), loop_(loop), door_(door), number_(number), next_(loop, [this] { go_on(); }) {
    next_.start(drawn_span(world, 5s));
  }
  bool is_done() const { return is_done_; }

  std::size_t on_data(Bytes bytes) override {
    answer_ += text_of(bytes);
    sim::always(text_.starts_with(answer_), "an answer is that to the own line");
    if (answer_ != text_) return bytes.size();
    sim::sometimes(world_.now() - began_ > 2s, "somebody had to wait");
    next_.start(drawn_span(world_, 3s));
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    sim::sometimes(error == Error::connect_timeout, "somebody was not let in");
    sim::sometimes(error == std::errc::connection_refused, "somebody was refused");
    sim::sometimes(error == std::errc::connection_reset, "somebody was thrown out");
    is_done_ = !answer_.empty() && answer_ == text_ && began_ > kDoorTrouble;
    stream_ = Stream();
    if (!is_done_) next_.start(drawn_span(world_, 5s));
  }

 private:
  void go_on() {
    if (stream_.is_open()) return stream_.close();
    text_ = std::to_string(number_) + ' ' + std::to_string(++tries_) + '\n';
    answer_.clear();
    began_ = world_.now();
    if (stream_.connect(loop_, door_, *this, {.timeout = 5s})) return next_.start(1s), void();
    stream_.set_idle_timeout(20s);
    stream_.write(text_);
  }

  World& world_;
  Loop& loop_;
  const Address door_;
  const std::size_t number_;
  std::string text_;
  std::string answer_;
  Nanos began_{0};
  int tries_ = 0;
  bool is_done_ = false;
  Timer next_;
  Stream stream_;
};

void play_door(World& world, DoorMistake mistake) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  DoorPlan plan{.options = drawn_listen(world), .mistake = mistake, .served = {}};
  server.boot([&](Loop& loop) { return std::make_unique<Door>(world, server, loop, plan); });
  draw_weather(world, server, client, kDoorTrouble);
  {
    std::list<std::unique_ptr<Caller>> callers;
    client.run([&](Loop& loop) {
      for (std::size_t i = 0; i < kVisitors; ++i)
        callers.push_back(std::make_unique<Caller>(world, loop, server.address(kDoorPort), i));
    });
    const auto are_done = [&] {
      return std::ranges::all_of(callers, [](const auto& caller) { return caller->is_done(); });
    };
    sim::always(world.run_until(are_done, 30min) == Outcome::done, "everybody is served");
  }
  world.run_for(30min);
  sim::always(server.is_up() && server.open_descriptors() <= 4, "nothing is left open");
}

SPATE_SWARM(AListenerServesWhoeverComes, 1200,
            [](World& world) { play_door(world, DoorMistake::none); })

TEST(SimSwarmDefects, SurplusResponseIsDetected) {
  expect_found(20, "an answer is that to the own line",
               [](World& world) { play_door(world, DoorMistake::answers_the_first_twice); });
}

TEST(SimSwarmDefects, ListenerThatIsNotResumedIsDetected) {
  expect_found(20, "everybody is served",
               [](World& world) { play_door(world, DoorMistake::forgets_to_resume); });
}

}  // namespace
}  // namespace spate::testing
