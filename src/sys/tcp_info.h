// What the kernel knows of a TCP connection (TCP_INFO).
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// As the kernel has it: what the C library declares, and what has come behind it since. An old
// kernel leaves zero what it does not know.
struct TcpInfo {
  ::tcp_info first = {};
  std::uint64_t pacing_rate = 0;
  std::uint64_t max_pacing_rate = 0;
  std::uint64_t bytes_acknowledged = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t segments_out = 0;
  std::uint32_t segments_in = 0;
  std::uint32_t unsent_bytes = 0;
};
static_assert(offsetof(TcpInfo, pacing_rate) == 104 && offsetof(TcpInfo, unsent_bytes) == 144);

// 0, or a negated errno.
inline long tcp_info(int fd, TcpInfo& info) {
  socklen_t size = sizeof(info);
  return result_of(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
}

}  // namespace spate::sys
