// The JSON of the page and of "/state.json". Times are in seconds.
#include <algorithm>

#include "http/inspector/json_writer.h"
#include "http/inspector/state.h"

namespace spate::http {

namespace {

constexpr std::string_view kKindNames[] = {"gauge", "counter", "histogram"};
constexpr std::string_view kStatusNames[] = {"responsive", "blocked", "ended"};

// Only a key for the page's rows: a later Stream may have the same one.
std::string id_text(const void* id) { return std::to_string(reinterpret_cast<std::uintptr_t>(id)); }

void write_tcp(JsonWriter& json, const std::optional<TcpInfo>& tcp) {
  if (!tcp) return;
  json.add("idle", seconds_of(std::min(tcp->since_received, tcp->since_sent)));
  json.add("received", tcp->received);
  json.add("sent", tcp->sent);
  json.add("unsent", tcp->unsent);
  json.add("round_trip", seconds_of(tcp->round_trip));
  json.add("retransmitted", tcp->retransmitted);
}

void write_stream(JsonWriter& json, const StreamReport& stream) {
  json.begin_object();
  json.add("id", id_text(stream.info.id));
  json.add("fd", stream.fd);
  json.add("state", name_of(stream.info.state));
  json.add("local", std::string_view(stream.local));
  json.add("peer", std::string_view(stream.peer));
  json.add("tls", std::string_view(stream.tls));
  json.add("queued", stream.info.queued);
  json.add("unread", stream.info.unread);
  json.add("stalled", seconds_of(stream.info.stalled));
  json.add("full", stream.info.is_full);
  json.add("paused", stream.info.is_paused);
  json.add("started", stream.info.is_started);
  json.add("owned", stream.info.has_owner);
  json.add("age", seconds_of(stream.info.age));
  write_tcp(json, stream.tcp);
  json.end_object();
}

void write_streams(JsonWriter& json, const LoopReport& report) {
  json.key("streams").begin_object();
  json.add("count", report.count);
  json.key("by_state").begin_object();
  for (std::size_t i = 0; i < kStreamStates; ++i)
    json.add(name_of(static_cast<StreamState>(i)), report.by_state[i]);
  json.end_object();
  json.add("full", report.full);
  json.add("paused", report.paused);
  json.add("queued", report.queued);
  json.add("unread", report.unread);
  json.key("listed").begin_array();
  for (const StreamReport& stream : report.streams) write_stream(json, stream);
  json.end_array();
  json.end_object();
}

void write_kept_by(JsonWriter& json, const LoopReport& report) {
  json.key("kept_by").begin_array();
  for (const ActiveInfo& info : report.kept_by) {
    json.begin_object();
    json.add("kind", name_of(info.kind));
    json.add("label", std::string_view(info.label));
    json.add("fd", info.fd);
    json.add("count", info.count);
    if (info.due) json.add("due", seconds_of(*info.due));
    json.end_object();
  }
  json.end_array();
}

void write_report(JsonWriter& json, const LoopReport& report) {
  const Metrics& metrics = report.metrics;
  json.add("backend", report.backend);
  json.add("turns", metrics.turns);
  json.add("events", metrics.events);
  json.add("posts", metrics.posts);
  json.add("wakeups", metrics.wakeups);
  json.add("stale_events", metrics.stale_events);
  json.add("busy", seconds_of(metrics.busy));
  json.add("blocked", seconds_of(metrics.blocked));
  json.add("longest_callback", seconds_of(metrics.longest_callback));
  json.add("longest_kind", metrics.longest_kind);
  json.add("last_callback", seconds_of(metrics.last_callback));
  json.add("waits", metrics.kernel_calls.wait);
  json.add("modifies", metrics.kernel_calls.modify);
  json.add("wake_writes", metrics.kernel_calls.wake_write);
  json.add("pending", metrics.pending);
  json.add("timers", metrics.active_timers);
  json.add("descriptors", metrics.active_fds);
  json.add("active", report.active);
  write_kept_by(json, report);
  write_streams(json, report);
}

// If the callback is a Stream's, it is identified by the last report that listed it.
void write_running(JsonWriter& json, const LoopState& loop) {
  const RunningCallback& running = *loop.running;
  json.key("running").begin_object();
  json.add("kind", running.kind);
  json.add("seconds", seconds_of(running.since));
  if (loop.report != nullptr) {
    for (const StreamReport& stream : loop.report->streams) {
      if (stream.info.id == running.watcher) json.add("peer", std::string_view(stream.peer));
    }
  }
  json.end_object();
}

void write_loop(JsonWriter& json, const LoopState& loop) {
  json.begin_object();
  json.add("source", loop.source);
  json.add("name", loop.name);
  json.add("status", kStatusNames[static_cast<std::size_t>(loop.status)]);
  if (loop.status == LoopStatus::blocked) json.add("silent", seconds_of(loop.silent));
  if (loop.running) write_running(json, loop);
  if (loop.report != nullptr) write_report(json, *loop.report);
  json.end_object();
}

void write_labels(JsonWriter& json, const Readings::Reading& reading) {
  if (reading.labels.empty()) return;
  json.key("labels").begin_object();
  for (const auto& [name, value] : reading.labels) json.add(name, std::string_view(value));
  json.end_object();
}

// The counts of the ranges, whose bounds are those of DurationHistogram.
void write_durations(JsonWriter& json, const DurationHistogram& durations) {
  json.add("sum", seconds_of(durations.sum));
  json.key("counts").begin_array();
  for (const std::uint64_t count : durations.counts) json.value(count);
  json.end_array();
}

void write_source(JsonWriter& json, const SourceState& source) {
  json.begin_object();
  json.add("source", source.source);
  json.add("family", source.family);
  json.key("readings").begin_array();
  for (const Readings::Reading& reading : source.readings.all()) {
    json.begin_object();
    json.add("name", std::string_view(reading.name));
    json.add("kind", kKindNames[static_cast<std::size_t>(reading.kind)]);
    write_labels(json, reading);
    json.add("value", reading.value);
    if (reading.kind == Readings::Kind::histogram) write_durations(json, reading.durations);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string json_of(const State& state) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.add("time", seconds_of(state.time.time_since_epoch()));
  json.add("period", seconds_of(state.period));
  json.add("viewers", state.viewers);
  json.key("loops").begin_array();
  for (const LoopState& loop : state.loops) write_loop(json, loop);
  json.end_array();
  json.key("sources").begin_array();
  for (const SourceState& source : state.sources) write_source(json, source);
  json.end_array();
  json.end_object();
  return text;
}

}  // namespace spate::http
