// The text format of Prometheus and OpenMetrics: for each metric a HELP line, a TYPE line, and a
// line for each set of labels; all lines of a metric are adjacent. OpenMetrics names a counter
// without its suffix in the first two lines, and ends with "# EOF".
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "http/codec/utf8.h"
#include "http/inspector/number_text.h"
#include "http/inspector/state.h"

namespace spate::http {

namespace {

constexpr std::string_view kTotal = "_total";

// A scraper rejects the whole text if a value is not UTF-8.
void append_label_value(std::string& text, std::string_view value) {
  const bool is_valid = is_utf8(bytes_of(value));
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    const bool is_ascii = static_cast<unsigned char>(c) < 0x80;
    c == '\n' ? text += "\\n" : text += is_ascii || is_valid ? c : '?';
  }
}

std::string value_text(double value) {
  if (is_finite(value)) return number_text(value);
  return value > 0 ? "+Inf" : value < 0 ? "-Inf" : "NaN";
}

enum class TextFormat : std::uint8_t { prometheus, openmetrics };

class Text {
 public:
  explicit Text(TextFormat format) : format_(format) {}

  void metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    if (format_ == TextFormat::openmetrics && type == "counter") name.remove_suffix(kTotal.size());
    ((text_ += "# HELP ") += name) += ' ';
    ((text_ += help) += "\n# TYPE ") += name;
    ((text_ += ' ') += type) += '\n';
  }
  void sample(std::initializer_list<Label> labels, double value) {
    line({}, {labels.begin(), labels.size()}, {}, value);
  }
  void sample(std::span<const Label> labels, double value) { line({}, labels, {}, value); }
  void histogram(std::span<const Label> labels, const DurationHistogram& durations) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < durations.counts.size(); ++i) {
      count += durations.counts[i];
      line("_bucket", labels, bound_text(i), static_cast<double>(count));
    }
    line("_sum", labels, {}, seconds_of(durations.sum));
    line("_count", labels, {}, static_cast<double>(count));
  }
  std::string take() {
    if (format_ == TextFormat::openmetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  // Returns a bound in seconds as OpenMetrics requires it: 1 is "1.0".
  static std::string bound_text(std::size_t index) {
    if (index == DurationHistogram::kBounds.size()) return "+Inf";
    const auto seconds = static_cast<double>(DurationHistogram::kBounds[index]) / 1e6;
    char text[32];
    std::string bound(text, std::to_chars(text, text + sizeof(text), seconds,
                                          std::chars_format::fixed).ptr);
    return bound.find('.') == std::string::npos ? bound + ".0" : bound;
  }
  // `bound` is the value of "le"; if it is empty, the label is left out.
  void line(std::string_view suffix, std::span<const Label> labels, std::string_view bound,
            double value) {
    (text_ += name_) += suffix;
    char before = '{';
    for (const Label& label : labels) append(std::exchange(before, ','), label);
    if (!bound.empty()) append(std::exchange(before, ','), {"le", bound});
    if (before == ',') text_ += '}';
    ((text_ += ' ') += value_text(value)) += '\n';
  }
  void append(char before, const Label& label) {
    ((text_ += before) += label.name) += "=\"";
    append_label_value(text_, label.value);
    text_ += '"';
  }

  const TextFormat format_;
  std::string text_;
  std::string name_;
};

// ---- loops

struct LoopMetric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  double (*value)(const LoopReport& report);
};

template <class Number>
double number(Number value) {
  return static_cast<double>(value);
}

