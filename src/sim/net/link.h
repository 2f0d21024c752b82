// One direction between two hosts: decides whether and when packets arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/kernel/kernel.h"
#include "spate/sim/link.h"

namespace spate::sim {

// TCP's retransmission schedule: after `first`, then doubling.
struct Retries {
  Nanos first;
  int most;

  // Returns the time from the first transmission to the one with this number. Pauses are at most
  // two minutes.
  Nanos until(int number) const;
};
inline constexpr Retries kHandshakeRetries{std::chrono::seconds{1}, 6};
inline constexpr Retries kDataRetries{std::chrono::milliseconds{200}, 15};

// A packet: its size with all headers, and a rule that decides about each transmission, if there is
// one.
struct Load {
  std::string_view what;
  std::size_t size;
  const std::function<Delivery(int attempt)>* rule = nullptr;
};

// For a segment: when the successful transmission begins, and how long it takes.
struct Passage {
  Nanos begins_after;
  Nanos takes;
};

class Link {
 public:
  Link(Kernel& kernel, int from, int to)
      : kernel_(kernel),
        from_(from),
        to_(to),
        number_(static_cast<std::uint64_t>(from) << 32 | static_cast<unsigned>(to)) {}

  LinkOptions options;
  bool is_cut = false;
  InFlight in_flight = InFlight::arrives;
  // Returns whether packets in flight are held or lost while the link is cut.
  bool stops_arrivals() const { return is_cut && in_flight != InFlight::arrives; }

  // Returns nullopt if TCP gives up.
  std::optional<Passage> carry(const Load& load, const Retries& retries);
  // Returns when the copies of a packet arrive: none, one or two.
  std::vector<Nanos> carry_packet(const Load& load);
  // Returns the delay without loss.
  Nanos delay(std::size_t size);

 private:
  static constexpr Nanos kLongestQueue = std::chrono::milliseconds{200};

  std::uint64_t draw(Purpose purpose) { return kernel_.draw(purpose, mix(number_) ^ ++drawn_); }
  bool happens(Purpose purpose, double probability, EventKind kind, const Load& load);
  bool is_lost(const Load& load, int attempt, Nanos& late);
  // Draws a time up to `most`.
  Nanos draw_span(Purpose purpose, Nanos most);
  // Returns the queueing and transmission delay.
  Nanos queue(std::size_t size);

  Kernel& kernel_;
  const int from_;
  const int to_;
  const std::uint64_t number_;
  std::uint64_t drawn_ = 0;
  Nanos is_free_at_{0};
  Nanos last_packet_{0};
};

}  // namespace spate::sim
