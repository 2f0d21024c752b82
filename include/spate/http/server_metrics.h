// ServerMetrics: the counters of an HTTP server. Plain numbers. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "spate/export.h"
#include "spate/time.h"

namespace spate::http {

// The number of durations in each of some fixed ranges.
struct DurationHistogram {
  // The greatest duration of each range, in microseconds. The last range has none.
  static constexpr std::array<std::int64_t, 16> kBounds{
      100,    250,     500,     1'000,   2'500,     5'000,     10'000,    25'000,
      50'000, 100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  Nanos sum{0};

  // Returns the number of all durations.
  SPATE_EXPORT std::uint64_t count() const;
  SPATE_EXPORT DurationHistogram& operator+=(const DurationHistogram& other);
};

struct ServerMetrics {
  std::size_t connections = 0;  // Open.
  std::size_t exchanges = 0;    // In progress.
  std::uint64_t accepted = 0;   // Total; the next four are totals too.
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;   // Malformed, too long, or too slow.
  std::uint64_t received = 0;  // Bytes of bodies.
  std::uint64_t sent = 0;

  // From the header section of a request to the end of its response, by the class of the status:
  // the first element is for 1xx, the last one for 5xx. Includes refused requests. Empty without
  // ServerOptions::measure_durations.
  std::array<DurationHistogram, 5> durations{};

  // Adds the numbers of another server.
  SPATE_EXPORT ServerMetrics& operator+=(const ServerMetrics& other);
};

}  // namespace spate::http
