// The queue of accepted connections of a listening socket, as tcp(7) shows it.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace spate::testing {

inline constexpr bool kShowsAcceptQueue = true;

struct AcceptQueue {
  unsigned waiting;
  unsigned limit;
};

inline AcceptQueue accept_queue(int listening) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  EXPECT_EQ(::getsockopt(listening, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return {.waiting = info.tcpi_unacked, .limit = info.tcpi_sacked};
}

}  // namespace spate::testing