constexpr LoopMetric kLoopMetrics[] = {
    {"spate_loop_turns_total", "counter", "Turns begun.",
     [](const LoopReport& report) { return number(report.metrics.turns); }},
    {"spate_loop_events_total", "counter", "Callbacks called.",
     [](const LoopReport& report) { return number(report.metrics.events); }},
    {"spate_loop_posts_total", "counter", "Posted tasks called.",
     [](const LoopReport& report) { return number(report.metrics.posts); }},
    {"spate_loop_wakeups_total", "counter", "Waits that another thread or a signal has ended.",
     [](const LoopReport& report) { return number(report.metrics.wakeups); }},
    {"spate_loop_stale_events_total", "counter", "Events of closed files that were dropped.",
     [](const LoopReport& report) { return number(report.metrics.stale_events); }},
    {"spate_loop_busy_seconds_total", "counter", "Time outside of waits, while measured.",
     [](const LoopReport& report) { return seconds_of(report.metrics.busy); }},
    {"spate_loop_waiting_seconds_total", "counter", "Time inside of waits, while measured.",
     [](const LoopReport& report) { return seconds_of(report.metrics.blocked); }},
    {"spate_loop_longest_callback_seconds", "gauge", "The longest callback, while measured.",
     [](const LoopReport& report) { return seconds_of(report.metrics.longest_callback); }},
    {"spate_loop_kernel_waits_total", "counter", "Calls of epoll_wait and the like.",
     [](const LoopReport& report) { return number(report.metrics.kernel_calls.wait); }},
    {"spate_loop_kernel_changes_total", "counter", "Calls of epoll_ctl and the like.",
     [](const LoopReport& report) { return number(report.metrics.kernel_calls.modify); }},
    {"spate_loop_kernel_wakes_total", "counter", "Writes of other threads that woke the loop.",
     [](const LoopReport& report) { return number(report.metrics.kernel_calls.wake_write); }},
    {"spate_loop_pending", "gauge", "Events queued and not yet called.",
     [](const LoopReport& report) { return number(report.metrics.pending); }},
    {"spate_loop_timers", "gauge", "Active timers.",
     [](const LoopReport& report) { return number(report.metrics.active_timers); }},
    {"spate_loop_descriptors", "gauge", "Watched descriptors.",
     [](const LoopReport& report) { return number(report.metrics.active_fds); }},
    {"spate_loop_streams_full", "gauge", "Streams whose queue is full.",
     [](const LoopReport& report) { return number(report.full); }},
    {"spate_loop_streams_paused", "gauge", "Streams that are paused.",
     [](const LoopReport& report) { return number(report.paused); }},
    {"spate_loop_streams_queued_bytes", "gauge", "Bytes that wait to be sent.",
     [](const LoopReport& report) { return number(report.queued); }},
    {"spate_loop_streams_unread_bytes", "gauge", "Bytes that handlers have not consumed.",
     [](const LoopReport& report) { return number(report.unread); }},
};

void write_loops(Text& text, const std::vector<LoopState>& loops) {
  for (const LoopMetric& metric : kLoopMetrics) {
    text.metric(metric.name, metric.type, metric.help);
    for (const LoopState& loop : loops) {
      if (loop.report == nullptr) continue;
      text.sample({{"source", loop.source}, {"loop", loop.name}}, metric.value(*loop.report));
    }
  }
}

void write_streams(Text& text, const std::vector<LoopState>& loops) {
  text.metric("spate_loop_streams", "gauge", "Streams by state.");
  for (const LoopState& loop : loops) {
    if (loop.report == nullptr) continue;
    for (std::size_t i = 0; i < kStreamStates; ++i) {
      text.sample({{"source", loop.source},
                   {"loop", loop.name},
                   {"state", name_of(static_cast<StreamState>(i))}},
                  number(loop.report->by_state[i]));
    }
  }
}

void write_statuses(Text& text, const std::vector<LoopState>& loops) {
  text.metric("spate_loop_up", "gauge", "1 if the loop responds, 0 if it does not.");
  for (const LoopState& loop : loops) {
    text.sample({{"source", loop.source}, {"loop", loop.name}},
                loop.status == LoopStatus::responsive ? 1 : 0);
  }
  text.metric("spate_loop_silent_seconds", "gauge", "For how long a loop has not responded.");
  for (const LoopState& loop : loops)
    text.sample({{"source", loop.source}, {"loop", loop.name}}, seconds_of(loop.silent));
}

// ---- readings

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  const Readings::Reading* reading;
  Labels labels;  // Sorted.
};
using Samples = std::vector<Sample>;

