// Packets in batches, and the options of UDP, where systems differ.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <span>

#include "sys/descriptor.h"
#include "sys/socket_calls.h"

namespace spate::sys {

// A packet of a batch: `msg_hdr`, and `msg_len`, how many bytes were received or sent.
struct Message {
  msghdr msg_hdr;
  unsigned msg_len;
};

// Calls `move` for each message until one fails. Returns how many have succeeded, or the negated
// errno of the first.
template <class Move>
long move_each(std::span<Message> messages, Move move) {
  long count = 0;
  for (Message& message : messages) {
    const long result = result_of(move(message.msg_hdr));
    if (result < 0) return count > 0 ? count : result;
    message.msg_len = static_cast<unsigned>(result);
    ++count;
  }
  return count;
}

inline long receive_messages(int fd, std::span<Message> messages) {
  if (const int error = injected(SystemCall::receive)) return -error;
  return move_each(messages,
                   [fd](msghdr& message) { return ::recvmsg(fd, &message, MSG_DONTWAIT); });
}

inline long send_messages(int fd, std::span<Message> messages) {
  if (const int error = injected(SystemCall::send)) return -error;
  return move_each(messages,
                   [fd](const msghdr& message) { return ::sendmsg(fd, &message, kNoSignal); });
}

// Options that enable control messages, or make the kernel join packets.
#ifdef IP_RECVPKTINFO
inline constexpr int kTellLocalAddress = IP_RECVPKTINFO;
#else
inline constexpr int kTellLocalAddress = IP_RECVDSTADDR;
#endif
#ifdef IP_RECVTOS
inline constexpr int kTellTos = IP_RECVTOS;
#else
inline constexpr int kTellTos = kNoOption;
#endif
inline constexpr int kJoinArrivals = kNoOption;

// Whether the IPv4 packets of a dual-stack socket have the options and the control messages of
// IPv4.
inline constexpr bool kHasOptionsOfBoth = false;

}  // namespace spate::sys
