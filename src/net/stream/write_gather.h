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
  bool add(Bytes bytes) {
    if (copied_ == 0 && has_arrived(bytes) && continues(bytes)) {
      in_place_ = Bytes(in_place_.empty() ? bytes.data() : in_place_.data(),
                        in_place_.size() + bytes.size());
      return true;
    }
    return copy(bytes);
  }

  // Its owner's connection is over: the bytes must not reach another one.
  void drop() {
    in_place_ = {};
    copied_ = 0;
  }
  bool empty() const { return in_place_.empty() && copied_ == 0; }
  std::size_t size() const { return in_place_.size() + copied_; }
  bool has_copies() const { return copied_ != 0; }
  // All of it, if nothing was copied.
  Bytes take_in_place() { return std::exchange(in_place_, Bytes()); }
  // What has been gathered, in two pieces. They stay until the next add().
  std::size_t take(std::span<Bytes, 2> pieces) {
    std::size_t count = 0;
    if (!in_place_.empty()) pieces[count++] = in_place_;
    if (copied_ != 0) pieces[count++] = Bytes(copies_.get(), copied_);
    drop();
    return count;
  }

 private:
  bool has_arrived(Bytes bytes) const {
    return bytes.data() >= arrived_.data() &&
           bytes.data() + bytes.size() <= arrived_.data() + arrived_.size();
  }
  bool continues(Bytes bytes) const {
    return in_place_.empty() || in_place_.data() + in_place_.size() == bytes.data();
  }

  [[gnu::noinline]] bool copy(Bytes bytes) {
    if (bytes.size() > kLargestCopied || bytes.size() > kCapacity - copied_) return false;
    std::memcpy(copies_.get() + copied_, bytes.data(), bytes.size());
    copied_ += bytes.size();
    return true;
  }

  Connection* owner_ = nullptr;
  Bytes arrived_;
  Bytes in_place_;
  std::unique_ptr<std::byte[]> copies_;
  std::size_t copied_ = 0;
};

}  // namespace spate
