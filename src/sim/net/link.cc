#include "sim/net/link.h"

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

bool Link::happens(Purpose purpose, double probability, EventKind kind, const Load& load) {
  if (probability <= 0) return false;
  constexpr double kScale = 0x1p-53;
  const bool is_wanted = static_cast<double>(draw(purpose) >> 11) * kScale < probability;
  return is_wanted &&
         kernel_.injects(
             {.kind = kind, .from = from_, .to = to_, .what = load.what, .size = load.size});
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

// Returns whether the rule or the link loses it; a long packet is lost with any of its fragments. A
// segment is never fragmented.
bool Link::is_lost(const Load& load, int attempt, Nanos& late) {
  if (load.rule != nullptr) {
    const Delivery verdict = (*load.rule)(attempt);
    if (verdict.is_lost) return true;
    late = std::max(verdict.delay, Nanos{0});
  }
  for (std::size_t sent = 0; sent < load.size; sent += options.mtu)
    if (happens(Purpose::loss, options.loss, EventKind::lost, load)) return true;
  return false;
}

std::optional<Passage> Link::carry(const Load& load, const Retries& retries) {
  Nanos late{0};
  int lost = 0;
  while (is_lost(load, lost, late)) {
    if (++lost > retries.most) return std::nullopt;
  }
  return Passage{.begins_after = retries.until(lost), .takes = delay(load.size) + late};
}

std::vector<Nanos> Link::carry_packet(const Load& load) {
  const bool is_full = options.bytes_per_second != 0 && is_free_at_ - kernel_.now() > kLongestQueue;
  Nanos late{0};
  if (is_cut || is_full || is_lost(load, 0, late)) return {};
  std::vector<Nanos> arrivals;
  Nanos arrival = kernel_.now() + delay(load.size) + late;
  if (happens(Purpose::reorder, options.reorder, EventKind::overtaken, load)) {
    const Nanos most =
        2 * (std::max(options.latency, Nanos{0}) + std::max(options.jitter, Nanos{0}));
    arrival += Nanos{1'000'000} + draw_span(Purpose::reorder, most);
  } else if (late == Nanos{0}) {
    arrival = last_packet_ = std::max(last_packet_, arrival);
  }
  arrivals.push_back(arrival);
  if (happens(Purpose::duplicate, options.duplicates, EventKind::doubled, load))
    arrivals.push_back(arrival + draw_span(Purpose::duplicate, Nanos{1'000'000}));
  return arrivals;
}

}  // namespace spate::sim
