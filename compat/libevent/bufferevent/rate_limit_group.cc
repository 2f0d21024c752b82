#include "compat/libevent/bufferevent/rate_limit_group.h"

#include <algorithm>
#include <new>

#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr ev_ssize_t kLeastShare = 64;

RateLimit& limit_of(Connection& connection) { return *connection.extras().rate_limit; }

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

void bufferevent_rate_limit_group::set_least_share(ev_ssize_t share) {
  const Holding holding(lock_);
  wanted_least_share_ = share;
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
  if (reading_.rests) connection.rest_reading(kRestGroup);
  if (writing_.rests) connection.rest_writing(kRestGroup);
}

void bufferevent_rate_limit_group::remove(Connection& connection) {
  {
    const Holding holding(lock_);
    RateLimit& limit = limit_of(connection);
    if (reading_.first == &connection) reading_.first = limit.next_member;
    if (writing_.first == &connection) writing_.first = limit.next_member;
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

// Returns false if a member was in use. The first members of a walk get everything if there is too
// little for all. So each walk begins after the member that moved bytes last.
bool bufferevent_rate_limit_group::change_members(const State& state,
                                                  void (Connection::*change)(Rest why)) {
  bool has_all = true;
  Connection* member = state.first;
  for (int left = count_; left > 0; --left) {
    if (member == nullptr) member = members_;
    if (member == nullptr) break;  // All have left meanwhile.
    if (try_lock(member->lock())) {
      (member->*change)(kRestGroup);
      give_back(member->lock());
    } else {
      has_all = false;
    }
    member = limit_of(*member).next_member;
  }
  return has_all;
}

// ---- levels

ev_ssize_t bufferevent_rate_limit_group::share_of(ev_ssize_t level) const {
  return std::max(level / std::max(count_, 1), least_share_);
}

ev_ssize_t bufferevent_rate_limit_group::share(Connection& connection, const Flow& flow) {
  const Holding holding(lock_);
  if (!state_of(flow).rests) return share_of(bucket_.*flow.level);
  (connection.*flow.rest)(kRestGroup);
  return 0;
}

void bufferevent_rate_limit_group::heed_level(const Flow& flow) {
  State& state = state_of(flow);
  const bool is_empty = bucket_.*flow.level <= 0;
  if (is_empty && !state.rests) {
    state.rests = true;
    state.some_still_rest = false;
    change_members(state, flow.rest);
  } else if (!is_empty && (state.rests || state.some_still_rest)) {
    state.rests = false;
    state.some_still_rest = !change_members(state, flow.resume);
  }
}

// After a suspension, resumes only when the bucket holds a full share.
void bufferevent_rate_limit_group::heed_filled(const Flow& flow) {
  if (!state_of(flow).rests || bucket_.*flow.level >= least_share_) heed_level(flow);
}

void bufferevent_rate_limit_group::on_tick(evutil_socket_t, short, void* argument) {
  auto& group = *static_cast<bufferevent_rate_limit_group*>(argument);
  const Holding holding(group.lock_);
  group.bucket_.fill(group.rates_, tick_now(group.rates_, group.base_));
  group.heed_filled(kReading);
  group.heed_filled(kWriting);
}

void bufferevent_rate_limit_group::take(const Flow& flow, ev_ssize_t count) {
  const Holding holding(lock_);
  bucket_.*flow.level -= count;
  heed_level(flow);
}

void bufferevent_rate_limit_group::note_moved(Connection& connection, const Flow& flow,
                                              std::size_t count) {
  const Holding holding(lock_);
  State& state = state_of(flow);
  state.total += count;
  state.first = limit_of(connection).next_member;
  take(flow, static_cast<ev_ssize_t>(count));
}

ev_ssize_t bufferevent_rate_limit_group::level(const Flow& flow) {
  const Holding holding(lock_);
  return bucket_.*flow.level;
}

void bufferevent_rate_limit_group::totals(ev_uint64_t* read, ev_uint64_t* written) {
  const Holding holding(lock_);
  if (read != nullptr) *read = reading_.total;
  if (written != nullptr) *written = writing_.total;
}

void bufferevent_rate_limit_group::reset_totals() {
  const Holding holding(lock_);
  reading_.total = writing_.total = 0;
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
  if (share > EV_SSIZE_MAX) return -1;
  group->set_least_share(static_cast<ev_ssize_t>(share));
  return 0;
}

ev_ssize_t bufferevent_rate_limit_group_get_read_limit(bufferevent_rate_limit_group* group) {
  return group->level(kReading);
}

ev_ssize_t bufferevent_rate_limit_group_get_write_limit(bufferevent_rate_limit_group* group) {
  return group->level(kWriting);
}

int bufferevent_rate_limit_group_decrement_read(bufferevent_rate_limit_group* group,
                                                ev_ssize_t count) {
  group->take(kReading, count);
  return 0;
}

int bufferevent_rate_limit_group_decrement_write(bufferevent_rate_limit_group* group,
                                                 ev_ssize_t count) {
  group->take(kWriting, count);
  return 0;
}

void bufferevent_rate_limit_group_get_totals(bufferevent_rate_limit_group* group, ev_uint64_t* read,
                                             ev_uint64_t* written) {
  group->totals(read, written);
}

void bufferevent_rate_limit_group_reset_totals(bufferevent_rate_limit_group* group) {
  group->reset_totals();
}
