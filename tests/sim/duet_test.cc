// A random program with two ends, on the system's sockets and in Worlds: the promises of Streams
// hold on both, whatever the links do.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "spate/net/listener.h"
#include "spate/net/stream.h"
#include "spate/sim/world.h"
#include "spate/timer.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Performs random operations, one in a millisecond or so, and finally ends, closes or resets.
class DuetEnd final : public StreamHandler {
 public:
  enum class Ending : std::uint8_t { end, close, abort };

  DuetEnd(Loop& loop, std::uint64_t seed, char first)
      : timer_(loop, [this] { act(); }), random_(seed), first_(first), left_(random_.below(30)) {
    ending_ = static_cast<Ending>(random_.below(8) == 0 ? 2 : random_.below(2));
  }

  void start() { timer_.start(0ms); }
  Stream& stream() { return stream_; }
  bool is_over() const { return is_over_; }
  bool aborts() const { return ending_ == Ending::abort; }
  bool closes() const { return ending_ == Ending::close; }
  std::error_code error() const { return error_; }
  std::size_t sent() const { return sent_; }
  std::size_t received() const { return received_; }
  bool is_intact() const { return is_intact_; }

  std::size_t on_data(Bytes bytes) override {
    const std::size_t used = 1 + random_.below(bytes.size());
    for (const std::byte byte : bytes.first(used)) {
      const char expected = letter(first_ == 'a' ? 'A' : 'a', received_++);
      is_intact_ = is_intact_ && static_cast<char>(byte) == expected;
    }
    return used;
  }
  void on_end() override { received_ += stream_.unread().size(); }
  void on_closed(std::error_code error) override {
    EXPECT_FALSE(is_over_);
    error_ = error;
    finish();
  }

 private:
  static char letter(char first, std::size_t index) {
    return static_cast<char>(first + static_cast<char>(index % 23));
  }

  void act() {
    if (is_over_) return;
    if (left_ == 0) return take_leave();
    --left_;
    switch (random_.below(4)) {
      case 0:
        stream_.pause();
        break;
      case 1:
        stream_.resume();
        break;
      default:
        write(random_.below(3) == 0 ? random_.below(300'000) : random_.below(2'000));
    }
    timer_.start(Nanos{static_cast<std::int64_t>(random_.below(2'000'000))});
  }
  void write(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += letter(first_, sent_ + i);
    if (stream_.write(text)) sent_ += size;
  }
  void take_leave() {
    stream_.resume();
    if (ending_ == Ending::end) return stream_.end();
    if (ending_ == Ending::close) return stream_.close();
    stream_.abort();
    finish();
  }
  void finish() {
    is_over_ = true;
    timer_.stop();
  }

  Timer timer_;
  Random random_;
  const char first_;
  std::size_t left_;
  Ending ending_;
  bool is_over_ = false;
  bool is_intact_ = true;
  std::error_code error_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  Stream stream_;
};

struct Duet {
  Duet(Loop& here, Loop& there, std::uint64_t seed)
      : server(here, seed * 2, 'a'), client(there, seed * 2 + 1, 'A') {}

  void listen(Loop& loop, const Address& address) {
    listener = must(Listener::create(loop, address, [this](Stream stream, const Address&) {
      server.stream() = std::move(stream);
      server.stream().start(server);
      server.start();
    }));
  }
  void connect(Loop& loop, const Address& address) {
    client.stream().connect(loop, address, client);
    client.start();
  }
  // A client that closes while it connects may never be accepted.
  bool is_over() { return client.is_over() && (server.is_over() || !server.stream().is_open()); }
  // Checks the bytes that one end received from the other, and how it ended.
  void check(const DuetEnd& one, const DuetEnd& other) const {
    EXPECT_TRUE(one.is_intact());
    EXPECT_LE(one.received(), other.sent());
    if (one.aborts() || other.aborts() || leaves_unsaid(one) || leaves_unsaid(other)) return;
    EXPECT_FALSE(one.error()) << one.error().message();
    if (!one.closes()) EXPECT_EQ(one.received(), other.sent());
  }
  // An end that closes without having written has nothing to lose by a reset, so close() does not
  // linger. It does not wait for a pending connect() either.
  static bool leaves_unsaid(const DuetEnd& end) { return end.closes() && end.sent() == 0; }
  void check() const {
    check(server, client);
    check(client, server);
  }

  DuetEnd server;
  DuetEnd client;
  Listener listener;
};

void play_on_the_system(std::uint64_t seed) {
  auto loop = must(Loop::create());
  Duet duet(*loop, *loop, seed);
  duet.listen(*loop, Address::loopback_ipv4(0));
  duet.connect(*loop, duet.listener.address());
  while (!duet.is_over()) loop->run(Run::once);
  duet.check();
}

std::uint64_t play_in_a_world(std::uint64_t seed) {
  sim::World world(seed);
  sim::Host& here = world.add_host("here");
  sim::Host& there = world.add_host("there");
  Random random(seed);
  world.link(here, there,
             {.latency = Nanos{static_cast<std::int64_t>(random.below(5'000'000))},
              .jitter = Nanos{static_cast<std::int64_t>(random.below(5'000'000))}});
  // Shorter than the linger time of a closing Stream.
  for (Nanos time{0}; random.below(2) == 0;) {
    time += Nanos{static_cast<std::int64_t>(random.below(20'000'000))};
    world.at(time, [&] { world.cut(here, there); });
    time += Nanos{static_cast<std::int64_t>(random.below(1'000'000'000))};
    world.at(time, [&] { world.heal(here, there); });
  }
  {
    Duet duet(here.loop(), there.loop(), seed);
    here.run([&](Loop& loop) { duet.listen(loop, Address::any_ipv4(7)); });
    there.run([&](Loop& loop) { duet.connect(loop, here.address(7)); });
    EXPECT_EQ(world.run_until([&] { return duet.is_over(); }, 24h * 365), sim::Outcome::done);
    duet.check();
  }
  world.run_for(1h);
  return world.trace();
}

TEST(RandomStreamPair, EndsAsPromisedOnSystem) {
  for (const std::uint64_t seed : seeds(10)) {
    SCOPED_TRACE(seed);
    play_on_the_system(seed);
  }
}

TEST(RandomStreamPair, EndsAsPromisedAndIsReproducibleInWorld) {
  for (const std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE(seed);
    EXPECT_EQ(play_in_a_world(seed), play_in_a_world(seed));
  }
}

}  // namespace
}  // namespace spate::testing
