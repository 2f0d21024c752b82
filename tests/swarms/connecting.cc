// connect() by name and Client reach the server in the end: names with all kinds of addresses, in
// Worlds with all kinds of faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spate/net/bytes.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kGreetPort = 7003;
constexpr std::string_view kGreeting = "server\n";
constexpr std::string_view kGreetName = "greeter.example";
constexpr Nanos kConnectTrouble = 1min;

struct Greeter : Session {
  void on_open() override {
    stream().set_idle_timeout(30s);
    stream().write(kGreeting);
  }
};

auto serve_greetings(Loop& loop) {
  auto server = serve<Greeter>(loop, Address::any_ipv6(kGreetPort));
  return server ? std::move(*server) : Server<Greeter>();
}

// Uses a connection: its server greets.
class Greeted final : public StreamHandler {
 public:
  void start(Stream stream) {
    stream_ = std::move(stream);
    stream_.start(*this);
    stream_.set_idle_timeout(40s);
  }
  std::size_t on_data(Bytes bytes) override {
    text_ += text_of(bytes);
    sim::always(kGreeting.starts_with(text_), "only the server greets");
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_over_ = true; }
  bool is_over() const { return is_over_; }
  bool has_all() const { return text_ == kGreeting; }

 private:
  std::string text_;
  bool is_over_ = false;
  Stream stream_;
};

// ---- a race of addresses

struct Street {
  World& world;
  Host& server;
  Host& nobody;  // Refuses.
  Host& hole;    // Is down.
};

enum class RaceMistake : std::uint8_t { none, forgets_that_it_has_cancelled };

// Draws from all addresses; if the server is up, both of its addresses are included.
std::vector<Address> drawn_addresses(const Street& street, bool is_well) {
  std::vector<Address> addresses;
  for (const Host* host : {&street.hole, &street.nobody, &street.server}) {
    const bool is_sure = is_well && host == &street.server;
    if (is_sure || street.world.draw(3) == 0) addresses.push_back(host->address(0));
    if (is_sure || street.world.draw(3) == 0) addresses.push_back(host->address_ipv6(0));
  }
  return addresses;
}

sim::NameAnswer drawn_street(const Street& street) {
  constexpr std::array kErrors = {NameError::no_such_host, NameError::server_failure,
                                  NameError::timeout};
  sim::NameAnswer answer{.addresses = drawn_addresses(street, false),
                         .delay = drawn_span(street.world, 1s),
                         .jitter = drawn_span(street.world, 1s)};
  if (street.world.draw(8) == 0) answer.error = kErrors[street.world.draw(kErrors.size())];
  return answer;
}

ConnectOptions drawn_connect(World& world) {
  return {.timeout = 500ms + drawn_span(world, world.draw(2) == 0 ? 20s : 2s),
          .attempt_delay = drawn_span(world, 1s),
          .resolution_delay = drawn_span(world, 200ms),
          .ipv6_first = world.draw(2) == 0};
}

// Makes attempts and cancels some of them, until one has succeeded after the faults are over.
class Seeker {
 public:
  Seeker(Street& street, Loop& loop, RaceMistake mistake)
      : street_(street),
        world_(street.world),
        loop_(loop),
        mistake_(mistake),
        next_(loop, [this] { begin(); }),
        cancel_(loop, [this] { cancel(); }) {
    next_.start(0s);
  }
  bool is_done() const { return is_done_; }

 private:
  bool is_well() const { return began_ > kConnectTrouble + 1s; }

