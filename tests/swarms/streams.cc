// Typical programs, each in hundreds of Worlds with all kinds of faults: the library's promises to
// them hold in all. SPATE_SEEDS sets the number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sim/echo.h"
#include "spate/error.h"
#include "spate/net/bytes.h"
#include "spate/net/datagram.h"
#include "spate/net/server.h"
#include "spate/net/stream.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kSwarmPort = 7000;

constexpr Nanos kTrouble = 2min;

// ---- an echo, and a client that sends its text again and again until the faults are over, and
// then until it has received all of it

struct SwarmEcho : Echo {
  void on_open() override { stream().set_idle_timeout(1min); }
};

class Insister final : public StreamHandler {
 public:
  Insister(World& world, Loop& loop, const Address& server)
      : world_(world), loop_(loop), server_(server), again_(loop, [this] { begin(); }) {
    for (std::size_t size = 1 + world.draw(world.draw(4) == 0 ? 50'000 : 2'000);
         text_.size() < size;)
      text_ += static_cast<char>('a' + text_.size() * 7 % 23);
    begin();
  }
  bool is_done() const { return is_done_; }

  std::size_t on_data(Bytes bytes) override {
    const std::string_view part = text_of(bytes);
    sim::always(text_.compare(echoed_, part.size(), part) == 0, "bytes come in order, and whole");
    echoed_ += part.size();
    if (echoed_ == text_.size()) stream_.close();
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    const bool has_all = echoed_ == text_.size();
    sim::always(has_all || error, "an end before all has come is an error");
    sim::sometimes(!has_all && echoed_ != 0, "a connection broke in the middle");
    sim::sometimes(error == Error::idle_timeout, "a peer fell silent");
    sim::sometimes(error == Error::connect_timeout, "connecting took too long");
    sim::sometimes(error == std::errc::connection_reset, "a connection was reset");
    sim::sometimes(tries_ > 1 && has_all, "another attempt succeeded");
    if (has_all && world_.now() > kTrouble) {
      is_done_ = true;
    } else {
      again_.start(1s + drawn_span(world_, 10s));
    }
  }

 private:
  void begin() {
    ++tries_;
    echoed_ = 0;
    stream_ = Stream();
    if (stream_.connect(loop_, server_, *this, {.timeout = 10s})) return again_.start(1s), void();
    stream_.set_idle_timeout(20s);
    stream_.write(text_);
  }

  World& world_;
  Loop& loop_;
  const Address server_;
  Timer again_;
  std::string text_;
  std::size_t echoed_ = 0;
  int tries_ = 0;
  bool is_done_ = false;
  Stream stream_;
};

void play_echo(World& world) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot(
      [](Loop& loop) { return must(serve<SwarmEcho>(loop, Address::any_ipv6(kSwarmPort))); });
  draw_weather(world, server, client, kTrouble);
  {
    std::unique_ptr<Insister> insister = client.run([&](Loop& loop) {
      return std::make_unique<Insister>(world, loop, server.address(kSwarmPort));
    });
    const Outcome end = world.run_until([&] { return insister->is_done(); }, 1h);
    sim::always(end == Outcome::done, "the client gets all");
  }
  world.run_for(1h);
  sim::always(server.is_up() && server.open_descriptors() <= 4, "nothing is left open");
}

SPATE_SWARM(AnEchoOfWhatWasSentOrAnError, 1000, play_echo)

// ---- datagrams: received packets were sent before, and are unchanged

void play_packets(World& world) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  draw_weather(world, client, server, kTrouble);
  std::vector<int> copies(200);
  int newest = -1;
  Datagram into = server.run(
      [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(kSwarmPort))); });
  const std::error_code none = into.start({.on_packets = [&](std::span<const Packet> packets) {
    for (const Packet& packet : packets) {
      const auto number =
          static_cast<std::size_t>(std::atoi(std::string(text_of(packet.bytes)).c_str()));
      sim::always(number < copies.size(), "what comes was sent");
      sim::always(++copies[number] <= 2, "no packet comes more than twice");
      sim::sometimes(copies[number] == 2, "a packet came twice");
      sim::sometimes(static_cast<int>(number) < newest, "a packet was overtaken");
      newest = std::max(newest, static_cast<int>(number));
    }
  }});
  sim::always(!none, "receiving begins");
  const auto open = [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(0))); };
  Datagram from = client.run(open);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const std::string text = std::to_string(i);
    const std::error_code error = from.send(bytes_of(text), server.address(kSwarmPort));
    sim::sometimes(!!error, "a host had lost its socket");
    if (error && client.is_up()) {
      from = client.run(open);
      const std::error_code still = from.send(bytes_of(text), server.address(kSwarmPort));
      sim::always(!still, "with a new socket there is no error");
    }
    if (i % 4 == 0) world.run_for(4s);
  }
  world.run_for(1min);
  sim::sometimes(std::ranges::count(copies, 0) > 20, "many packets were lost");
  sim::sometimes(std::ranges::count(copies, 0) == 0, "all packets came");
}

SPATE_SWARM(APacketComesAsItWasSent, 1000, play_packets)

}  // namespace
}  // namespace spate::testing
