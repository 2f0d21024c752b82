#include "spate/http/readings.h"

namespace spate::http {

namespace {

std::vector<std::pair<std::string, std::string>> copy_of(Readings::Labels labels) {
  std::vector<std::pair<std::string, std::string>> copy;
  for (const Label& label : labels) {
    if (!label.value.empty()) copy.emplace_back(label.name, label.value);
  }
  return copy;
}

}  // namespace

void Readings::gauge(std::string_view name, double value, Labels labels) {
  all_.push_back({std::string(name), Kind::gauge, value, copy_of(labels)});
}

void Readings::counter(std::string_view name, double value, Labels labels) {
  all_.push_back({std::string(name), Kind::counter, value, copy_of(labels)});
}

void Readings::histogram(std::string_view name, const DurationHistogram& durations,
                         Labels labels) {
  all_.push_back({std::string(name), Kind::histogram, static_cast<double>(durations.count()),
                  copy_of(labels), durations});
}

}  // namespace spate::http
