// One direction between two hosts: when what is sent over it arrives, and whether.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kernel.h"
#include "spate/sim/world.h"

namespace spate::sim {

// How TCP sends again what was lost: after `first`, and then after twice as long each time.
struct Retries {
  Nanos first;
  int most;

  // After the first attempt, the one with this number; the longest pause is two minutes.
  Nanos until(int number) const;
};
inline constexpr Retries kHandshakeRetries{std::chrono::seconds{1}, 6};
inline constexpr Retries kDataRetries{std::chrono::milliseconds{200}, 15};

class Link {
 public:
  Link(Kernel& kernel, std::uint64_t number) : kernel_(kernel), number_(number) {}

  LinkOptions options;
  bool is_cut = false;

  // For how long a segment of `size` bytes is under way, attempts that were lost included. None:
  // TCP has given up.
  std::optional<Nanos> carry(std::size_t size, const Retries& retries);
  // When the copies of a packet arrive: none, one or two.
  std::vector<Nanos> carry_packet(std::size_t size);
  // Without loss.
  Nanos delay(std::size_t size);

 private:
  static constexpr Nanos kLongestQueue = std::chrono::milliseconds{200};

  std::uint64_t draw(Purpose purpose) { return kernel_.draw(purpose, mix(number_) ^ ++drawn_); }
  bool happens(Purpose purpose, double probability);
  // Up to `most`.
  Nanos draw_span(Purpose purpose, Nanos most);
  // How long it waits for those before it, and to be sent itself.
  Nanos queue(std::size_t size);

  Kernel& kernel_;
  const std::uint64_t number_;
  std::uint64_t drawn_ = 0;
  Nanos is_free_at_{0};
  Nanos last_packet_{0};
};

}  // namespace spate::sim
