#include "net/stream/socket_transport.h"

#include <cerrno>

#include "net/stream/loop_streams.h"
#include "sys/socket.h"

namespace spate {

namespace {

msghdr message_of(std::span<const Bytes> pieces) {
  msghdr message{};
  message.msg_iov = sys::as_vector(pieces.data());
  message.msg_iovlen = static_cast<sys::PieceCount>(pieces.size());
  return message;
}

}  // namespace

// ---- both transports

bool ReadinessTransport::want(Connection& connection, Events events) {
  FdNode& node = connection.node();
  if ((node.head.active | node.head.pending) != 0) return want_otherwise(node, events);
  node.events = (node.events & kFdIsNew) | static_cast<std::uint32_t>(events);
  return !any(events) || loop_state().loop().start(node);
}

// Changes the interest of a descriptor that is watched or has a queued event.
bool ReadinessTransport::want_otherwise(FdNode& node, Events events) {
  const auto wanted = static_cast<std::uint32_t>(events);
  if (node.head.active != 0 && node.events == wanted) return true;
  Loop& loop = loop_state().loop();
  const Events queued =
      node.head.pending == 0 ? Events::none : loop.clear_pending(node.head) & Events::custom;
  if (node.head.active != 0) loop.stop(node);
  node.events = (node.events & kFdIsNew) | wanted;
  if (any(queued)) loop.feed(node.head, queued);
  return !any(events) || loop.start(node);
}

void ReadinessTransport::close(Connection& connection, bool) {
  FdNode& node = connection.node();
  if (loop_state().has_loop()) loop_state().loop().stop_before_close(node);
  sys::Descriptor closing(node.fd);
  node.fd = -1;
}

int ReadinessTransport::release(Connection& connection) {
  loop_state().loop().stop_now(connection.node());
  return std::exchange(connection.node().fd, -1);
}

// ---- sockets

long SocketTransport::send_own_way(Connection& connection, std::span<const Bytes> pieces) {
  return sys::send_message(connection.fd(), message_of(pieces));
}

// The kernel cannot send every file: those of /proc, for instance.
long SocketTransport::send_file(Connection& connection, int file, std::int64_t offset,
                                std::size_t size) {
  const long sent = sys::send_file_without_signal(connection.fd(), file, offset, size);
  if (sent != -EINVAL && sent != -ENOSYS) return sent;
  return Transport::send_file(connection, file, offset, size);
}

long SocketTransport::send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                                       std::span<const int> descriptors) {
  msghdr message = message_of(pieces);
  sys::DescriptorRoom room;
  sys::attach_descriptors(message, room, descriptors);
  return sys::send_message(connection.fd(), message);
}

long SocketTransport::receive_descriptors(Connection& connection, std::span<std::byte> room,
                                          ArrivedDescriptors& arrived) {
  const Bytes whole = room;
  msghdr message = message_of({&whole, 1});
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
  if (reset && !connection.is_parents()) sys::reset_on_close(connection.fd());
  ReadinessTransport::close(connection, reset);
}

// ---- files

// A write-only descriptor has no input. That of a pipe becomes ready when the reader closes its
// end. Others (a file, /dev/null, a terminal) may be ready all the time.
long FileTransport::receive_own_way(Connection& connection, std::span<std::byte> room) {
  const long result = sys::read(connection.fd(), room.data(), room.size());
  if (result != -EBADF) return result;
  const short found = sys::look_for_input(connection.fd());
  if (found == POLLIN) connection.read_no_more();
  return found == 0 || found == POLLIN ? -EAGAIN : -EPIPE;
}

long FileTransport::send_own_way(Connection& connection, std::span<const Bytes> pieces) {
  return sys::write_without_signal(connection.fd(), sys::as_vector(pieces.data()),
                                   static_cast<int>(pieces.size()));
}

// The reader of a pipe gets EOF when the descriptor is closed.
bool FileTransport::shut_down(Connection& connection) {
  if (sys::is_write_only(connection.fd())) connection.set_one_way();
  return true;
}

}  // namespace spate
