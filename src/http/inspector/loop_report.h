// LoopReport: the statistics of a loop, taken on its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spate/active.h"
#include "spate/loop.h"
#include "spate/metrics.h"
#include "spate/net/stream_info.h"

namespace spate::http {

struct StreamReport {
  StreamInfo info;
  int fd = -1;
  std::string local;
  std::string peer;
  std::string tls;  // "TLSv1.3 TLS_AES_128_GCM_SHA256"; empty without TLS.
  std::optional<TcpInfo> tcp;

  std::size_t waiting() const { return info.queued + info.unread; }
};

struct LoopReport {
  std::string_view backend;
  Metrics metrics;
  std::int64_t active = 0;
  // The things that keep it alive; empty if there are more than `max_streams`.
  std::vector<ActiveInfo> kept_by;

  // Totals over all its Streams.
  std::size_t count = 0;
  std::array<std::size_t, kStreamStates> by_state{};
  std::size_t full = 0;
  std::size_t paused = 0;
  std::uint64_t queued = 0;
  std::uint64_t unread = 0;

  std::vector<StreamReport> streams;  // The ones with the longest queues.
};

// Lists at most `max_streams` Streams.
LoopReport report_on(Loop& loop, std::size_t max_streams);

}  // namespace spate::http
