#include "spate/net/buffer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "core/kept_memory.h"
#include "spate/assert.h"

namespace spate {

// Memory that one or several chunks refer to. The last chunk frees it.
struct Buffer::Block {
  std::atomic<std::uint32_t> chunks;
  std::uint32_t kept_size;  // The size for the thread's cache; 0 if too large for it.
  Release release;          // For memory of the caller; nullptr if the bytes follow the Block.
  void* context;
};

// A piece of a Buffer: a window on a block. The first chunk of a block lies in the block's memory,
// so it must exist until the block is freed.
struct Buffer::Chunk {
  Chunk* next;
  Block* block;
  std::byte* begin;
  std::byte* end;
  std::byte* limit;  // The end of the room that this chunk may still fill; `end` if none.

  std::size_t size() const { return static_cast<std::size_t>(end - begin); }
  std::size_t room() const { return static_cast<std::size_t>(limit - end); }
  bool is_first_of_block() const {
    return reinterpret_cast<const std::byte*>(this) ==
           reinterpret_cast<const std::byte*>(block) - sizeof(Chunk);
  }
  // Returns whether nothing else refers to the block, and it is not memory of the caller.
  bool owns_block() const {
    return is_first_of_block() && block->release == nullptr &&
           block->chunks.load(std::memory_order_acquire) == 1;
  }
};

namespace {

constexpr std::size_t kHeader = 64;          // A chunk and its block, before the bytes.
constexpr std::size_t kSmallest = 512;       // With its header: a size of the allocator.
constexpr std::size_t kLargest = 64 * 1024;  // A larger block has exactly the requested size.
// Larger blocks are refused: sizes cannot overflow.
constexpr std::size_t kMax = std::size_t{1} << (sizeof(std::size_t) == 8 ? 38 : 30);
constexpr std::size_t kCopied = 64;  // Shorter pieces are copied, not moved by a view.
// As above for append_shared(): a short piece costs more than a copy, also in the kernel.
constexpr std::size_t kCopiedOfShared = 512;

}  // namespace

Buffer::Chunk* Buffer::make_chunk(std::size_t capacity) {
  static_assert(kHeader >= sizeof(Chunk) + sizeof(Block));
  if (capacity > kMax) return nullptr;
  const std::size_t size = kHeader + capacity;
  auto* memory = static_cast<std::byte*>(take_memory(size));
  if (memory == nullptr) return nullptr;
  const auto kept_size = static_cast<std::uint32_t>(size > KeptMemory::kLargest ? 0 : size);
  auto* block = new (memory + sizeof(Chunk)) Block{1, kept_size, nullptr, nullptr};
  std::byte* bytes = memory + kHeader;
  return new (memory) Chunk{nullptr, block, bytes, bytes, bytes + capacity};
}

// Makes a chunk for `count` bytes of another chunk, from `begin` on.
Buffer::Chunk* Buffer::make_view(const Chunk& chunk, std::byte* begin, std::size_t count) {
  void* memory = take_memory(sizeof(Chunk));
  if (memory == nullptr) return nullptr;
  chunk.block->chunks.fetch_add(1, std::memory_order_relaxed);
  std::byte* end = begin + count;
  return new (memory) Chunk{nullptr, chunk.block, begin, end, end};
}

void Buffer::destroy(Chunk* chunk) {
  Block* block = chunk->block;
  if (!chunk->is_first_of_block()) give_memory(chunk, sizeof(Chunk));
  if (block->chunks.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (block->release != nullptr) block->release(block->context);
  std::byte* const memory = reinterpret_cast<std::byte*>(block) - sizeof(Chunk);
  block->kept_size == 0 ? free_memory(memory) : give_memory(memory, block->kept_size);
}

void Buffer::link(Chunk* chunk) {
  chunk->next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = chunk;
  last_ = chunk;
}

// ---- appending

bool Buffer::append(Bytes bytes) {
  if (bytes.empty()) return true;
  const std::size_t here = last_ == nullptr ? 0 : std::min(last_->room(), bytes.size());
  Chunk* chunk = nullptr;
  if (here < bytes.size()) {
    const std::size_t more = bytes.size() - here;
    const std::size_t grown = std::clamp(size_, kSmallest, kLargest) - kHeader;
    chunk = make_chunk(std::max(more, grown));
    if (chunk == nullptr) return false;
    std::memcpy(chunk->begin, bytes.data() + here, more);
    chunk->end += more;
  }
  if (here > 0) {
    std::memcpy(last_->end, bytes.data(), here);
    last_->end += here;
  }
  if (chunk != nullptr) link(chunk);
  size_ += bytes.size();
  return true;
}

void Buffer::append(Buffer&& other) {
  if (other.first_ == nullptr) return;
  (last_ == nullptr ? first_ : last_->next) = other.first_;
  last_ = other.last_;
  size_ += other.size_;
  other.first_ = other.last_ = nullptr;
  other.size_ = 0;
}

bool Buffer::append(Buffer& other, std::size_t count) {
  if (count >= other.size_) return append(std::move(other)), true;
  // The piece to be split comes first: it is the only step that can fail.
  Chunk* cut = other.first_;
  std::size_t left = count;
  while (left >= cut->size()) {
    left -= cut->size();
    cut = cut->next;
  }
  Buffer tail;
  if (left >= kCopied) {
    Chunk* view = make_view(*cut, cut->begin, left);
    if (view == nullptr) return false;
    tail.link(view);
    tail.size_ = left;
  } else if (!tail.append(Bytes(cut->begin, left))) {
    return false;
  }
  while (other.first_ != cut) {
    Chunk* chunk = other.first_;
    other.first_ = chunk->next;
    other.size_ -= chunk->size();
    size_ += chunk->size();
    link(chunk);
  }
  other.consume(left);
  append(std::move(tail));
  return true;
}

bool Buffer::append_reference(Bytes bytes, Release release, void* context) {
  Chunk* chunk = make_chunk(0);
  if (chunk == nullptr) return false;
  chunk->block->release = release;
  chunk->block->context = context;
  // Never written to: the chunk has no room.
  chunk->begin = const_cast<std::byte*>(bytes.data());
  chunk->end = chunk->limit = chunk->begin + bytes.size();
  if (bytes.empty()) return destroy(chunk), true;
  link(chunk);
  size_ += bytes.size();
  return true;
}

// Returns whether our last piece ends at `begin`. It is a view then, as it has no room.
bool Buffer::is_continued_by(const Chunk& chunk, const std::byte* begin) const {
  return last_ != nullptr && last_->block == chunk.block && last_->end == begin;
}

bool Buffer::show(const Chunk& chunk, std::byte* begin, std::size_t count) {
  if (last_ != nullptr && count < kCopiedOfShared) return append(Bytes(begin, count));
  Chunk* view = make_view(chunk, begin, count);
  if (view == nullptr) return false;
  link(view);
  size_ += count;
  return true;
}

bool Buffer::append_shared(const Buffer& other, std::size_t offset, std::size_t count) {
  if (offset >= other.size_ || count == 0) return true;
  count = std::min(count, other.size_ - offset);
  const Chunk* chunk = other.first_;
  for (; offset >= chunk->size(); chunk = chunk->next) offset -= chunk->size();
  std::byte* begin = chunk->begin + offset;
  if (count > chunk->size() - offset) return append_shared_pieces(*chunk, begin, count);
  if (!is_continued_by(*chunk, begin)) return show(*chunk, begin, count);
  last_->end = last_->limit = begin + count;
  size_ += count;
  return true;
}

// As append_shared(), beginning at `begin` in `chunk`.
bool Buffer::append_shared_pieces(const Chunk& chunk, std::byte* begin, std::size_t count) {
  Buffer all;
  for (const Chunk* next = &chunk; count > 0; next = next->next) {
    if (next != &chunk) begin = next->begin;
    const std::size_t here = std::min(static_cast<std::size_t>(next->end - begin), count);
    if (!all.show(*next, begin, here)) return false;
    count -= here;
  }
  append(std::move(all));
  return true;
}

bool Buffer::prepend(Bytes bytes) {
  Buffer front;
  if (!front.append(bytes)) return false;
  front.append(std::move(*this));
  swap(front);
  return true;
}

std::span<std::byte> Buffer::reserve(std::size_t at_least) {
  while (spare_ != nullptr && spare_->room() < at_least) drop_spare();
  if (spare_ == nullptr && last_ != nullptr && last_->room() >= std::max<std::size_t>(at_least, 1))
    return {last_->end, last_->room()};
  if (spare_ == nullptr) spare_ = make_chunk(std::max(at_least, kSmallest - kHeader));
  if (spare_ == nullptr) return {};
  return {spare_->end, spare_->room()};
}

void Buffer::commit(std::size_t count) {
  if (count == 0) return;
  if (spare_ != nullptr) link(std::exchange(spare_, spare_->next));
  SPATE_ASSERT(last_ != nullptr && count <= last_->room(),
               "commit() at most the size that prepare() returned");
  last_->end += count;
  size_ += count;
}

// ---- reading

Bytes Buffer::Pieces::operator*() const { return {chunk_->begin, chunk_->size()}; }

Buffer::Pieces& Buffer::Pieces::operator++() {
  chunk_ = chunk_->next;
  return *this;
}

Bytes Buffer::back() const {
  return last_ == nullptr ? Bytes() : Bytes(last_->begin, last_->size());
}

Bytes Buffer::flat(std::size_t count) {
  if (count > size_ || count == 0) return {};
  if (first_->size() >= count) return {first_->begin, count};
  Chunk* chunk = make_chunk(count);
  if (chunk == nullptr) return {};
  chunk->end += count;
  copy({chunk->begin, count});
  consume(count);
  chunk->next = first_;
  first_ = chunk;
  if (last_ == nullptr) last_ = chunk;
  size_ += count;
  return {chunk->begin, count};
}

std::byte Buffer::at(std::size_t offset) const {
  SPATE_ASSERT(offset < size_, "look at size() first");
  const Chunk* chunk = first_;
  for (; offset >= chunk->size(); chunk = chunk->next) offset -= chunk->size();
  return chunk->begin[offset];
}

std::optional<std::size_t> Buffer::find(Bytes pattern, std::size_t from) const {
  if (from > size_ || pattern.size() > size_ - from) return {};
  if (pattern.empty()) return from;
  std::size_t before = 0;  // Bytes before the chunk.
  const int first = std::to_integer<int>(pattern.front());
  for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
    std::size_t offset = from > before ? from - before : 0;
    while (offset < chunk->size() && before + offset + pattern.size() <= size_) {
      const void* hit = std::memchr(chunk->begin + offset, first, chunk->size() - offset);
      if (hit == nullptr) break;
      offset = static_cast<std::size_t>(static_cast<const std::byte*>(hit) - chunk->begin);
      if (matches(chunk, offset, pattern)) return before + offset;
      ++offset;
    }
    before += chunk->size();
  }
  return {};
}

bool Buffer::matches(const Chunk* chunk, std::size_t offset, Bytes pattern) const {
  while (chunk != nullptr) {
    const std::size_t here = std::min(chunk->size() - offset, pattern.size());
    if (std::memcmp(chunk->begin + offset, pattern.data(), here) != 0) return false;
    pattern = pattern.subspan(here);
    if (pattern.empty()) return true;
    chunk = chunk->next;
    offset = 0;
  }
  return false;
}

std::size_t Buffer::copy(std::span<std::byte> target, std::size_t offset) const {
  std::size_t done = 0;
  for (const Chunk* chunk = first_; chunk != nullptr && done < target.size(); chunk = chunk->next) {
    if (offset >= chunk->size()) {
      offset -= chunk->size();
      continue;
    }
    const std::size_t here = std::min(chunk->size() - offset, target.size() - done);
    std::memcpy(target.data() + done, chunk->begin + offset, here);
    done += here;
    offset = 0;
  }
  return done;
}

// ---- consuming

void Buffer::drop_first(Buffer* spent) {
  Chunk* chunk = first_;
  first_ = chunk->next;
  if (first_ == nullptr) last_ = nullptr;
  if (spent == nullptr || chunk->block->release == nullptr) return destroy(chunk);
  spent->size_ += chunk->size();
  spent->link(chunk);
}

void Buffer::drop_spare() { destroy(std::exchange(spare_, spare_->next)); }

void Buffer::consume(std::size_t count, Buffer* spent) {
  SPATE_ASSERT(count <= size_, "look at size() first");
  size_ -= count;
  while (count > 0 && count >= first_->size()) {
    count -= first_->size();
    drop_first(spent);
  }
  if (count > 0) first_->begin += count;
}

void Buffer::consume(std::size_t count) { consume(count, nullptr); }
void Buffer::consume(std::size_t count, Buffer& spent) { consume(count, &spent); }

std::size_t Buffer::read(std::span<std::byte> target) {
  const std::size_t count = copy(target);
  consume(count);
  return count;
}

void Buffer::clear(Buffer& spent) { consume(size_, &spent); }

void Buffer::clear() {
  while (first_ != nullptr) drop_first(nullptr);
  while (spare_ != nullptr) drop_spare();
  size_ = 0;
}

// Keeps the order: the blocks of equal reads have equal sizes at equal places.
void Buffer::recycle() {
  Chunk* const others = std::exchange(spare_, nullptr);
  Chunk** end = &spare_;
  while (first_ != nullptr) {
    Chunk* chunk = first_;
    if (!chunk->owns_block()) {
      drop_first(nullptr);
      continue;
    }
    first_ = chunk->next;
    chunk->begin = chunk->end = reinterpret_cast<std::byte*>(chunk) + kHeader;
    *end = chunk;
    end = &chunk->next;
  }
  *end = others;
  last_ = nullptr;
  size_ = 0;
}

}  // namespace spate
