#include "net/stream/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "offload/file_source.h"

namespace spate {

namespace {

// The most bytes of a file per call, and that a thread brings into memory at once. More might leave
// the memory again before they are sent.
constexpr std::size_t kFilePart = 512 * 1024;
// Up to this much of a file is read and sent together with the bytes in front of it. sendfile()
// pays only for more; the bytes in front are then sent separately. (Sent together, each packet
// would mix copied bytes and pages, which costs a third more.)
constexpr std::size_t kReadPart = 32 * 1024;
// A quarter of the largest block, so that the blocks take at most four times the queued bytes.
constexpr std::size_t kWorthSharing = 16 * 1024;

// The pieces for one call of the transport.
struct Portion {
  Portion(const Buffer& bytes, std::size_t limit) {
    for (const Bytes piece : bytes.pieces()) {
      if (size == limit || count == Transport::kMaxPieces - 1) break;
      add(piece.first(std::min(piece.size(), limit - size)));
    }
  }
  void add(Bytes piece) {
    pieces.all[count++] = piece;
    size += piece.size();
  }
  std::span<const Bytes> given() const { return {pieces.all, count}; }

  Transport::Pieces pieces;
  std::size_t count = 0;
  std::size_t size = 0;
};

// Continues to send when a part of a file is in memory.
struct OnFileRead {
  void operator()() const { connection.on_ready(Events::write); }
  Connection& connection;
};

void give_back(Connection& connection, Buffer&& spent) {
  if (!spent.empty()) connection.loop_state().release_later(std::move(spent));
}

}  // namespace

// A part of a file, or descriptors that are sent with the next byte.
struct SendQueue::Attachment {
  ~Attachment() { close_descriptors({descriptors.begin(), descriptors.size()}); }

