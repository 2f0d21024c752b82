// PairWorld: a random program of PairSides: many calls, WebSockets and tunnels at once, each of
// which performs the operations allowed to its user, in and out of callbacks. In the end nothing is
// paused, and everything must end without a deadline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/harness.h"
#include "http/pair/asking.h"
#include "http/pair/pair_sides.h"
#include "http/pair/talking.h"
#include "http/pair/tunneling.h"
#include "http/random_handlings.h"
#include "support/random.h"

namespace spate::testing {

class PairWorld {
  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));

 public:
  explicit PairWorld(std::uint64_t seed) : random(seed) {}
  ~PairWorld();

  void run(int steps);

  // ---- used by its ends

  // Called within any callback of an end.
  template <class End>
  void on_call(End& end) {
    if (is_settling_) return;
    if (random.one_in(2)) return end.act();
    if (random.one_in(2)) act_anywhere();
  }
  void act_anywhere();
  // Destroys it.
  void let_go(Asking& asking);
  void let_go(Talking& talking);
  void let_go(Tunneling& tunneling);

  http::Client& client() { return sides_.client(); }
  // A reset of a unix socket's peer is seen as an end.
  bool knows_resets() const { return !sides_.has_sockets(); }
  // The bytes sent by one end of a tunnel, and by the other.
  std::string& bytes_of(const Tunneling& tunneling);
  std::string& bytes_to(const Tunneling& tunneling);
  // As above, for messages of a WebSocket; nullptr: there is no other end.
  std::vector<std::string>& messages_of(const Talking& talking);
  const std::vector<std::string>* messages_to(const Talking& talking) const;

  Random random;
  Handlings handlings{random, *loop_, [this] { act_on_all(); }};

 private:
  // The number of an end, and whether it is the client's.
  using End = std::pair<std::size_t, bool>;

  void on_request(http::Exchange exchange);
  void serve_socket(http::Exchange exchange, std::size_t number);
  void serve_tunnel(http::Exchange exchange, std::size_t number);

  void ask();
  void connect();
  void ask_for_tunnel();
  void act_on_all();

  void step();
  void settle();
  void finish_all();
  void pass_minutes();

  PairSides sides_{random, *loop_,
                   [this](http::Exchange exchange) { on_request(std::move(exchange)); }};
  std::vector<std::unique_ptr<Asking>> askings_;
  std::vector<std::unique_ptr<Talking>> talkings_;
  std::vector<std::unique_ptr<Tunneling>> tunnelings_;
  std::map<End, std::vector<std::string>> messages_;
  std::map<End, std::string> bytes_;
  std::size_t last_socket_ = 0;
  std::size_t last_tunnel_ = 0;
  bool is_settling_ = false;
};

}  // namespace spate::testing