  void begin() {
    options_ = drawn_connect(world_);
    began_ = world_.now();
    if (is_well()) options_.attempt_delay = 250ms;
    is_waiting_ = is_inside_ = true;
    connecting_ = connect(
        loop_, kGreetName, kGreetPort, [this](Result<Stream> stream) { hear(std::move(stream)); },
        options_);
    is_inside_ = false;
    if (!is_well() && world_.draw(3) == 0) cancel_.start(drawn_span(world_, 3s));
  }
  void cancel() {
    sim::sometimes(is_waiting_, "an attempt is given up");
    is_waiting_ = false;
    if (mistake_ == RaceMistake::none) connecting_.cancel();
    next_.start(drawn_span(world_, 2s));
  }
  void hear(Result<Stream> stream) {
    sim::always(!is_inside_, "nobody is told inside connect()");
    sim::always(is_waiting_, "an attempt tells once, and nothing when it was given up");
    is_waiting_ = false;
    cancel_.stop();
    check_time(stream ? std::error_code() : stream.error());
    if (stream) {
      keep(std::move(*stream));
    } else {
      check_error(stream.error());
    }
    if (!is_done_) next_.start(drawn_span(world_, 3s));
  }
  // By the host's own clock, which may be wrong by a tenth.
  void check_time(std::error_code error) {
    const auto taken = static_cast<double>((world_.now() - began_).count());
    const auto most = static_cast<double>(options_.timeout.count());
    sim::always(taken <= most * 1.12 + 1e7, "an attempt ends in time");
    sim::always(error != Error::connect_timeout || taken >= most * 0.88, "no attempt ends early");
  }
  void check_error(std::error_code error) {
    sim::always(!is_well(), "an attempt succeeds when all is well");
    sim::sometimes(error == Error::connect_timeout, "an attempt takes too long");
    sim::sometimes(error == std::errc::connection_refused, "an attempt is refused");
    sim::sometimes(error.category() == name_category(), "a name is not found");
  }
  void keep(Stream stream) {
    const Address peer = stream.peer_address();
    const bool is_v6 = peer == street_.server.address_ipv6(kGreetPort);
    const bool is_v4 = peer == street_.server.address(kGreetPort);
    sim::always(is_v4 || is_v6 || peer.port() == 0, "who answers is the server");
    sim::sometimes(is_v4 && options_.ipv6_first, "the other family wins");
    sim::always(!is_well() || options_.ipv6_first == is_v6, "the better family wins if it can");
    is_done_ = is_well();
    std::erase_if(greeted_, [](const auto& each) { return each->is_over(); });
    greeted_.push_back(std::make_unique<Greeted>());
    greeted_.back()->start(std::move(stream));
  }

  Street& street_;
  World& world_;
  Loop& loop_;
  const RaceMistake mistake_;
  ConnectOptions options_;
  Nanos began_{0};
  bool is_inside_ = false;
  bool is_waiting_ = false;
  bool is_done_ = false;
  Timer next_;
  Timer cancel_;
  Connecting connecting_;
  std::list<std::unique_ptr<Greeted>> greeted_;
};

void play_race(World& world, RaceMistake mistake) {
  Host& client = world.add_host("client");
  Street street{world, world.add_host("server"), world.add_host("nobody"), world.add_host("hole")};
  street.hole.crash();
  street.server.boot(serve_greetings);
  draw_weather(world, street.server, client, kConnectTrouble);
  world.link(street.nobody, client, drawn_link(world));
  for (Nanos time{0}; time < kConnectTrouble; time += 1s + drawn_span(world, 20s))
    world.at(time,
             [&world, answer = drawn_street(street)] { world.answer_name(kGreetName, answer); });
  world.at(kConnectTrouble, [&] {
    // Restarts a server that could not listen, as a service manager would.
    street.server.resume();
    if (street.server.is_up()) street.server.crash();
    street.server.restart();
    world.link(street.server, client, {});
    world.answer_name(kGreetName,
                      {.addresses = {street.server.address(0), street.server.address_ipv6(0)}});
  });
  {
    const auto seeker =
        client.run([&](Loop& loop) { return std::make_unique<Seeker>(street, loop, mistake); });
    const Outcome end = world.run_until([&] { return seeker->is_done(); }, 10min);
    sim::always(end == Outcome::done, "an attempt succeeds in the end");
  }
  world.run_for(30min);
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
  sim::always(street.server.open_descriptors() <= 4, "the server leaves nothing open");
}

SPATE_SWARM(ARaceEndsOnceAndInTime, 1200, [](World& world) { play_race(world, RaceMistake::none); })

TEST(SimSwarmDefects, AttemptThatIsNotCancelledIsDetected) {
  expect_found(20, "an attempt tells once, and nothing when it was given up",
               [](World& world) { play_race(world, RaceMistake::forgets_that_it_has_cancelled); });
}

// ---- a Client that stays connected

