// The deadlines of a RequestPipe's requests. One timer is started for the earliest; it is not
// changed when a request has its response, and looks through the requests when it expires.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "net/reconnect/pipe_state.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

// The requests are looked through at most once in this time, so that a million deadlines do not
// cost a million rounds.
constexpr Nanos kBetweenRounds = std::chrono::milliseconds(1);

}  // namespace

void PipeState::arm(Nanos deadline) {
  if (deadlines_.is_active() && deadlines_.deadline() <= deadline) return;
  if (!deadlines_.start(std::max(deadline - loop_->now(), Nanos{0}))) deadlines_.feed();
}

void PipeState::on_deadlines() {
  const Nanos now = loop_->now();
  Nanos next = kForever;
  const bool is_dead = expire_sent(now, next);
  expire_waiting(now, next);
  if (is_dead) break_off(Error::deadline);
  if (next < kForever) arm(std::max(next, now + kBetweenRounds));
}

// Returns true if the connection is dead. An expired entry stays in its place without a callback,
// because the response may still arrive.
bool PipeState::expire_sent(Nanos now, Nanos& next) {
  bool is_dead = false;
  for (std::size_t left = sent_.size(); left > 0; --left) {
    PipeEntry* entry = sent_.pop();
    if (entry->deadline <= now && !expire_one(*entry, is_dead)) continue;
    next = std::min(next, entry->deadline);
    sent_.push(*entry);
  }
  return is_dead;
}

// Returns false if the entry itself moved to the failed ones, since the connection will end.
bool PipeState::expire_one(PipeEntry& entry, bool& is_dead) {
  PipeEntry* failed = nullptr;
  const bool is_stuck = entry.is_setup || entry.arrivals == arrivals_;
  if (!is_stuck && !is_dead) failed = take_entry();
  if (failed == nullptr) {
    is_dead = true;
    fail(entry, Error::deadline);
    return false;
  }
  --live_;  // Two entries of one request.
  failed->callback = std::exchange(entry.callback, nullptr);
  failed->handle = std::exchange(entry.handle, nullptr);
  if (failed->handle != nullptr) failed->handle->entry_ = failed;
  fail(*failed, Error::deadline);
  entry.deadline = kForever;
  entry.repeats = 0;
  return true;
}

void PipeState::expire_waiting(Nanos now, Nanos& next) {
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    PipeEntry* entry = waiting_.pop();
    if (entry->deadline <= now) {
      waiting_bytes_ -= entry->bytes.size();
      fail(*entry, Error::deadline);
      continue;
    }
    next = std::min(next, entry->deadline);
    waiting_.push(*entry);
  }
}

}  // namespace spate