bool is_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void append_name(std::string& name, std::string_view text) {
  for (const char c : text) name += is_in_names(c) ? c : '_';
}

std::string metric_name(const SourceState& source, const Readings::Reading& reading) {
  std::string name = "spate_";
  (name += source.family) += '_';
  append_name(name, reading.name);
  if (reading.kind == Readings::Kind::counter) name += kTotal;
  return name;
}

std::string label_name(std::string_view text) {
  const bool needs_prefix = text.empty() || (text[0] >= '0' && text[0] <= '9');
  std::string name = needs_prefix ? "_" : "";
  append_name(name, text);
  return name;
}

// Leaves out labels whose name is taken.
Labels labels_of(const SourceState& source, const Readings::Reading& reading) {
  std::map<std::string, std::string> labels{{"source", std::string(source.source)}};
  for (const auto& [text, value] : reading.labels) {
    std::string name = label_name(text);
    if (name != "le") labels.emplace(std::move(name), value);
  }
  return {labels.begin(), labels.end()};
}

// Returns the names that a metric uses; another metric must have none of them.
std::vector<std::string> names_of(std::string name, Readings::Kind kind) {
  switch (kind) {
    case Readings::Kind::gauge:
      return {name};
    case Readings::Kind::counter:
      return {name, name.substr(0, name.size() - kTotal.size())};
    case Readings::Kind::histogram:
      return {name, name + "_bucket", name + "_sum", name + "_count"};
  }
  return {};
}

bool claim(std::set<std::string>& taken, const std::string& name, Readings::Kind kind) {
  const std::vector<std::string> names = names_of(name, kind);
  if (std::ranges::any_of(names, [&](const auto& each) { return taken.contains(each); }))
    return false;
  taken.insert(names.begin(), names.end());
  return true;
}

// A metric whose names are taken by an earlier one is left out.
std::map<std::string, Samples> by_metric(const std::vector<SourceState>& sources) {
  std::map<std::string, Samples> metrics;
  std::set<std::string> taken;
  for (const SourceState& source : sources) {
    for (const Readings::Reading& reading : source.readings.all()) {
      if (reading.kind == Readings::Kind::counter && !(reading.value >= 0)) continue;
      const std::string name = metric_name(source, reading);
      if (metrics.contains(name) || claim(taken, name, reading.kind))
        metrics[name].push_back({&reading, labels_of(source, reading)});
    }
  }
  return metrics;
}

// A metric must have one type, and each set of labels only once.
void write_metric(Text& text, const Samples& samples) {
  std::set<Labels> written;
  for (const Sample& sample : samples) {
    const Readings::Reading& reading = *sample.reading;
    if (reading.kind != samples.front().reading->kind || !written.insert(sample.labels).second)
      continue;
    std::vector<Label> labels;
    for (const auto& [name, value] : sample.labels) labels.push_back({name, value});
    reading.kind == Readings::Kind::histogram ? text.histogram(labels, reading.durations)
                                              : text.sample(labels, reading.value);
  }
}

void write_samples(Text& text, const std::map<std::string, Samples>& metrics) {
  constexpr std::string_view kTypes[] = {"gauge", "counter", "histogram"};
  for (const auto& [name, samples] : metrics) {
    const Readings::Kind kind = samples.front().reading->kind;
    text.metric(name, kTypes[static_cast<std::size_t>(kind)], "A metric of the program.");
    write_metric(text, samples);
  }
}

std::string text_of(const State& state, TextFormat format) {
  Text text(format);
  write_statuses(text, state.loops);
  write_loops(text, state.loops);
  write_streams(text, state.loops);
  text.metric("spate_inspector_viewers", "gauge", "Viewers of /events.");
  text.sample(std::span<const Label>(), number(state.viewers));
  write_samples(text, by_metric(state.sources));
  return text.take();
}

}  // namespace

std::string prometheus_text_of(const State& state) {
  return text_of(state, TextFormat::prometheus);
}

std::string openmetrics_text_of(const State& state) {
  return text_of(state, TextFormat::openmetrics);
}

}  // namespace spate::http
