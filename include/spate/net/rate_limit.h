// Rate limits: how fast a Stream, or a group of Streams, reads and sends.
//
// Each direction has a token bucket, one token per byte, which fills at the rate up to the burst. A
// Stream without tokens waits: it is not read, so that TCP slows the peer down, or its output stays
// queued.
// Threads: the loop's thread only; all members of a group belong to one loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/export.h"

namespace spate {

class Throttle;

struct Rate {
  std::uint64_t bytes_per_second = 0;  // No limit: 0, and more than 8,000,000,000.
  std::size_t burst = 0;               // Bytes, at most 1 GiB. 0: a tenth of a second's worth.

  bool operator==(const Rate&) const = default;
};

struct RateLimits {
  Rate read{};
  Rate write{};

  bool operator==(const RateLimits&) const = default;
};

// The token bucket of one direction. Tokens are reserved ahead of time, so Streams that wait are
// served in order, a portion each.
class SPATE_EXPORT RateBucket {
 public:
  void set(const Rate& rate);
  bool is_limited() const { return rate_ != 0; }
  // Returns how many tokens to take at a time: an eighth of the burst, at most 64 KiB.
  std::size_t portion() const { return portion_; }
  // Takes `count` tokens. Returns the loop time, in nanoseconds, at which they may be used.
  std::int64_t take(std::size_t count, std::int64_t now);
  void give_back(std::size_t count);

 private:
  std::int64_t time_of(std::uint64_t count) const;

  std::uint64_t rate_ = 0;  // Tokens a second.
  std::int64_t full_ = 0;   // How long an empty bucket takes to fill, in nanoseconds.
  // The loop time at which the bucket was, or will be, empty. Initially long ago: full.
  std::int64_t empty_at_ = -(std::int64_t{1} << 62);
  std::size_t portion_ = 0;
};

// Streams that share one limit (Stream::join()). Ownership: the caller's; not movable. Destroying
// it removes its members.
class SPATE_EXPORT RateGroup {
 public:
  explicit RateGroup(const RateLimits& limits);
  ~RateGroup();
  RateGroup(const RateGroup&) = delete;
  RateGroup& operator=(const RateGroup&) = delete;

  // Replaces the limits. Takes effect at once, also for members that wait.
  void set_limits(const RateLimits& limits);
  std::size_t members() const { return members_; }

 private:
  friend class Throttle;

  RateBucket buckets_[2];  // Indexed by Throttle's directions.
  Throttle* first_ = nullptr;
  std::size_t members_ = 0;
};

}  // namespace spate
