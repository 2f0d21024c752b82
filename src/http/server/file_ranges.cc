#include "http/server/file_ranges.h"

#include <algorithm>
#include <span>
#include <utility>

#include "spate/net/buffer.h"

namespace spate::http {

namespace {

constexpr std::uint64_t kPiece = 64 * 1024;

}  // namespace

// If the file shrinks meanwhile, the connection is reset: the declared size cannot be sent any
// more.
void FileRanges::go_on() {
  while (next_ < parts_.size()) {
    if (exchange_.is_full()) return;
    if (!send_piece()) return exchange_.abort();
  }
  exchange_.write(end_);
  exchange_.end();
}

bool FileRanges::send_piece() {
  const Part& part = parts_[next_];
  if (sent_ == 0 && !exchange_.write(part.head)) return false;
  Buffer piece;
  const std::uint64_t wanted = std::min(kPiece, part.range.size() - sent_);
  const std::span<std::byte> room = piece.reserve(static_cast<std::size_t>(wanted));
  if (room.empty()) return false;
  const long count = sys::read_at(file_.get(), room.data(), static_cast<std::size_t>(wanted),
                                  static_cast<std::int64_t>(part.range.first + sent_));
  if (count <= 0) return false;
  piece.commit(static_cast<std::size_t>(count));
  if (!exchange_.write(std::move(piece))) return false;
  sent_ += static_cast<std::uint64_t>(count);
  if (sent_ == part.range.size()) {
    ++next_;
    sent_ = 0;
  }
  return true;
}

}  // namespace spate::http
