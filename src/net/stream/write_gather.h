// WriteGather: what a connection writes while a callback of its own runs. It is sent in one call
// when the callback returns, or before that callback runs the loop: so there is one callback at a
// time whose writes are gathered.
//
// Small pieces are copied. Bytes that lie where they have arrived are not: an echo is sent from
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

  // The connection whose writes are being gathered, or nullptr.
  Connection* owner() const { return owner_; }
  // From here on, `owner`'s; `arrived` is where bytes may stay until the end.
  void begin(Connection* owner, Bytes arrived) {
    SPATE_ASSERT(owner_ == nullptr && empty());
    owner_ = owner;
    arrived_ = arrived;
  }
  void end() {
    SPATE_ASSERT(empty());
    owner_ = nullptr;
  }

  // False if they are too many: what is gathered has to be sent first, and these behind it.
  bool add(Bytes bytes) { return add_in_place(bytes) || add_behind(bytes); }
  // Those that have arrived, if they are the first.
  bool add_in_place(Bytes bytes) {
    if (!empty() || !has_arrived(bytes)) return false;
    first_ = bytes.data();
    size_ = bytes.size();
    return true;
  }
  // All others.
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

  // Its owner's connection is over: the bytes must not reach another one.
  void drop() { size_ = behind_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_ + behind_; }
  // What has been gathered, in one piece or two. They stay until the next add().
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
  // A piece that lies where it has arrived, or the copies.
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  std::size_t behind_ = 0;  // Copies behind a piece in place.
  std::unique_ptr<std::byte[]> copies_;
};

}  // namespace spate
