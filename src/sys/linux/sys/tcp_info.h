// The kernel's statistics of a TCP connection (TCP_INFO).
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// The kernel's struct. The C libraries declare different parts of it, so it is declared here. An
// old kernel leaves unknown members zero.
struct TcpInfo {
  std::uint8_t state = 0;
  std::uint8_t congestion_state = 0;
  std::uint8_t retransmits = 0;
  std::uint8_t probes = 0;
  std::uint8_t backoff = 0;
  std::uint8_t options = 0;
  std::uint8_t window_scales = 0;
  std::uint8_t flags = 0;
  std::uint32_t retransmission_timeout = 0;
  std::uint32_t acknowledgement_timeout = 0;
  std::uint32_t send_segment_size = 0;
  std::uint32_t receive_segment_size = 0;
  std::uint32_t unacknowledged = 0;
  std::uint32_t selectively_acknowledged = 0;
  std::uint32_t lost = 0;
  std::uint32_t retransmitted = 0;
  std::uint32_t forward_acknowledged = 0;
  std::uint32_t since_sent_ms = 0;
  std::uint32_t since_acknowledgement_sent_ms = 0;
  std::uint32_t since_received_ms = 0;
  std::uint32_t since_acknowledgement_received_ms = 0;
  std::uint32_t path_mtu = 0;
  std::uint32_t receive_threshold = 0;
  std::uint32_t round_trip_us = 0;
  std::uint32_t round_trip_variance_us = 0;
  std::uint32_t send_threshold = 0;
  std::uint32_t send_window = 0;
  std::uint32_t advertised_segment_size = 0;
  std::uint32_t reordering = 0;
  std::uint32_t receive_round_trip_us = 0;
  std::uint32_t receive_space = 0;
  std::uint32_t total_retransmitted = 0;
  std::uint64_t pacing_rate = 0;
  std::uint64_t max_pacing_rate = 0;
  std::uint64_t bytes_acknowledged = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t segments_out = 0;
  std::uint32_t segments_in = 0;
  std::uint32_t unsent_bytes = 0;
};
static_assert(offsetof(TcpInfo, pacing_rate) == 104 && offsetof(TcpInfo, unsent_bytes) == 144);

// Returns 0, or a negated errno.
inline long tcp_info(int fd, TcpInfo& info) {
  socklen_t size = sizeof(info);
  return result_of(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
}

}  // namespace spate::sys
