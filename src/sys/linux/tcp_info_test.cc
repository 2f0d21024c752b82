#include "sys/tcp_info.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <cstddef>

namespace spate::sys {
namespace {

// The two declarations agree on every field that we read.
static_assert(offsetof(TcpInfo, state) == offsetof(::tcp_info, tcpi_state));
static_assert(offsetof(TcpInfo, since_sent_ms) == offsetof(::tcp_info, tcpi_last_data_sent));
static_assert(offsetof(TcpInfo, since_received_ms) == offsetof(::tcp_info, tcpi_last_data_recv));
static_assert(offsetof(TcpInfo, round_trip_us) == offsetof(::tcp_info, tcpi_rtt));
static_assert(offsetof(TcpInfo, total_retransmitted) == offsetof(::tcp_info, tcpi_total_retrans));

// Where the C library declares more than the first 104 bytes, that agrees as well. A template,
// because glibc 2.36 does not.
template <class System>
bool agrees_behind_the_beginning() {
  if constexpr (requires(System system) { system.tcpi_notsent_bytes; }) {
    return offsetof(TcpInfo, bytes_acknowledged) == offsetof(System, tcpi_bytes_acked) &&
           offsetof(TcpInfo, bytes_received) == offsetof(System, tcpi_bytes_received) &&
           offsetof(TcpInfo, unsent_bytes) == offsetof(System, tcpi_notsent_bytes);
  } else {
    return sizeof(System) == offsetof(TcpInfo, pacing_rate);
  }
}

TEST(SysTcpInfo, AgreesWithCLibrary) { EXPECT_TRUE(agrees_behind_the_beginning<::tcp_info>()); }

// glibc 2.43 declares the whole struct, as this one.
struct LongTcpInfo {
  char beginning[104];
  std::uint64_t tcpi_pacing_rate, tcpi_max_pacing_rate, tcpi_bytes_acked, tcpi_bytes_received;
  std::uint32_t tcpi_segs_out, tcpi_segs_in, tcpi_notsent_bytes, tcpi_min_rtt;
};
TEST(SysTcpInfo, AgreesWithLongerDeclaration) {
  EXPECT_TRUE(agrees_behind_the_beginning<LongTcpInfo>());
}

}  // namespace
}  // namespace spate::sys
