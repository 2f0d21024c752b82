// WriteGather: the cork buffer for the writes of a connection during its own callback. They are
// sent in one call when the callback returns, or before the callback runs the loop. So only one
// callback at a time has corked writes.
//
// Small pieces are copied. Bytes that are in the receive buffer are not: an echo is sent from
// there.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "spate/assert.h"
#include "spate/net/buffer.h"

namespace spate {

class Connection;

class WriteGather {
 public:
  static constexpr std::size_t kCapacity = 16 * 1024;
  static constexpr std::size_t kLargestCopied = 4 * 1024;

  bool open() {
    copies_.reset(new (std::nothrow) std::byte[kCapacity]);
    return copies_ != nullptr;
  }

  // Returns the connection whose writes are being corked, or nullptr.
  Connection* owner() const { return owner_; }
  // Begins for `owner`; bytes inside `arrived` need not be copied.
  void begin(Connection* owner, Bytes arrived) {
    SPATE_ASSERT(owner_ == nullptr && empty());
    owner_ = owner;
    arrived_ = arrived;
  }
  void end() {
    SPATE_ASSERT(empty());
    owner_ = nullptr;
  }

  // Adds bytes. False if there are too many: the corked bytes must be sent first, then these.
  bool add(Bytes bytes) { return add_in_place(bytes) || add_behind(bytes); }
  // Adds bytes inside the receive buffer, if they are the first.
  bool add_in_place(Bytes bytes) {
    if (!empty() || !has_arrived(bytes)) return false;
    first_ = bytes.data();
    size_ = bytes.size();
    return true;
  }
  // Adds all others.
  bool add_behind(Bytes bytes) {
    if (empty()) first_ = copies_.get();
    const bool is_in_place = first_ != copies_.get();
    if (is_in_place && behind_ == 0 && has_arrived(bytes) && first_ + size_ == bytes.data()) {
      size_ += bytes.size();
      return true;
    }
    std::size_t& copied = is_in_place ? behind_ : size_;
    if (bytes.size() > kLargestCopied || bytes.size() > kCapacity - copied) return false;
    std::byte* const to = copies_.get() + copied;
    copied += bytes.size();
    std::memcpy(to, bytes.data(), bytes.size());
    return true;
  }

  // Drops the bytes when its owner is closed: they must not be sent to another connection.
  void drop() { size_ = behind_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_ + behind_; }
  // Return the corked bytes, in one piece or two; valid until the next add().
  bool is_one_piece() const { return behind_ == 0; }
  Bytes take_one() { return {first_, std::exchange(size_, 0)}; }
  std::size_t take(std::span<Bytes, 2> pieces) {
    std::size_t count = 0;
    if (size_ != 0) pieces[count++] = Bytes(first_, size_);
    if (behind_ != 0) pieces[count++] = Bytes(copies_.get(), behind_);
    drop();
    return count;
  }

 private:
  bool has_arrived(Bytes bytes) const {
    return bytes.data() >= arrived_.data() &&
           bytes.data() + bytes.size() <= arrived_.data() + arrived_.size();
  }

  Connection* owner_ = nullptr;
  Bytes arrived_;
  // A piece in the receive buffer, or the copies.
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  std::size_t behind_ = 0;  // Copies after a piece in place.
  std::unique_ptr<std::byte[]> copies_;
};

}  // namespace spate
