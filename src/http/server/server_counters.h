// ServerCounters: the numbers behind ServerMetrics. The server's thread changes them; any thread
// reads them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "spate/http/server_metrics.h"
#include "spate/http/status.h"

namespace spate::http {

// A number that one thread changes. Costs two instructions more than a plain number, and no lock.
class Counter {
 public:
  void add(std::uint64_t amount) { set(get() + amount); }
  void subtract(std::uint64_t amount) { set(get() - amount); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class DurationCounter {
 public:
  void add(Nanos duration) {
    constexpr auto& kBounds = DurationHistogram::kBounds;
    const auto micros = std::chrono::ceil<std::chrono::microseconds>(duration).count();
    const auto bound = std::ranges::lower_bound(kBounds, micros);
    counts_[static_cast<std::size_t>(bound - kBounds.begin())].add(1);
    sum_.add(static_cast<std::uint64_t>(std::max(duration, Nanos{0}).count()));
  }
  void read(DurationHistogram& histogram) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) histogram.counts[i] = counts_[i].get();
    histogram.sum = Nanos{static_cast<std::int64_t>(sum_.get())};
  }

 private:
  std::array<Counter, DurationHistogram::kBounds.size() + 1> counts_;
  Counter sum_;
};

class ServerCounters {
 public:
  // Any thread. `ended` is read first: an exchange has begun before it ends.
  ServerMetrics read() const {
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    const std::uint64_t begun = requests.get();
    ServerMetrics metrics{.connections = static_cast<std::size_t>(connections.get()),
                          .exchanges = static_cast<std::size_t>(begun - ended),
                          .accepted = accepted.get(),
                          .requests = begun,
                          .refused = refused.get(),
                          .received = received.get(),
                          .sent = sent.get(),
                          .durations = {}};
    for (std::size_t i = 0; i < durations_.size(); ++i) durations_[i].read(metrics.durations[i]);
    return metrics;
  }
  void add_duration(Status status, Nanos duration) {
    const std::size_t index = static_cast<std::size_t>(status) / 100 - 1;
    durations_[std::min(index, durations_.size() - 1)].add(duration);
  }
  void end_exchange() {
    ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Counter connections;
  Counter accepted;
  Counter requests;
  Counter refused;
  Counter received;
  Counter sent;

 private:
  std::atomic<std::uint64_t> ended_{0};  // Exchanges.
  std::array<DurationCounter, 5> durations_;
};

}  // namespace spate::http
