// Channel: the model of one direction of a connection: which bytes were accepted from its writer,
// in which order, and how far its reader is.
//
// Every channel has a unique pattern, so that each byte shows its source and its position. Bytes
// forwarded from another channel (an echo) keep that channel's pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "spate/net/bytes.h"
#include "spate/time.h"

namespace spate::chaos {

// The transport between the two ends.
enum class Kind : std::uint8_t { memory, local, tcp, pipe };
inline constexpr int kKinds = 4;
inline constexpr const char* kKindNames[kKinds] = {"memory", "local", "tcp", "pipe"};

// Returns `size` bytes, a megabyte at most, of pattern `number` from `offset` on.
Bytes pattern(unsigned number, std::size_t offset, std::size_t size);

class Channel {
 public:
  Channel(unsigned number, Kind kind) : number_(number), kind_(kind) {}

  unsigned number() const { return number_; }
  Kind kind() const { return kind_; }

  // ---- writing

  // Returns the next bytes of this channel's pattern.
  Bytes next(std::size_t size) const { return pattern(number_, own_, size); }
  // Records that the writer's `size` next bytes were accepted.
  void accept_own(std::size_t size) {
    accept(number_, own_, size);
    own_ += size;
  }
  void accept(unsigned number, std::size_t offset, std::size_t size);
  // Records that `size` bytes that `other` carries from `at` on were accepted here too.
  void accept_from(Channel& other, std::size_t at, std::size_t size);
  std::size_t accepted() {
    pull();
    return accepted_;
  }
  // From here on `source` writes to it: the bytes that `source` accepts from `at` on.
  void follow(Channel& source, std::size_t at);
  // True if its bytes were accepted by another channel first.
  bool is_following() const { return source_ != nullptr; }
  // These bytes were refused: none of them may be seen, unless memory ran out.
  void refuse(Bytes bytes, bool for_want_of_memory) {
    refused_.assign(bytes.begin(), bytes.end());
    refused_at_ = accepted();
    may_show_refused_ = for_want_of_memory;
  }

  // ---- reading

  // True if `bytes` are the first of it.
  bool begins_with(Bytes bytes);
  // Fails unless `bytes` match those expected at `at`.
  void verify(std::size_t at, Bytes bytes, const char* who);
  // Records that the reader has seen everything up to `end`.
  void show(std::size_t end, Nanos now);
  std::size_t shown() const { return shown_; }
  bool is_whole() { return shown_ == accepted(); }

  // ---- loss

  bool is_lossy() const { return loss_ != nullptr || (source_ != nullptr && source_->is_lossy()); }
  const char* loss() const {
    return loss_ != nullptr ? loss_ : source_ != nullptr ? source_->loss() : "nothing";
  }
  void lose(const char* why) {
    if (loss_ == nullptr) loss_ = why;
  }
  Nanos last_progress{0};
  Nanos left_alone_at{0};  // When its writer was closed or destroyed.

  // ---- descriptors, each with the offset of the byte that carries it

  struct Sent {
    std::size_t at;
    std::vector<std::uint64_t> files;  // Their inodes.
    unsigned taker;                    // The reader's End::takes_descriptors_ at that time.
  };
  std::deque<Sent> descriptors;

 private:
  struct Segment {
    std::size_t at;  // Where it begins here.
    unsigned number;
    std::size_t offset;
  };
  void pull();
  // Returns the channel, this one or one that it follows, that refused a write that has these bytes
  // at `at`, or nullptr.
  const Channel* refuser_of(std::size_t at, Bytes bytes) const;
  // Returns true, and is lossy from now on, if a part of a refused write may be what stands at
  // `at`.
  bool shows_refused(std::size_t at, Bytes bytes, const char* who);
  // Returns how many bytes were not accepted by the channel that it follows.
  std::size_t own_part() const { return accepted_ - (source_to_ - source_from_); }
  std::size_t segment_of(std::size_t at) const;
  std::size_t end_of(std::size_t segment) const {
    return segment + 1 < segments_.size() ? segments_[segment + 1].at : accepted_;
  }

  unsigned number_;
  Kind kind_;
  std::vector<Segment> segments_;
  std::size_t own_ = 0;
  std::size_t accepted_ = 0;
  std::size_t shown_ = 0;
  std::vector<std::byte> refused_;  // The last refused write.
  std::size_t refused_at_ = 0;      // How many bytes had been accepted before.
  bool may_show_refused_ = false;
  const char* loss_ = nullptr;
  Channel* source_ = nullptr;    // The channel whose bytes are forwarded here: ...
  std::size_t source_from_ = 0;  // ... from this position on, ...
  std::size_t source_to_ = 0;    // ... and accepted up to this one.
};

}  // namespace spate::chaos
