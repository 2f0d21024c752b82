// One direction between two hosts: when what is sent over it arrives, and whether.
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

// How TCP sends again what was lost: after `first`, and then after twice as long each time.
struct Retries {
  Nanos first;
  int most;

  // After the first attempt, the one with this number; the longest pause is two minutes.
  Nanos until(int number) const;
};
inline constexpr Retries kHandshakeRetries{std::chrono::seconds{1}, 6};
inline constexpr Retries kDataRetries{std::chrono::milliseconds{200}, 15};

// What is carried: its size with all heads, and a rule to be asked of each attempt, if there is
// one.
struct Load {
  std::string_view what;
  std::size_t size;
  const std::function<Fate(int attempt)>* rule = nullptr;
};

// Of a segment: when the attempt begins that comes through, and how long that takes.
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
  // Whether what has been sent does not come while the link is cut.
  bool stops_arrivals() const { return is_cut && in_flight != InFlight::arrives; }

  // None: TCP has given up.
  std::optional<Passage> carry(const Load& load, const Retries& retries);
  // When the copies of a packet arrive: none, one or two.
  std::vector<Nanos> carry_packet(const Load& load);
  // Without loss.
  Nanos delay(std::size_t size);

 private:
  static constexpr Nanos kLongestQueue = std::chrono::milliseconds{200};

  std::uint64_t draw(Purpose purpose) { return kernel_.draw(purpose, mix(number_) ^ ++drawn_); }
  bool happens(Purpose purpose, double probability, EventKind kind, const Load& load);
  bool is_lost(const Load& load, int attempt, Nanos& late);
  // Up to `most`.
  Nanos draw_span(Purpose purpose, Nanos most);
  // How long it waits for those before it, and to be sent itself.
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
