// The text format of Prometheus: for each metric a line of help, one of its type, and a line for
// each set of labels; all lines of a metric together.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "http/inspector/number_text.h"
#include "http/inspector/state.h"

namespace spate::http {

namespace {

struct Label {
  std::string_view name;
  std::string_view value;
};

void append_label_value(std::string& text, std::string_view value) {
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    c == '\n' ? text += "\\n" : text += c;
  }
}

std::string value_text(double value) {
  if (is_finite(value)) return number_text(value);
  return value > 0 ? "+Inf" : value < 0 ? "-Inf" : "NaN";
}

class Text {
 public:
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    ((text_ += "# HELP ") += name) += ' ';
    ((text_ += help) += "\n# TYPE ") += name;
    ((text_ += ' ') += type) += '\n';
  }
  void sample(std::initializer_list<Label> labels, double value) {
    text_ += name_;
    char before = '{';
    for (const Label& label : labels) {
      text_ += std::exchange(before, ',');
      (text_ += label.name) += "=\"";
      append_label_value(text_, label.value);
      text_ += '"';
    }
    if (labels.size() > 0) text_ += '}';
    ((text_ += ' ') += value_text(value)) += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
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
    {"spate_loop_stale_events_total", "counter", "Events of earlier files, dropped.",
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
    {"spate_loop_streams_unread_bytes", "gauge", "Bytes that handlers have left.",
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
  text.metric("spate_loop_up", "gauge", "1 of a loop that answers, 0 of one that does not.");
  for (const LoopState& loop : loops) {
    text.sample({{"source", loop.source}, {"loop", loop.name}},
                loop.status == LoopStatus::answers ? 1 : 0);
  }
  text.metric("spate_loop_silent_seconds", "gauge", "For how long a loop has not answered.");
  for (const LoopState& loop : loops)
    text.sample({{"source", loop.source}, {"loop", loop.name}}, seconds_of(loop.silent));
}

// ---- readings

struct Sample {
  std::string_view source;
  Readings::Kind kind;
  double value;
};
using Samples = std::vector<Sample>;

bool is_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string metric_name(const SourceState& source, const Readings::Reading& reading) {
  std::string name = "spate_";
  (name += source.family) += '_';
  for (const char c : reading.name) name += is_in_names(c) ? c : '_';
  if (reading.kind == Readings::Kind::counter) name += "_total";
  return name;
}

std::map<std::string, Samples> by_metric(const std::vector<SourceState>& sources) {
  std::map<std::string, Samples> metrics;
  for (const SourceState& source : sources) {
    for (const Readings::Reading& reading : source.readings.all())
      metrics[metric_name(source, reading)].push_back({source.source, reading.kind, reading.value});
  }
  return metrics;
}

// A metric has one type, and each set of labels once.
bool is_fit(const Samples& samples, const Sample& sample) {
  return sample.kind == samples.front().kind &&
         &sample == &*std::ranges::find(samples, sample.source, &Sample::source);
}

void write_samples(Text& text, const std::map<std::string, Samples>& metrics) {
  for (const auto& [name, samples] : metrics) {
    const bool is_counter = samples.front().kind == Readings::Kind::counter;
    text.metric(name, is_counter ? "counter" : "gauge", "Of the program.");
    for (const Sample& sample : samples) {
      if (is_fit(samples, sample)) text.sample({{"source", sample.source}}, sample.value);
    }
  }
}

}  // namespace

std::string prometheus_text_of(const State& state) {
  Text text;
  write_statuses(text, state.loops);
  write_loops(text, state.loops);
  write_streams(text, state.loops);
  text.metric("spate_inspector_viewers", "gauge", "Who looks at /events.");
  text.sample({}, number(state.viewers));
  write_samples(text, by_metric(state.sources));
  return text.take();
}

}  // namespace spate::http
