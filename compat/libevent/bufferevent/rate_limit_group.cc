#include "compat/libevent/bufferevent/rate_limit_group.h"

#include <algorithm>
#include <new>

#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr ev_ssize_t kLeastShare = 64;

RateLimit& limit_of(Connection& connection) { return *connection.rate_limit; }

bool try_lock(void* lock) { return lock == nullptr || threads.locks.lock(EVTHREAD_TRY, lock) == 0; }

}  // namespace

bufferevent_rate_limit_group::bufferevent_rate_limit_group(event_base* base,
                                                           const ev_token_bucket_cfg& rates)
    : base_(base), rates_(rates), wanted_least_share_(kLeastShare), lock_(make_lock()) {
  bucket_.begin(rates_, tick_now(rates_, base_));
  set_least_share(kLeastShare);
  event_assign(&next_tick_, base, -1, EV_PERSIST, on_tick, this);
}

bufferevent_rate_limit_group::~bufferevent_rate_limit_group() {
  while (members_ != nullptr) {
    const Keep keep(members_);
    remove(*members_);
  }
  event_del(&next_tick_);
  event_debug_unassign(&next_tick_);
  free_lock(lock_);
}

bool bufferevent_rate_limit_group::begin() { return event_add(&next_tick_, &rates_.tick) == 0; }

void bufferevent_rate_limit_group::set_rates(const ev_token_bucket_cfg& rates) {
  const Holding holding(lock_);
  const bool has_other_tick = rates.tick_millis != rates_.tick_millis;
  rates_ = rates;
  bucket_.change(rates_, tick_now(rates_, base_));
  least_share_ = std::min({wanted_least_share_, rates_.read.per_tick, rates_.write.per_tick});
  if (has_other_tick) event_add(&next_tick_, &rates_.tick);
}

void bufferevent_rate_limit_group::set_least_share(std::size_t share) {
  const Holding holding(lock_);
  wanted_least_share_ = static_cast<ev_ssize_t>(std::min<std::size_t>(share, EV_SSIZE_MAX));
  least_share_ = std::min({wanted_least_share_, rates_.read.per_tick, rates_.write.per_tick});
}

// ---- members

void bufferevent_rate_limit_group::add(Connection& connection) {
  const Holding holding(lock_);
  RateLimit& limit = limit_of(connection);
  limit.group = this;
  limit.next_member = members_;
  limit.previous_member = &members_;
  if (members_ != nullptr) limit_of(*members_).previous_member = &limit.next_member;
  members_ = &connection;
  ++count_;
  if (reading_rests_) connection.rest_reading(kRestGroup);
  if (writing_rests_) connection.rest_writing(kRestGroup);
}

void bufferevent_rate_limit_group::remove(Connection& connection) {
  {
    const Holding holding(lock_);
    RateLimit& limit = limit_of(connection);
    *limit.previous_member = limit.next_member;
    if (limit.next_member != nullptr) {
      limit_of(*limit.next_member).previous_member = limit.previous_member;
    }
    limit.group = nullptr;
    --count_;
  }
  if (connection.is_finalized) return;
  connection.resume_reading(kRestGroup);
  connection.resume_writing(kRestGroup);
}

// False if one was in use.
template <class Change>
bool bufferevent_rate_limit_group::change_members(const Change& change) {
  bool has_all = true;
  for (Connection* member = members_; member != nullptr; member = limit_of(*member).next_member) {
    if (!try_lock(member->lock)) {
      has_all = false;
      continue;
    }
    change(*member);
    give_back(member->lock);
  }
  return has_all;
}

// ---- levels

ev_ssize_t bufferevent_rate_limit_group::share_of(ev_ssize_t level) const {
  return std::max(level / std::max(count_, 1), least_share_);
}

ev_ssize_t bufferevent_rate_limit_group::read_share(Connection& connection) {
  const Holding holding(lock_);
  if (!reading_rests_) return share_of(bucket_.read);
  connection.rest_reading(kRestGroup);
  return 0;
}

ev_ssize_t bufferevent_rate_limit_group::write_share(Connection& connection) {
  const Holding holding(lock_);
  if (!writing_rests_) return share_of(bucket_.write);
  connection.rest_writing(kRestGroup);
  return 0;
}

void bufferevent_rate_limit_group::heed_read_level() {
  if (bucket_.read <= 0 && !reading_rests_) {
    reading_rests_ = true;
    some_still_rest_reading_ = false;
    change_members([](Connection& member) { member.rest_reading(kRestGroup); });
  } else if (bucket_.read > 0 && (reading_rests_ || some_still_rest_reading_)) {
    reading_rests_ = false;
    some_still_rest_reading_ =
        !change_members([](Connection& member) { member.resume_reading(kRestGroup); });
  }
}

