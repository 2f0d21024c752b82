// Reading from a descriptor into a buffer, and writing from one.
//
// Semantics: event2/buffer.h (evbuffer_read, evbuffer_write_atmost); probed: an empty or frozen
// buffer writes nothing, and a frozen one reads nothing. libevent reads 4,096 bytes at most;
// reading more with a system call is an intended improvement.
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/buffer/file_segment.h"

using namespace spate::libevent;

namespace {

constexpr int kExtentsMost = 128;
constexpr std::size_t kReadMost = 16 * 1024;
constexpr ssize_t kMuch = 4096;

ssize_t send_file(const Piece& piece, int fd, std::size_t most) {
  const auto& part = static_cast<const FilePiece&>(piece);
  off_t place = part.segment->place_in_file() + part.offset;
  return sendfile(fd, part.segment->fd(), &place, std::min(most, piece.size));
}

ssize_t send_pieces(const Piece* piece, int fd, std::size_t most) {
  iovec extents[kExtentsMost];
  int count = 0;
  for (; piece != nullptr && most != 0 && count < kExtentsMost && !is_unmapped(*piece);
       piece = piece->next) {
    const std::size_t here = std::min(piece->size, most);
    extents[count++] = {piece->data, here};
    most -= here;
  }
  return count == 0 ? -1 : writev(fd, extents, count);
}

// Reads into a separate piece, for a peer that sends so much that copying it would cost more than
// unused memory.
ssize_t read_much(evbuffer& buffer, int fd, std::size_t most) {
  const iovec room = buffer.contiguous_room(most);
  if (room.iov_base == nullptr) return -1;
  const ssize_t got = read(fd, room.iov_base, most);
  if (got > 0) buffer.commit_in(room, static_cast<std::size_t>(got));
  return got;
}

// Reads into the rest of the last piece, and then into a buffer on the stack: the amount is known
// only afterwards, and no more memory should be kept than needed.
ssize_t read_little(evbuffer& buffer, int fd, std::size_t most) {
  unsigned char overflow[kReadMost];
  iovec extents[2];
  int count = buffer.room_in_last() != 0 ? buffer.extents(extents, 1) : 0;
  std::size_t room = 0;
  if (count != 0) {
    if (extents[0].iov_len > most) extents[0].iov_len = most;
    room = extents[0].iov_len;
  }
  if (room < most || count == 0) extents[count++] = {overflow, most - room};
  const ssize_t got = readv(fd, extents, count);
  if (got <= 0) return got;
  const auto bytes = static_cast<std::size_t>(got);
  buffer.commit(std::min(bytes, room), 0);
  if (bytes > room && !buffer.append(overflow, bytes - room)) {
    errno = ENOMEM;
    return -1;
  }
  return got;
}

}  // namespace

int evbuffer_write_atmost(evbuffer* buffer, evutil_socket_t fd, ev_ssize_t most) {
  const Use use(buffer);
  if (buffer->is_front_frozen() || buffer->size() == 0 || most == 0) return -1;
  std::size_t wanted = buffer->size();
  if (most > 0) wanted = std::min(wanted, static_cast<std::size_t>(most));
  const Piece* first = buffer->first();
  const ssize_t written =
      is_unmapped(*first) ? send_file(*first, fd, wanted) : send_pieces(first, fd, wanted);
  if (written > 0) {
    buffer->consume(static_cast<std::size_t>(written));
    buffer->changed();
  }
  return static_cast<int>(written);
}

int evbuffer_write(evbuffer* buffer, evutil_socket_t fd) {
  return evbuffer_write_atmost(buffer, fd, -1);
}

int evbuffer_read(evbuffer* buffer, evutil_socket_t fd, int most) {
  const Use use(buffer);
  if (buffer->is_back_frozen()) return -1;
  const std::size_t size =
      most < 0 ? kReadMost : std::min(static_cast<std::size_t>(most), kReadMost);
  const ssize_t got = buffer->is_sent_much() && size >= kMuch ? read_much(*buffer, fd, size)
                                                              : read_little(*buffer, fd, size);
  if (got > 0) buffer->set_sent_much(got >= kMuch);
  if (got > 0) buffer->changed();
  return static_cast<int>(got);
}
