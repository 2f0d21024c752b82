// The kernel's statistics of a TCP connection.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// The values that the library reports. A value that the kernel does not have stays zero.
struct TcpInfo {
  std::uint32_t since_sent_ms = 0;
  std::uint32_t since_received_ms = 0;
  std::uint32_t round_trip_us = 0;
  std::uint32_t total_retransmitted = 0;  // In segments.
  std::uint64_t bytes_acknowledged = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t unsent_bytes = 0;
};

// Returns 0, or a negated errno.
inline long tcp_info([[maybe_unused]] int fd, [[maybe_unused]] TcpInfo& info) {
#if defined(__APPLE__)
  tcp_connection_info found{};
  socklen_t size = sizeof(found);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONNECTION_INFO, &found, &size) < 0) return -errno;
  info.round_trip_us = found.tcpi_srtt * 1000;
  info.total_retransmitted = static_cast<std::uint32_t>(found.tcpi_txretransmitpackets);
  info.bytes_acknowledged = found.tcpi_txbytes;
  info.bytes_received = found.tcpi_rxbytes;
  info.unsent_bytes = found.tcpi_snd_sbbytes;
  return 0;
#elif defined(__FreeBSD__)
  ::tcp_info found{};
  socklen_t size = sizeof(found);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &found, &size) < 0) return -errno;
  info.since_received_ms = found.tcpi_last_data_recv / 1000;
  info.round_trip_us = found.tcpi_rtt;
  info.total_retransmitted = found.tcpi_snd_rexmitpack;
  return 0;
#else
  return -ENOPROTOOPT;
#endif
}

}  // namespace spate::sys
