#include "http/server/outgoing_response.h"

#include <algorithm>

namespace spate::http {

// The rest is set by await() and frame().
void OutgoingResponse::clear() {
  left_ = sent_ = taken_ = 0;
  status_ = {};
  stage_ = Stage::none;
  is_sized_ = false;
}

void OutgoingResponse::begin(Status status, std::optional<std::uint64_t> size, Nanos now) {
  status_ = status;
  stage_ = Stage::begun;
  last_progress_ = now;
  expect(size);
}

void OutgoingResponse::expect(std::optional<std::uint64_t> size) {
  is_sized_ = size.has_value();
  left_ = size.value_or(0);
}

void OutgoingResponse::note_upgrade(Status status) {
  status_ = status;
  stage_ = Stage::ended;
}

bool OutgoingResponse::has_stalled(std::uint64_t queued, Nanos timeout, Nanos now) {
  const std::uint64_t taken = sent_ - std::min(queued, sent_);
  if (queued == 0 || taken != taken_) {
    taken_ = taken;
    last_progress_ = now;
  }
  return timeout > Nanos{0} && now - last_progress_ >= timeout;
}

}  // namespace spate::http