  std::size_t ahead = 0;  // Bytes between the previous attachment, or the front, and this one.
  std::unique_ptr<FileSource> file;
  std::int64_t offset = 0;
  std::size_t left = 0;
  Array<int> descriptors;  // Duplicates that it owns.
  Attachment* next = nullptr;
};

void SendQueue::clear(Buffer& spent) {
  detach_all();
  bytes_.clear(spent);
}

void SendQueue::attach(Attachment* attachment, std::size_t behind) {
  attachment->ahead = behind - before_;
  (first_ == nullptr ? first_ : last_->next) = attachment;
  last_ = attachment;
  before_ = behind;
  in_files_ += attachment->left;
}

void SendQueue::detach_first() {
  Attachment* gone = first_;
  first_ = gone->next;
  before_ -= gone->ahead;
  in_files_ -= gone->left;
  delete gone;
}

void SendQueue::detach_all() {
  while (first_ != nullptr) detach_first();
}

bool SendQueue::append_file(int file, std::int64_t offset, std::size_t size, ThreadPool& pool) {
  std::unique_ptr<Attachment> attachment(new (std::nothrow) Attachment);
  if (attachment == nullptr) return false;
  attachment->file = FileSource::make(file, pool);
  if (attachment->file == nullptr) return false;
  attachment->offset = offset;
  attachment->left = size;
  attach(attachment.release(), bytes_.size());
  return true;
}

bool SendQueue::is_waiting() const {
  return first_ != nullptr && first_->ahead == 0 && first_->file != nullptr &&
         first_->file->is_waiting();
}

long SendQueue::append_with(Bytes bytes, std::span<const int> descriptors) {
  std::unique_ptr<Attachment> attachment(new (std::nothrow) Attachment);
  if (attachment == nullptr || !attachment->descriptors.reserve(descriptors.size())) return -ENOMEM;
  for (const int fd : descriptors) {
    const long duplicate = sys::duplicate(fd);
    if (duplicate < 0) return duplicate;
    attachment->descriptors.push_reserved(static_cast<int>(duplicate));
  }
  const std::size_t behind = bytes_.size();
  if (!bytes_.append(bytes)) return -ENOMEM;
  attach(attachment.release(), behind);
  return 0;
}

// Copies shared pieces, except those that are large enough, and those for which memory ran out.
void SendQueue::stop_sharing(Connection& connection) {
  if (!std::exchange(shares_, false)) return;
  Buffer kept;
  Buffer spent;
  while (!bytes_.empty()) {
    const Bytes piece = bytes_.front();
    if (piece.size() < kWorthSharing && kept.append(piece))
      bytes_.consume(piece.size(), spent);
    else
      kept.append(bytes_, piece.size());
  }
  bytes_ = std::move(kept);
  give_back(connection, std::move(spent));
}

SendQueue::Sent SendQueue::send(Connection& connection, std::size_t max) {
  if (first_ == nullptr || first_->file == nullptr) return send_bytes(connection, max);
  if (first_->left <= kReadPart) return send_with_file(connection, max);
  if (first_->ahead == 0) return send_file(connection, max);
  return connection.transport().is_socket() ? send_bytes(connection, max)
                                            : send_with_file(connection, max);
}

// Returns how many bytes may be sent with one call: up to the next attachment, not counting one at
// the front.
std::size_t SendQueue::run() const {
  if (first_ == nullptr) return bytes_.size();
  if (first_->ahead > 0) return first_->ahead;
  return first_->next == nullptr ? bytes_.size() : first_->next->ahead;
}

SendQueue::Sent SendQueue::send_bytes(Connection& connection, std::size_t max) {
  const Portion portion(bytes_, std::min(max, run()));
  Transport& transport = connection.transport();
  const bool carries = first_ != nullptr && first_->ahead == 0;
  const long sent = carries ? transport.send_descriptors(
                                  connection, portion.given(),
                                  {first_->descriptors.begin(), first_->descriptors.size()})
                            : transport.send(connection, portion.given());
  if (sent > 0) consume(connection, static_cast<std::size_t>(sent));
  return {sent, sent == static_cast<long>(portion.size)};
}

void SendQueue::consume(Connection& connection, std::size_t count) {
  Buffer spent;
  bytes_.consume(count, spent);
  give_back(connection, std::move(spent));
  // Its descriptors were sent with the first byte.
  if (first_ != nullptr && first_->ahead == 0) detach_first();
  if (first_ == nullptr) return;
  first_->ahead -= count;
  before_ -= count;
}

// Bytes that were read and not sent are read again.
SendQueue::Sent SendQueue::send_with_file(Connection& connection, std::size_t max) {
  const std::size_t ahead = first_->ahead;
  Portion portion(bytes_, std::min(max, ahead));
  std::byte room[kReadPart];
  if (portion.size == ahead && ahead < max) {
    const std::size_t part = std::min({max - ahead, first_->left, sizeof(room)});
    const long read = first_->file->read(connection.loop_state().loop(), {room, part},
                                         first_->offset, OnFileRead{connection});
    if (read > 0) {
      portion.add(Bytes(room, static_cast<std::size_t>(read)));
    } else if (ahead == 0) {
      return {read < 0 ? read : -ENODATA, false};
    }
  }
  const long sent = connection.transport().send(connection, portion.given());
  if (sent > 0) {
    const std::size_t bytes = std::min(static_cast<std::size_t>(sent), ahead);
    if (bytes > 0) consume(connection, bytes);
    consume_file(static_cast<std::size_t>(sent) - bytes);
  }
  return {sent, sent == static_cast<long>(portion.size)};
}

void SendQueue::consume_file(std::size_t count) {
  first_->offset += static_cast<std::int64_t>(count);
  first_->left -= count;
  in_files_ -= count;
  if (first_->left == 0) detach_first();
}

SendQueue::Sent SendQueue::send_file(Connection& connection, std::size_t max) {
  const long ready =
      first_->file->prepare(connection.loop_state().loop(), std::min(first_->left, kFilePart),
                            first_->offset, OnFileRead{connection});
  if (ready < 0) return {ready, false};
  const std::size_t part = std::min(max, static_cast<std::size_t>(ready));
  const long sent =
      connection.transport().send_file(connection, first_->file->fd(), first_->offset, part);
  if (sent == 0) return {-ENODATA, false};  // The file is shorter than declared.
  if (sent > 0) consume_file(static_cast<std::size_t>(sent));
  return {sent, sent == static_cast<long>(part)};
}

}  // namespace spate
