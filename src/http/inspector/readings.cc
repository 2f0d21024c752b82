#include "spate/http/readings.h"

namespace spate::http {

void Readings::gauge(std::string_view name, double value) {
  all_.push_back({std::string(name), Kind::gauge, value});
}

void Readings::counter(std::string_view name, double value) {
  all_.push_back({std::string(name), Kind::counter, value});
}

}  // namespace spate::http
