#include "http/server/incoming_body.h"

#include <algorithm>
#include <utility>

namespace spate::http {

namespace {

// The rate is not checked before.
constexpr Nanos kRateGrace{10'000'000'000};
// Up to this much of an unwanted body is read so that the connection can be used again.
constexpr std::uint64_t kMostDiscarded = 256 * 1024;

}  // namespace

void IncomingBody::open(const Framing& framing, std::uint64_t most, Nanos now) {
  framing_ = framing;
  most_ = most;
  last_arrival_ = now;
  stage_ = exists() ? Stage::waiting : Stage::none;
  left_ = framing.size;
  if (is_chunked()) chunks_ = {};
}

// The rest is set by open(), start() and discard().
void IncomingBody::clear() {
  framing_ = {};
  received_ = 0;
  most_ = UINT64_MAX;
  stage_ = Stage::none;
  is_paused_ = was_invited_ = false;
  if (!trailers_.empty()) trailers_.clear();
}

void IncomingBody::start(Nanos now) {
  if (stage_ != Stage::waiting) return;
  stage_ = Stage::reading;
  measure(now);
}

void IncomingBody::measure(Nanos now) {
  reading_since_ = last_arrival_ = now;
  received_before_ = received_;
}

bool IncomingBody::pause() { return !is_discarded() && !std::exchange(is_paused_, true); }

bool IncomingBody::resume(Nanos now) {
  if (!std::exchange(is_paused_, false)) return false;
  measure(now);
  return true;
}

void IncomingBody::discard(Nanos now) {
  stage_ = Stage::discarded;
  is_paused_ = false;
  measure(now);
}

bool IncomingBody::invite() {
  const bool is_awaited = awaits_invitation();
  was_invited_ |= is_awaited;
  return is_awaited;
}

Bytes IncomingBody::split(Bytes bytes) {
  const Bytes piece = bytes.first(std::min<std::uint64_t>(bytes.size(), left_));
  left_ -= piece.size();
  return piece;
}

ChunkedDecoder::Step IncomingBody::decode(Bytes bytes) {
  const ChunkedDecoder::Step step = chunks_.next(bytes, trailers_);
  if (step.state == ChunkedDecoder::State::data) chunks_.take(step.data.size());
  return step;
}

bool IncomingBody::limit(std::uint64_t most) {
  if (framing_.size > most) return false;
  most_ = std::min(most_, most);
  return true;
}

// With "Expect: 100-continue" the rest is unknown: a client without permission may send its body,
// or may not.
bool IncomingBody::is_rest_short() const {
  if (is_over()) return true;
  if (awaits_invitation()) return false;
  return framing_.body == BodyKind::sized && left_ <= kMostDiscarded;
}

bool IncomingBody::is_slow(Nanos timeout, std::uint64_t min_rate, Nanos now) const {
  if (!is_flowing()) return false;
  if (timeout > Nanos{0} && now - last_arrival_ >= timeout) return true;
  const Nanos elapsed = now - reading_since_;
  const auto seconds = static_cast<std::uint64_t>(elapsed / Nanos{1'000'000'000});
  return elapsed > kRateGrace && received_ - received_before_ < seconds * min_rate;
}

}  // namespace spate::http
