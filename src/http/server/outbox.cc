#include "http/server/outbox.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "spate/net/stream.h"

namespace spate::http {

bool Outbox::append(Bytes bytes) {
  if (!back().append(bytes)) return false;
  size_ += bytes.size();
  grow(bytes.size());
  return true;
}

void Outbox::append(Buffer&& bytes) {
  size_ += bytes.size();
  grow(bytes.size());
  back().append(std::move(bytes));
}

bool Outbox::append_file(int file, std::uint64_t offset, std::uint64_t size, ThreadPool& pool) {
  std::unique_ptr<FilePiece> piece(new (std::nothrow) FilePiece{
      .file = nullptr, .offset = offset, .left = size, .behind = {}, .next = nullptr});
  if (piece == nullptr) return false;
  piece->file = FileSource::make(file, pool);
  if (piece->file == nullptr) return false;
  FilePiece* const added = piece.get();
  (last_ == nullptr ? first_ : last_->next) = std::move(piece);
  last_ = added;
  size_ += size;
  ++total_.files;
  return true;
}

long Outbox::prepare(std::size_t most, Loop& loop, Job done) {
  while (front_.empty() && first_ != nullptr) {
    if (first_->left == 0) {
      drop_file();
    } else if (const long count = read_file(most, loop, std::move(done)); count <= 0) {
      return count < 0 ? count : -ENODATA;
    }
  }
  return static_cast<long>(std::min(most, front_.size()));
}

long Outbox::read_file(std::size_t most, Loop& loop, Job done) {
  FilePiece& piece = *first_;
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(most, piece.left));
  const std::span<std::byte> room = front_.reserve(wanted);
  if (room.empty()) return -ENOMEM;
  const long count = piece.file->read(loop, room.first(wanted),
                                      static_cast<std::int64_t>(piece.offset), std::move(done));
  if (count <= 0) return count;
  front_.commit(static_cast<std::size_t>(count));
  grow(static_cast<std::uint64_t>(count));
  piece.offset += static_cast<std::uint64_t>(count);
  piece.left -= static_cast<std::uint64_t>(count);
  return count;
}

void Outbox::drop_file() {
  const std::unique_ptr<FilePiece> piece = std::move(first_);
  --total_.files;
  front_.append(std::move(piece->behind));
  first_ = std::move(piece->next);
  if (first_ == nullptr) last_ = nullptr;
}

void Outbox::take(std::span<std::byte> target) { shrink(front_.read(target)); }

bool Outbox::take(std::size_t count, Buffer& target) {
  if (!target.append(front_, count)) return false;
  shrink(count);
  return true;
}

// An empty Outbox must not touch total_, which may be destroyed before it.
void Outbox::clear() {
  if (first_ == nullptr && in_memory_ == 0) return;
  while (first_ != nullptr) drop_file();
  front_.clear();
  shrink(in_memory_);
  size_ = 0;
}

}  // namespace spate::http
