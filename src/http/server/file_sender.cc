#include "http/server/file_sender.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace spate::http {

namespace {

// A piece that the Exchange sends from the file, and reads by the pool if it is not in memory.
constexpr std::uint64_t kLargePiece = 512 * 1024;
// Up to this much is copied: another descriptor and the samples of the page cache would cost more.
constexpr std::uint64_t kMaxCopied = 64 * 1024;

}  // namespace

// If the file shrinks meanwhile, the connection is reset: the declared size cannot be sent any
// more.
void FileSender::go_on() {
  while (next_ < parts_.size()) {
    if (is_loading_ || exchange_.is_full()) return;
    if (!send_piece()) return;
  }
  if (!end_.empty()) exchange_.write(end_);
  exchange_.end();
}

FileSender::Piece FileSender::next_piece() const {
  const ByteRange& range = parts_[next_].range;
  const std::uint64_t most = may_duplicate_ ? kLargePiece : kMaxCopied;
  return {.size = static_cast<std::size_t>(std::min(range.size() - sent_, most)),
          .offset = static_cast<std::int64_t>(range.first + sent_)};
}

bool FileSender::send_piece() {
  const std::string& head = parts_[next_].head;
  if (sent_ == 0 && !head.empty() && !exchange_.write(head)) return exchange_.abort(), false;
  const Piece piece = next_piece();
  if (piece.size > kMaxCopied) return send_as_file(piece);
  Loaded loaded = load(*source_, piece, Waiting::never);
  return loaded.result == -EAGAIN ? wait_for(piece) : send(std::move(loaded));
}

FileSender::Loaded FileSender::load(const Source& source, Piece piece, Waiting waiting) {
  Loaded loaded;
  const std::span<std::byte> room = loaded.bytes.reserve(piece.size);
  if (room.empty()) return {.bytes = {}, .result = -ENOMEM};
  do {
    loaded.result =
        source.root->read(source.file.get(), room.first(piece.size), piece.offset, waiting);
  } while (loaded.result == -EINTR);
  if (loaded.result > 0) loaded.bytes.commit(static_cast<std::size_t>(loaded.result));
  return loaded;
}

bool FileSender::wait_for(Piece piece) {
  Result<Offloading> job = offload(
      exchange_.loop(),
      [source = std::shared_ptr<const Source>(source_), piece] {
        return load(*source, piece, Waiting::allowed);
      },
      [this](Loaded loaded) { on_loaded(std::move(loaded)); }, pool_);
  if (!job) return exchange_.abort(), false;
  is_loading_ = true;
  job_ = *std::move(job);
  return false;
}

void FileSender::on_loaded(Loaded loaded) {
  is_loading_ = false;
  if (send(std::move(loaded))) go_on();
}

bool FileSender::send(Loaded loaded) {
  if (loaded.result <= 0 || !exchange_.write(std::move(loaded.bytes)))
    return exchange_.abort(), false;
  took(static_cast<std::size_t>(loaded.result));
  return true;
}

void FileSender::took(std::size_t count) {
  sent_ += count;
  if (sent_ < parts_[next_].range.size()) return;
  ++next_;
  sent_ = 0;
}

bool FileSender::send_as_file(Piece piece) {
  if (const std::error_code error = send_from_file(piece)) {
    if (error.value() != EMFILE && error.value() != ENFILE) return exchange_.abort(), false;
    may_duplicate_ = false;
    return true;  // The piece is copied next.
  }
  took(piece.size);
  return true;
}

// The Exchange takes ownership of a duplicate, and of the file itself with the last piece. No job
// uses it then.
std::error_code FileSender::send_from_file(Piece piece) {
  const bool is_last =
      next_ + 1 == parts_.size() && sent_ + piece.size == parts_[next_].range.size();
  sys::Descriptor file =
      is_last ? std::move(source_->file) : sys::Descriptor(sys::duplicate(source_->file.get()));
  if (!file.is_open()) return sys::error_code(file.get());
  const auto offset = static_cast<std::uint64_t>(piece.offset);
  if (const std::error_code error = exchange_.send_file(file.get(), offset, piece.size, pool_))
    return error;
  file.release();
  return {};
}

}  // namespace spate::http
