// Readings: a program's numbers that an Inspector shows (inspector.h).
//
// Ownership: the Inspector's; valid during the callback. Threads: that of the callback.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/export.h"
#include "spate/http/server_metrics.h"

namespace spate::http {

// A label distinguishes numbers of one name: {"shard", "3"}.
struct Label {
  std::string_view name;
  std::string_view value;
};

class SPATE_EXPORT Readings {
 public:
  using Labels = std::initializer_list<Label>;

  // Add a number. A gauge goes up and down, a counter only grows. Names are any text. For
  // Prometheus, characters other than letters, digits and '_' become '_'. Of equal names with equal
  // labels the first one counts. Labels named "source" or "le", and empty ones, are left out.
  void gauge(std::string_view name, double value, Labels labels = {});
  void counter(std::string_view name, double value, Labels labels = {});
  // Adds a histogram. Its name should end with "_seconds".
  void histogram(std::string_view name, const DurationHistogram& durations, Labels labels = {});

  enum class Kind : std::uint8_t { gauge, counter, histogram };
  struct Reading {
    std::string name;
    Kind kind;
    double value;  // The number of durations, if it is a histogram.
    std::vector<std::pair<std::string, std::string>> labels;
    DurationHistogram durations{};
  };
  const std::vector<Reading>& all() const { return all_; }

 private:
  std::vector<Reading> all_;
};

}  // namespace spate::http