ClientOptions drawn_client(World& world) {
  ClientOptions options;
  options.connect = {.timeout = 500ms + drawn_span(world, 10s)};
  options.first_delay = drawn_span(world, 2s);
  options.max_delay = options.first_delay + drawn_span(world, 20s);
  options.jitter = static_cast<double>(world.draw(3)) / 2;
  options.steady_after = drawn_span(world, 10s);
  if (world.draw(3) == 0) options.max_failures = 1 + static_cast<std::uint32_t>(world.draw(6));
  return options;
}

// Owns a Client, stops it now and then, and checks its state.
class Keeper {
 public:
  Keeper(World& world, Loop& loop, const Address& server)
      : world_(world),
        loop_(loop),
        options_(drawn_client(world)),
        act_(loop, [this] { act(); }),
        client_(must(Client::create(
            loop, server, [this](Result<Stream> stream) { hear(std::move(stream)); }, options_))) {
    sim::always(client_.state() == Client::State::idle, "at first it is idle");
    want();
    act_.start(drawn_span(world_, 10s));
  }
  bool is_done() const {
    return world_.now() > kConnectTrouble + 1s && greeted_ && greeted_->has_all() &&
           client_.state() == Client::State::connected;
  }

 private:
  void want() {
    client_.connect();
    retry_at_ = Nanos{0};
    is_wanted_ = true;
  }
  void act() {
    sim::always(is_wanted_ || client_.state() == Client::State::idle ||
                    client_.state() == Client::State::connected,
                "who is not wanted does not try");
    switch (world_.now() > kConnectTrouble ? 3 : world_.draw(6)) {
      case 0:
        client_.disconnect();
        is_wanted_ = false;
        break;
      case 1:
        client_.stop();
        is_wanted_ = false;
        break;
      case 2:
      case 3:
        if (!is_wanted_ || client_.state() == Client::State::idle) want();
        break;
      case 4:
        sim::sometimes(client_.state() == Client::State::waiting, "it is told not to wait");
        want();
        break;
      default:
        break;
    }
    act_.start(drawn_span(world_, 10s));
  }
  void hear(Result<Stream> stream) {
    sim::always(is_wanted_, "it tells nothing when it was stopped");
    sim::always(loop_.now() >= retry_at_, "no attempt is early");
    sim::always(retry_at_ == Nanos{0} || loop_.now() <= retry_at_ + options_.connect.timeout + 10ms,
                "no attempt is late");
    if (stream) {
      sim::sometimes(client_.connections() > 3, "it has connected again and again");
      sim::always(!client_.last_error(), "a success has no error");
      retry_at_ = Nanos{0};
      greeted_ = std::make_unique<Greeted>();
      return greeted_->start(std::move(*stream));
    }
    sim::always(client_.last_error() == stream.error(), "why it failed is known");
    check_failure();
  }
  void check_failure() {
    const std::uint32_t failures = client_.failures();
    sim::always(failures != 0, "a failure is counted");
    if (failures == options_.max_failures) {
      sim::sometimes(true, "it gives up");
      sim::always(client_.state() == Client::State::idle, "who gives up is idle");
      is_wanted_ = false;
      return;
    }
    sim::always(client_.state() == Client::State::waiting, "after a failure it waits");
    const double most =
        std::min(std::ldexp(static_cast<double>(options_.first_delay.count()), int(failures) - 1),
                 static_cast<double>(options_.max_delay.count()));
    const auto wait = static_cast<double>(client_.retry_in().count());
    sim::always(wait <= most + 1 && wait >= most * (1 - options_.jitter) - 1,
                "it waits for as long as it should");
    sim::sometimes(failures > 3, "it fails again and again");
    retry_at_ = loop_.now() + client_.retry_in();
  }

  World& world_;
  Loop& loop_;
  const ClientOptions options_;
  bool is_wanted_ = false;
  Nanos retry_at_{0};  // Zero: unknown.
  std::unique_ptr<Greeted> greeted_;
  Timer act_;
  Client client_;
};

void play_client(World& world) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot(serve_greetings);
  draw_weather(world, server, client, kConnectTrouble);
  world.at(kConnectTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto keeper = client.run([&](Loop& loop) {
      return std::make_unique<Keeper>(world, loop, server.address(kGreetPort));
    });
    const Outcome end = world.run_until([&] { return keeper->is_done(); }, 10min);
    sim::always(end == Outcome::done, "it is connected in the end");
  }
  world.run_for(30min);
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(AClientStaysConnected, 1200, play_client)

}  // namespace
}  // namespace spate::testing
