// Rate limits: how fast a Stream reads and sends, alone and together with others.
//
// Each direction has a bucket of tokens, one a byte, which fills at the rate up to the burst. A
// Stream moves bytes while there are tokens, and rests otherwise: it is not read, so that TCP slows
// the peer down, or what it writes stays in its queue.
// Threads: the loop's thread only; a group's members are all of one loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/export.h"

namespace spate {

class Throttle;

struct Rate {
  std::uint64_t bytes_per_second = 0;  // 0 is no limit.
  std::size_t burst = 0;               // Bytes that may move at once after a rest. 0: what the rate
                                       // gives in a tenth of a second.

  bool operator==(const Rate&) const = default;
};

struct RateLimits {
  Rate read;
  Rate write;

  bool operator==(const RateLimits&) const = default;
};

// One direction's tokens. Who finds none reserves some, and is told when they will be there: those
// who wait are served in their order, each a little.
class SPATE_EXPORT RateBucket {
 public:
  void set(const Rate& rate);
  bool is_limited() const { return rate_ != 0; }
  // How much a Stream takes at a time: an eighth of the burst.
  std::size_t portion() const { return portion_; }
  // Takes `count` tokens. Returns the loop time, in nanoseconds, at which they may be used.
  std::int64_t take(std::size_t count, std::int64_t now);
  void give_back(std::size_t count);

 private:
  std::int64_t time_of(std::uint64_t count) const;

  std::uint64_t rate_ = 0;  // Tokens a second.
  std::int64_t full_ = 0;   // How long an empty bucket takes to fill, in nanoseconds.
  // The loop time at which it was empty; to come, if more is promised. At first long ago: full.
  std::int64_t empty_at_ = -(std::int64_t{1} << 62);
  std::size_t portion_ = 0;
};

// Streams that share one rate (Stream::join()). Ownership: yours, not movable; Streams that are in
// it when it is destroyed go on without it.
class SPATE_EXPORT RateGroup {
 public:
  explicit RateGroup(const RateLimits& limits);
  ~RateGroup();
  RateGroup(const RateGroup&) = delete;
  RateGroup& operator=(const RateGroup&) = delete;

  // At once: members that rest try again under the new limits.
  void set_limits(const RateLimits& limits);
  // How many Streams are in it.
  std::size_t members() const { return members_; }

 private:
  friend class Throttle;

  RateBucket buckets_[2];  // As Throttle's directions.
  Throttle* first_ = nullptr;
  std::size_t members_ = 0;
};

}  // namespace spate
