#include "net/stream/socket_transport.h"

#include <cerrno>

#include "net/stream/hub.h"
#include "sys/socket.h"

namespace spate {

namespace {

// A span of bytes is what the kernel calls an iovec.
static_assert(sizeof(Bytes) == sizeof(iovec));

// Pieces as the kernel wants them: a message, or the parts alone.
struct Vector {
  explicit Vector(std::span<const Bytes> pieces) : count(pieces.size()) {
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = {.iov_base = const_cast<std::byte*>(pieces[i].data()),
                  .iov_len = pieces[i].size()};
    }
  }

  msghdr message() {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    return message;
  }

  iovec parts[Transport::kMaxPieces];
  std::size_t count;
};

}  // namespace

// ---- both

bool ReadinessTransport::want(Connection& connection, Events events) {
  FdNode& node = connection.node();
  const auto wanted = static_cast<std::uint32_t>(events);
  if (node.head.active != 0 && node.events == wanted) return true;
  Loop& loop = hub().loop();
  const Events queued =
      node.head.pending == 0 ? Events::none : loop.clear_pending(node.head) & Events::custom;
  if (node.head.active != 0) loop.stop(node);
  node.events = (node.events & kFdIsNew) | wanted;
  if (any(queued)) loop.feed(node.head, queued);
  return !any(events) || loop.start(node);
}

void ReadinessTransport::close(Connection& connection, bool) {
  FdNode& node = connection.node();
  if (hub().has_loop()) hub().loop().stop_before_close(node);
  sys::Descriptor closing(node.fd);
  node.fd = -1;
}

int ReadinessTransport::release(Connection& connection) {
  hub().loop().stop_now(connection.node());
  return std::exchange(connection.node().fd, -1);
}

// ---- sockets

long SocketTransport::receive(Connection& connection, std::span<std::byte> room) {
  return sys::receive(connection.fd(), room.data(), room.size());
}

long SocketTransport::send(Connection& connection, std::span<const Bytes> pieces) {
  if (pieces.size() == 1)
    return sys::send(connection.fd(), pieces.front().data(), pieces.front().size());
  Vector vector(pieces);
  return sys::send_message(connection.fd(), vector.message());
}

// Not every file can be sent by the kernel: those of /proc, for instance.
long SocketTransport::send_file(Connection& connection, int file, std::int64_t offset,
                                std::size_t size) {
  const long sent = sys::send_file_without_signal(connection.fd(), file, offset, size);
  if (sent != -EINVAL && sent != -ENOSYS) return sent;
  return Transport::send_file(connection, file, offset, size);
}

long SocketTransport::send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                                       std::span<const int> descriptors) {
  Vector vector(pieces);
  msghdr message = vector.message();
  sys::DescriptorRoom room;
  sys::attach_descriptors(message, room, descriptors);
  return sys::send_message(connection.fd(), message);
}

long SocketTransport::receive_descriptors(Connection& connection, std::span<std::byte> room,
                                          ArrivedDescriptors& arrived) {
  const Bytes whole = room;
  Vector vector({&whole, 1});
  msghdr message = vector.message();
  sys::DescriptorRoom control;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const long count = sys::receive_message(connection.fd(), message, 0);
  if (count < 0) return count;
  arrived.count = sys::descriptors_of(message, arrived.fds);
  arrived.is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  return count;
}

bool SocketTransport::shut_down(Connection& connection) {
  sys::shut_down_writing(connection.fd());
  return true;
}

void SocketTransport::close(Connection& connection, bool reset) {
  if (reset && !hub().is_foreign()) sys::reset_on_close(connection.fd());
  ReadinessTransport::close(connection, reset);
}

// ---- files

// The writing end of a pipe has nothing to read but that the reader has gone.
long FileTransport::receive(Connection& connection, std::span<std::byte> room) {
  const long result = sys::read(connection.fd(), room.data(), room.size());
  if (result != -EBADF) return result;
  return sys::has_reader(connection.fd()) ? -EAGAIN : -EPIPE;
}

long FileTransport::send(Connection& connection, std::span<const Bytes> pieces) {
  Vector vector(pieces);
  return sys::write_without_signal(connection.fd(), vector.parts, static_cast<int>(vector.count));
}

// The reader of a pipe sees the end when the descriptor is closed.
bool FileTransport::shut_down(Connection& connection) {
  if (sys::is_write_only(connection.fd())) connection.set_one_way();
  return true;
}

}  // namespace spate
