// The header of a message, as evpp's benchmark and asio_benchmark have it.
#ifndef BENCH_WORKLOADS_HEADER_BODY_MESSAGE_H
#define BENCH_WORKLOADS_HEADER_BODY_MESSAGE_H

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>

struct Header {
  std::uint32_t body_size;     // In network order, as the other.
  std::uint32_t packet_count;  //

  std::size_t message_size() const { return sizeof(Header) + ntohl(body_size); }
  void count_up() { packet_count = htonl(ntohl(packet_count) + 1); }
};
static_assert(sizeof(Header) == 8);

inline Header header_at(const void* bytes) {
  Header header;
  memcpy(&header, bytes, sizeof header);
  return header;
}

#endif
