// A server, some clients that may time out, and packets, with faults that the World draws: small
// enough for thousands of seeds a second, and for a fuzzer (fuzz/world.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/net/datagram.h"
#include "spate/net/server.h"
#include "spate/net/stream.h"
#include "spate/timer.h"
#include "swarms/weather.h"

namespace spate::testing {

class SmallWorld {
 public:
  static constexpr std::uint16_t kPort = 7000;
  static constexpr Nanos kTrouble = 20s;

  static void play(sim::World& world);

 private:
  struct Service;
  class Caller;
  class Packets;
};

struct SmallWorld::Service : Echo {
  void on_open() override { stream().set_idle_timeout(1min); }
};

// Sends a text, expects its echo, and may time out.
class SmallWorld::Caller final : public StreamHandler {
 public:
  Caller(sim::World& world, Loop& loop, const Address& server, std::size_t size)
      : way_(world.draw(5)), ends_(loop, [this] { end(); }) {
    while (text_.size() < size) text_ += static_cast<char>('a' + text_.size() * 7 % 23);
    is_over_ = static_cast<bool>(stream_.connect(loop, server, *this, {.timeout = 10s}));
    if (is_over_) return;
    stream_.set_idle_timeout(20s);
    stream_.write(text_);
  }
  void lose_patience(Nanos when) { ends_.start(when); }
  bool is_over() const { return is_over_; }
  bool has_all() const { return echoed_ == text_.size(); }

  std::size_t on_data(Bytes bytes) override {
    sim::always(!is_over_, "nothing comes after the end");
    const std::string_view part = text_of(bytes);
    sim::always(text_.compare(echoed_, part.size(), part) == 0, "bytes come in order, and whole");
    echoed_ += part.size();
    if (has_all()) stream_.close();
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    sim::always(!is_over_, "there is one end");
    sim::always(error || has_all() || gives_up_, "an end before all has come is an error");
    is_over_ = true;
  }

 private:
  void end() {
    if (is_over_) return;
    gives_up_ = true;
    if (way_ == 0) return stream_.close();
    if (way_ == 1) return stream_.end();
    if (way_ == 2) return stream_.pause();
    if (way_ == 3) return stream_.abort(), void(is_over_ = true);
    stream_ = Stream();
    is_over_ = true;
  }

  std::string text_;
  std::size_t echoed_ = 0;
  bool is_over_ = false;
  const std::uint64_t way_;  // How it ends.
  bool gives_up_ = false;
  Stream stream_;
  Timer ends_;
};

// Numbered packets, from one host to another.
class SmallWorld::Packets {
 public:
  Packets(sim::Host& from, sim::Host& to)
      : to_(to.address(kPort)),
        into_(to.run(
            [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(kPort))); })),
        from_(from.run(
            [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(0))); })) {
    must(into_.start({.on_packets = [this](std::span<const Packet> packets) {
      for (const Packet& packet : packets) take(packet.bytes);
    }}));
  }
  void send(std::size_t size) {
    std::string text(1 + size, static_cast<char>(sent_++));
    (void)from_.send(bytes_of(text), to_);
  }

 private:
  void take(Bytes bytes) {
    const auto number = std::to_integer<std::size_t>(bytes[0]);
    sim::always(number < sent_, "what comes was sent");
    sim::always(++copies_[number] <= 2, "no packet comes more than twice");
    sim::always(std::ranges::count(bytes, bytes[0]) == std::ssize(bytes), "it is whole");
  }

  const Address to_;
  Datagram into_;
  Datagram from_;
  std::size_t sent_ = 0;
  std::array<int, 256> copies_{};
};

inline void SmallWorld::play(sim::World& world) {
  sim::Host& server = world.add_host("server");
  sim::Host& client = world.add_host("client");
  server.boot([](Loop& loop) { return must(serve<Service>(loop, Address::any_ipv6(kPort))); });
  draw_weather(world, server, client, kTrouble);
  const auto call = [&](std::size_t size) {
    return client.run([&](Loop& loop) {
      return std::make_unique<Caller>(world, loop, server.address(kPort), size);
    });
  };
  {
    Packets packets(client, server);
    std::vector<std::unique_ptr<Caller>> callers;
    for (std::uint64_t left = 1 + world.draw(4); left != 0; --left) {
      callers.push_back(call(1 + world.draw(world.draw(4) == 0 ? 10'000 : 500)));
      if (world.draw(2) == 0)
        client.run([&](Loop&) { callers.back()->lose_patience(drawn_span(world, 5s)); });
      client.run([&](Loop&) { packets.send(world.draw(2000)); });
      world.run_for(drawn_span(world, 10s));
    }
    world.run_for(kTrouble + 2min);
    for (const auto& caller : callers) sim::always(caller->is_over(), "each call ends");
  }
  const std::unique_ptr<Caller> last = call(100);
  world.run_until([&] { return last->is_over(); }, 1h);
  sim::always(last->has_all(), "when the trouble is over, all is well");
  world.run_for(1h);
  sim::always(server.open_descriptors() <= 4, "nothing is left open");
}

}  // namespace spate::testing
