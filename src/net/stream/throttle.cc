#include "net/stream/throttle.h"

#include <algorithm>

#include "net/stream/connection.h"

namespace spate {

namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;  // Per second.
// The size of one read.
constexpr std::size_t kLargestPortion = 64 * 1024;
// Faster rates are unlimited: a nanosecond would be more than eight bytes.
constexpr std::uint64_t kFastest = 8 * kNanoseconds;

}  // namespace

// ---- RateBucket

void RateBucket::set(const Rate& rate) {
  rate_ = rate.bytes_per_second > kFastest ? 0 : rate.bytes_per_second;
  if (rate_ == 0) return;
  const std::uint64_t tenth = std::max<std::uint64_t>(rate_ / 10, 1);
  const std::uint64_t burst =
      std::min<std::uint64_t>(rate.burst == 0 ? tenth : rate.burst, 1u << 30);
  portion_ = std::clamp<std::size_t>(burst / 8, 1, kLargestPortion);
  full_ = time_of(burst);
}

std::int64_t RateBucket::time_of(std::uint64_t count) const {
  return static_cast<std::int64_t>(count * kNanoseconds / rate_);
}

// The bucket is stored as the time at which it has produced all tokens that were taken, so nothing
// has to refill it. For a full bucket that is `full_` ago: an older time allows a larger burst.
std::int64_t RateBucket::take(std::size_t count, std::int64_t now) {
  empty_at_ = std::max(empty_at_, now - full_) + time_of(count);
  return empty_at_;
}

void RateBucket::give_back(std::size_t count) {
  if (rate_ != 0) empty_at_ -= time_of(count);
}

// ---- RateGroup

RateGroup::RateGroup(const RateLimits& limits) { set_limits(limits); }

// Members that wait for the group continue.
RateGroup::~RateGroup() {
  while (Throttle* member = first_) {
    member->leave();
    member->notify_owner();
  }
}

// Returns the members' unused tokens first, which were counted by the old rates.
void RateGroup::set_limits(const RateLimits& limits) {
  for (Throttle* member = first_; member != nullptr; member = member->next_)
    member->give_back_credit();
  buckets_[Throttle::kRead].set(limits.read);
  buckets_[Throttle::kWrite].set(limits.write);
  for (Throttle* member = first_; member != nullptr; member = member->next_) member->notify_owner();
}

// ---- Throttle

void Throttle::set_limits(const RateLimits& limits) {
  give_back_credit();
  sides_[kRead] = {};
  sides_[kWrite] = {};
  sides_[kRead].own.set(limits.read);
  sides_[kWrite].own.set(limits.write);
}

// Returns tokens that were taken and not used.
void Throttle::give_back_credit() {
  for (const Direction direction : {kRead, kWrite}) {
    Side& side = sides_[direction];
    if (RateBucket* shared = this->shared(direction)) shared->give_back(side.credit);
    side.own.give_back(side.credit);
    side.credit = 0;
  }
}

// May destroy this.
void Throttle::notify_owner() {
  if (owner_ != nullptr) owner_->on_throttle_changed();
}

void Throttle::leave() {
  if (group_ == nullptr) return;
  give_back_credit();
  (previous_ == nullptr ? group_->first_ : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  --group_->members_;
  group_ = nullptr;
  previous_ = nullptr;
  next_ = nullptr;
}

void Throttle::join(RateGroup* group) {
  leave();
  if (group == nullptr) return;
  give_back_credit();
  group_ = group;
  next_ = group->first_;
  if (next_ != nullptr) next_->previous_ = this;
  group->first_ = this;
  ++group->members_;
}

bool Throttle::has_limits() const {
  return group_ != nullptr || sides_[kRead].own.is_limited() || sides_[kWrite].own.is_limited();
}

RateBucket* Throttle::shared(Direction direction) const {
  return group_ == nullptr ? nullptr : &group_->buckets_[direction];
}

// Returns 0 if this direction is not limited.
std::size_t Throttle::portion(Direction direction) const {
  const RateBucket& own = sides_[direction].own;
  const RateBucket* shared = this->shared(direction);
  const std::size_t ours = own.is_limited() ? own.portion() : 0;
  const std::size_t theirs = shared != nullptr && shared->is_limited() ? shared->portion() : 0;
  return ours == 0 || theirs == 0 ? std::max(ours, theirs) : std::min(ours, theirs);
}

std::size_t Throttle::allowance(Direction direction, std::int64_t now) {
  Side& side = sides_[direction];
  if (side.credit == 0) {
    side.credit = portion(direction);
    side.opens_at = 0;
    if (side.credit == 0) return SIZE_MAX;
    if (side.own.is_limited()) side.opens_at = side.own.take(side.credit, now);
    RateBucket* shared = this->shared(direction);
    if (shared != nullptr && shared->is_limited())
      side.opens_at = std::max(side.opens_at, shared->take(side.credit, now));
  }
  return now >= side.opens_at ? side.credit : 0;
}

void Throttle::used(Direction direction, std::size_t count) {
  Side& side = sides_[direction];
  side.credit -= std::min(side.credit, count);
}

}  // namespace spate
