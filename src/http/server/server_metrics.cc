#include "spate/http/server_metrics.h"

#include <numeric>

namespace spate::http {

std::uint64_t DurationHistogram::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

DurationHistogram& DurationHistogram::operator+=(const DurationHistogram& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
  return *this;
}

ServerMetrics& ServerMetrics::operator+=(const ServerMetrics& other) {
  connections += other.connections;
  exchanges += other.exchanges;
  accepted += other.accepted;
  requests += other.requests;
  refused += other.refused;
  received += other.received;
  sent += other.sent;
  for (std::size_t i = 0; i < durations.size(); ++i) durations[i] += other.durations[i];
  return *this;
}

}  // namespace spate::http
