// Throttle: the rate limits of one connection: its own buckets, and those of its group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/net/rate_limit.h"

namespace spate {

class Connection;

class Throttle {
 public:
  enum Direction : std::uint8_t { kRead, kWrite };

  // `owner` is notified when its group changes; may be nullptr.
  explicit Throttle(Connection* owner = nullptr) : owner_(owner) {}
  ~Throttle() { join(nullptr); }
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

  void set_limits(const RateLimits& limits);
  // Joins a group, or leaves it (nullptr).
  void join(RateGroup* group);
  bool has_limits() const;

  // Returns how many bytes may move now. If none, wait until opens_at().
  std::size_t allowance(Direction direction, std::int64_t now);
  std::int64_t opens_at(Direction direction) const { return sides_[direction].opens_at; }
  void used(Direction direction, std::size_t count);

 private:
  friend class RateGroup;

  struct Side {
    RateBucket own;
    std::size_t credit = 0;     // Tokens that were taken and not used.
    std::int64_t opens_at = 0;  // When they may be used.
  };

  void give_back_credit();
  void notify_owner();
  RateBucket* shared(Direction direction) const;
  std::size_t portion(Direction direction) const;

  void leave();

  Connection* owner_;
  Side sides_[2];
  RateGroup* group_ = nullptr;
  Throttle* next_ = nullptr;  // Links of the group's list.
  Throttle* previous_ = nullptr;
};

}  // namespace spate
