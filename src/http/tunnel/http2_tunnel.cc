#include "http/tunnel/http2_tunnel.h"

#include <algorithm>
#include <utility>

#include "spate/loop.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

// The limits of a Stream.
constexpr QueueLimits kLimits;

}  // namespace

Http2Tunnel::Http2Tunnel(Way& way, Stream end, Nanos patience)
    : way_(way),
      end_(std::move(end)),
      patience_(patience),
      silence_(end_.loop(), named<Timer, ActiveKind::websocket>([this] { on_silence(); })) {
  end_.set_half_open(true);
  end_.start(*this);
}

Http2Tunnel::~Http2Tunnel() {
  const bool have_both_ended = has_other_ended_ && is_end_sent_;
  have_both_ended || is_complete_ ? end_.close() : end_.abort();
}

// ---- from the peer

bool Http2Tunnel::take(Bytes bytes) {
  const std::size_t size = bytes.size();
  return end_.write(bytes) && took(size);
}

bool Http2Tunnel::take(Buffer&& bytes) {
  const std::size_t size = bytes.size();
  return size == 0 || (end_.write(std::move(bytes)) && took(size));
}

bool Http2Tunnel::took(std::size_t size) {
  note_progress();
  owed_ += size;
  if (!end_.is_full()) way_.credit(std::exchange(owed_, 0));
  return true;
}

void Http2Tunnel::take_end() {
  has_other_ended_ = true;
  end_.end();
}

// After its END_STREAM, the peer may reset with NO_ERROR to stop our output. The bytes it sent are
// not lost by that.
void Http2Tunnel::on_stream_closed(Http2Code code) {
  if (has_other_ended_ && code == Http2Code::no_error) is_complete_ = true;
}

// ---- from the user

void Http2Tunnel::on_drained() { way_.credit(std::exchange(owed_, 0)); }

std::size_t Http2Tunnel::on_data(Bytes bytes) {
  if (out_.size() > kLimits.high) {
    end_.pause();
    return 0;
  }
  if (!out_.append(bytes)) {
    way_.cut_tunnel();
    return bytes.size();
  }
  expect_progress();
  way_.send_tunneled();
  return bytes.size();
}

void Http2Tunnel::on_end() {
  has_ended_ = true;
  expect_progress();
  way_.send_tunneled();
}

void Http2Tunnel::on_closed(std::error_code error) {
  if (error) way_.cut_tunnel();
}

// ---- called by the session

Http2Piece Http2Tunnel::next_piece(std::size_t most) const {
  const std::size_t size = std::min(most, out_.size());
  return {.size = size, .is_last = has_ended_ && size == out_.size()};
}

void Http2Tunnel::take(std::span<std::byte> target) {
  out_.read(target);
  on_piece_sent();
}

bool Http2Tunnel::take(std::size_t size, Buffer& target) {
  const bool is_taken = target.append(out_, size);
  on_piece_sent();
  return is_taken;
}

void Http2Tunnel::on_piece_sent() {
  note_progress();
  if (end_.is_paused() && out_.size() <= kLimits.low) end_.resume();
}

// ---- timeouts

void Http2Tunnel::note_progress() { last_progress_ = end_.loop().now(); }

void Http2Tunnel::expect_progress() {
  if (patience_ <= Nanos{0} || silence_.is_active()) return;
  note_progress();
  wait_for(patience_);
}

// Without memory for the timer the tunnel is reset.
void Http2Tunnel::wait_for(Nanos time) {
  if (!silence_.start(time)) way_.cut_tunnel();
}

void Http2Tunnel::on_silence() {
  if (!is_waiting()) return;
  const Nanos left = patience_ - (end_.loop().now() - last_progress_);
  left > Nanos{0} ? wait_for(left) : way_.cut_tunnel();
}

}  // namespace spate::http
