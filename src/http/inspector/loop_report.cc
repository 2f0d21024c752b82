#include "http/inspector/loop_report.h"

#include <algorithm>
#include <cstdint>

#include "spate/net/tls.h"

namespace spate::http {

namespace {

StreamReport report_on(const Stream& stream, const StreamInfo& info) {
  StreamReport report{.info = info,
                      .fd = stream.fd(),
                      .local = stream.local_address().to_string(),
                      .peer = stream.peer_address().to_string(),
                      .tls = {},
                      .tcp = tcp_info(stream)};
  if (const auto tls = tls_info(stream)) report.tls = tls->version + ' ' + tls->cipher;
  return report;
}

bool waits_more(const StreamReport& a, const StreamReport& b) { return a.waiting() > b.waiting(); }

void count(LoopReport& report, const StreamInfo& info) {
  ++report.count;
  ++report.by_state[static_cast<std::size_t>(info.state)];
  report.full += info.is_full;
  report.paused += info.is_paused;
  report.queued += info.queued;
  report.unread += info.unread;
}

// Keeps a heap with the shortest queue at the front. So the kernel is asked only about few Streams
// that are not listed in the end.
void list(LoopReport& report, const Stream& stream, const StreamInfo& info, std::size_t most) {
  if (most == 0) return;
  if (report.streams.size() == most) {
    if (report.streams.front().waiting() >= info.queued + info.unread) return;
    std::ranges::pop_heap(report.streams, waits_more);
    report.streams.pop_back();
  }
  report.streams.push_back(report_on(stream, info));
  std::ranges::push_heap(report.streams, waits_more);
}

}  // namespace

LoopReport report_on(Loop& loop, std::size_t max_streams) {
  LoopReport report;
  report.backend = loop.backend_info().name;
  report.metrics = loop.metrics();
  report.active = loop.active_count();
  if (report.active <= static_cast<std::int64_t>(std::min<std::size_t>(max_streams, INT32_MAX)))
    for_each_active(loop, [&](const ActiveInfo& info) { report.kept_by.push_back(info); });
  for_each_stream(loop, [&](const Stream& stream) {
    const StreamInfo info = stream_info(stream);
    count(report, info);
    list(report, stream, info, max_streams);
  });
  std::ranges::sort_heap(report.streams, waits_more);
  return report;
}

}  // namespace spate::http
