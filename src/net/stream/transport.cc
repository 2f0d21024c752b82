#include "net/stream/transport.h"

#include <algorithm>
#include <cerrno>

namespace spate {

ArrivedDescriptors::~ArrivedDescriptors() { close_descriptors({fds, count}); }

long Transport::receive_own_way(Connection&, std::span<std::byte>) { return -EAGAIN; }
long Transport::send_own_way(Connection&, std::span<const Bytes>) { return -EAGAIN; }

// Bytes that were read and not sent are read again. The loop's receive buffer is not used, because
// a callback may be reading it.
long Transport::send_file(Connection& connection, int file, std::int64_t offset, std::size_t size) {
  std::byte room[16 * 1024];
  const long count = sys::read_at(file, room, std::min(size, sizeof(room)), offset);
  if (count <= 0) return count;
  const Bytes bytes(room, static_cast<std::size_t>(count));
  return send(connection, {&bytes, 1});
}

long Transport::send_descriptors(Connection&, std::span<const Bytes>, std::span<const int>) {
  return -EOPNOTSUPP;
}

long Transport::receive_descriptors(Connection& connection, std::span<std::byte> room,
                                    ArrivedDescriptors&) {
  return receive(connection, room);
}

}  // namespace spate