void bufferevent_rate_limit_group::heed_write_level() {
  if (bucket_.write <= 0 && !writing_rests_) {
    writing_rests_ = true;
    some_still_rest_writing_ = false;
    change_members([](Connection& member) { member.rest_writing(kRestGroup); });
  } else if (bucket_.write > 0 && (writing_rests_ || some_still_rest_writing_)) {
    writing_rests_ = false;
    some_still_rest_writing_ =
        !change_members([](Connection& member) { member.resume_writing(kRestGroup); });
  }
}

void bufferevent_rate_limit_group::on_tick(evutil_socket_t, short, void* argument) {
  auto& group = *static_cast<bufferevent_rate_limit_group*>(argument);
  const Holding holding(group.lock_);
  group.bucket_.fill(group.rates_, tick_now(group.rates_, group.base_));
  // After a rest there is to be enough for a share.
  if (!group.reading_rests_ || group.bucket_.read >= group.least_share_) group.heed_read_level();
  if (!group.writing_rests_ || group.bucket_.write >= group.least_share_) group.heed_write_level();
}

void bufferevent_rate_limit_group::take_read(ev_ssize_t count) {
  const Holding holding(lock_);
  bucket_.read -= count;
  heed_read_level();
}

void bufferevent_rate_limit_group::take_written(ev_ssize_t count) {
  const Holding holding(lock_);
  bucket_.write -= count;
  heed_write_level();
}

void bufferevent_rate_limit_group::note_read(std::size_t count) {
  const Holding holding(lock_);
  total_read_ += count;
  take_read(static_cast<ev_ssize_t>(count));
}

void bufferevent_rate_limit_group::note_written(std::size_t count) {
  const Holding holding(lock_);
  total_written_ += count;
  take_written(static_cast<ev_ssize_t>(count));
}

ev_ssize_t bufferevent_rate_limit_group::read_level() {
  const Holding holding(lock_);
  return bucket_.read;
}

ev_ssize_t bufferevent_rate_limit_group::write_level() {
  const Holding holding(lock_);
  return bucket_.write;
}

void bufferevent_rate_limit_group::totals(ev_uint64_t* read, ev_uint64_t* written) {
  const Holding holding(lock_);
  if (read != nullptr) *read = total_read_;
  if (written != nullptr) *written = total_written_;
}

void bufferevent_rate_limit_group::reset_totals() {
  const Holding holding(lock_);
  total_read_ = total_written_ = 0;
}

// ---- the exported functions

bufferevent_rate_limit_group* bufferevent_rate_limit_group_new(event_base* base,
                                                               const ev_token_bucket_cfg* rates) {
  void* memory = allocate(sizeof(bufferevent_rate_limit_group));
  if (memory == nullptr) return nullptr;
  auto* group = new (memory) bufferevent_rate_limit_group(base, *rates);
  if (group->begin()) return group;
  bufferevent_rate_limit_group_free(group);
  return nullptr;
}

void bufferevent_rate_limit_group_free(bufferevent_rate_limit_group* group) {
  group->~bufferevent_rate_limit_group();
  release(group);
}

int bufferevent_rate_limit_group_set_cfg(bufferevent_rate_limit_group* group,
                                         const ev_token_bucket_cfg* rates) {
  if (group == nullptr || rates == nullptr) return -1;
  group->set_rates(*rates);
  return 0;
}

int bufferevent_rate_limit_group_set_min_share(bufferevent_rate_limit_group* group, size_t share) {
  group->set_least_share(share);
  return 0;
}

ev_ssize_t bufferevent_rate_limit_group_get_read_limit(bufferevent_rate_limit_group* group) {
  return group->read_level();
}

ev_ssize_t bufferevent_rate_limit_group_get_write_limit(bufferevent_rate_limit_group* group) {
  return group->write_level();
}

int bufferevent_rate_limit_group_decrement_read(bufferevent_rate_limit_group* group,
                                                ev_ssize_t count) {
  group->take_read(count);
  return 0;
}

int bufferevent_rate_limit_group_decrement_write(bufferevent_rate_limit_group* group,
                                                 ev_ssize_t count) {
  group->take_written(count);
  return 0;
}

void bufferevent_rate_limit_group_get_totals(bufferevent_rate_limit_group* group, ev_uint64_t* read,
                                             ev_uint64_t* written) {
  group->totals(read, written);
}

void bufferevent_rate_limit_group_reset_totals(bufferevent_rate_limit_group* group) {
  group->reset_totals();
}
