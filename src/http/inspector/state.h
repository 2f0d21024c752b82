// State: all data that an Inspector shows, for the formatters. Views refer to the Inspector.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/inspector/loop_report.h"
#include "spate/http/readings.h"
#include "spate/metrics.h"
#include "spate/time.h"

namespace spate::http {

enum class LoopStatus : std::uint8_t { responsive, blocked, ended };

struct LoopState {
  std::string_view source;
  std::string_view name;
  LoopStatus status = LoopStatus::responsive;
  const LoopReport* report = nullptr;  // The latest; nullptr if it has never responded.
  // If it is blocked: since when it has not responded, and its running callback.
  Nanos silent{0};
  std::optional<RunningCallback> running;
};

struct SourceState {
  std::string_view source;
  std::string_view family;  // "http_server", ...
  Readings readings;
};

struct State {
  WallTime time{};
  Nanos period{0};
  std::size_t viewers = 0;
  std::vector<LoopState> loops;
  std::vector<SourceState> sources;
};

std::string json_of(const State& state);

// The text format of Prometheus, version 0.0.4.
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
std::string prometheus_text_of(const State& state);

// OpenMetrics, version 1.0.
inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
std::string openmetrics_text_of(const State& state);

}  // namespace spate::http
