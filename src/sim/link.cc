#include "sim/link.h"

#include <algorithm>

namespace spate::sim {

namespace {

constexpr Nanos kLongestPause = std::chrono::minutes{2};

}  // namespace

Nanos Retries::until(int number) const {
  Nanos whole{0};
  Nanos pause = first;
  for (int i = 0; i < number; ++i) {
    whole += pause;
    pause = std::min(pause * 2, kLongestPause);
  }
  return whole;
}

bool Link::happens(Purpose purpose, double probability) {
  if (probability <= 0) return false;
  constexpr double kScale = 0x1p-53;
  return static_cast<double>(draw(purpose) >> 11) * kScale < probability;
}

Nanos Link::draw_span(Purpose purpose, Nanos most) {
  if (most <= Nanos{0}) return Nanos{0};
  const auto range = static_cast<std::uint64_t>(most.count()) + 1;
  return Nanos{static_cast<std::int64_t>(draw(purpose) % range)};
}

Nanos Link::queue(std::size_t size) {
  if (options.bytes_per_second == 0) return Nanos{0};
  const double seconds = static_cast<double>(size) / static_cast<double>(options.bytes_per_second);
  is_free_at_ =
      std::max(is_free_at_, kernel_.now()) + Nanos{static_cast<std::int64_t>(seconds * 1e9)};
  return is_free_at_ - kernel_.now();
}

Nanos Link::delay(std::size_t size) {
  return queue(size) + std::max(options.latency, Nanos{0}) +
         draw_span(Purpose::jitter, options.jitter);
}

std::optional<Nanos> Link::carry(std::size_t size, const Retries& retries) {
  int lost = 0;
  while (happens(Purpose::loss, options.loss)) {
    if (++lost > retries.most) return std::nullopt;
  }
  return retries.until(lost) + delay(size);
}

std::vector<Nanos> Link::carry_packet(std::size_t size) {
  const bool is_full = options.bytes_per_second != 0 && is_free_at_ - kernel_.now() > kLongestQueue;
  if (is_cut || is_full || happens(Purpose::loss, options.loss)) return {};
  std::vector<Nanos> arrivals;
  const bool is_late = happens(Purpose::reorder, options.reorder);
  Nanos arrival = kernel_.now() + delay(size);
  if (is_late) {
    const Nanos most =
        2 * (std::max(options.latency, Nanos{0}) + std::max(options.jitter, Nanos{0}));
    arrival += Nanos{1'000'000} + draw_span(Purpose::reorder, most);
  } else {
    arrival = last_packet_ = std::max(last_packet_, arrival);
  }
  arrivals.push_back(arrival);
  if (happens(Purpose::duplicate, options.duplicates))
    arrivals.push_back(arrival + draw_span(Purpose::duplicate, Nanos{1'000'000}));
  return arrivals;
}

}  // namespace spate::sim
