#include "net/stream/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "net/stream/hub.h"
#include "net/stream/transport.h"

namespace spate {

namespace {

// A file that has to come from a disk keeps the loop waiting for no more than this.
constexpr std::size_t kFilePart = 512 * 1024;

}  // namespace

// Part of a file, or descriptors that go with the byte behind them.
struct SendQueue::Attachment {
  ~Attachment() { close_descriptors({descriptors.begin(), descriptors.size()}); }

  std::size_t ahead = 0;  // Bytes between the attachment before it, or the front, and this one.
  sys::Descriptor file;
  std::int64_t offset = 0;
  std::size_t left = 0;
  Array<int> descriptors;  // Ours.
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

bool SendQueue::append_file(int file, std::int64_t offset, std::size_t size) {
  auto* attachment = new (std::nothrow) Attachment;
  if (attachment == nullptr) return false;
  attachment->file = sys::Descriptor(file);
  attachment->offset = offset;
  attachment->left = size;
  attach(attachment, bytes_.size());
  return true;
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

SendQueue::Sent SendQueue::send(Connection& connection, std::size_t max) {
  const bool is_file = first_ != nullptr && first_->ahead == 0 && first_->file.is_open();
  return is_file ? send_file(connection, max) : send_bytes(connection, max);
}

// How many bytes may go with one call: up to the next attachment, which may be in front itself.
std::size_t SendQueue::run() const {
  if (first_ == nullptr) return bytes_.size();
  if (first_->ahead > 0) return first_->ahead;
  return first_->next == nullptr ? bytes_.size() : first_->next->ahead;
}

SendQueue::Sent SendQueue::send_bytes(Connection& connection, std::size_t max) {
  const std::size_t limit = std::min(max, run());
  Bytes pieces[Transport::kMaxPieces];
  std::size_t count = 0;
  std::size_t size = 0;
  for (const Bytes piece : bytes_.pieces()) {
    if (size == limit || count == Transport::kMaxPieces) break;
    pieces[count] = piece.first(std::min(piece.size(), limit - size));
    size += pieces[count++].size();
  }
  const std::span<const Bytes> given(pieces, count);
  Transport& transport = connection.transport();
  const bool carries = first_ != nullptr && first_->ahead == 0;
  const long sent =
      carries ? transport.send_descriptors(
                    connection, given, {first_->descriptors.begin(), first_->descriptors.size()})
              : transport.send(connection, given);
  if (sent > 0) consume(connection, static_cast<std::size_t>(sent));
  return {sent, sent == static_cast<long>(size)};
}

void SendQueue::consume(Connection& connection, std::size_t count) {
  Buffer spent;
  bytes_.consume(count, spent);
  if (!spent.empty()) connection.hub().release_later(std::move(spent));
  if (first_ != nullptr && first_->ahead == 0) detach_first();  // It has gone with the first byte.
  if (first_ == nullptr) return;
  first_->ahead -= count;
  before_ -= count;
}

SendQueue::Sent SendQueue::send_file(Connection& connection, std::size_t max) {
  const std::size_t part = std::min({max, first_->left, kFilePart});
  const long sent =
      connection.transport().send_file(connection, first_->file.get(), first_->offset, part);
  if (sent == 0) return {-ENODATA, false};  // Shorter than was promised.
  if (sent > 0) {
    first_->offset += sent;
    first_->left -= static_cast<std::size_t>(sent);
    in_files_ -= static_cast<std::size_t>(sent);
    if (first_->left == 0) detach_first();
  }
  return {sent, sent == static_cast<long>(part)};
}

}  // namespace spate
