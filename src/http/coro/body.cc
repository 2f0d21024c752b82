// Body: keeps bytes that are left over after messages.
#include "spate/http/coro_body.h"

#include <utility>

namespace spate::coro {

// Consumes the last returned message, which was valid until now.
void Body::drop_used() { unread_.consume(std::exchange(used_, 0)); }

Result<Bytes> Body::take(const Frame& frame) {
  if (frame.state == Frame::State::broken) return failure(std::errc::bad_message);
  used_ = frame.size;
  return frame.message;
}

std::error_code Body::error_of_end() const {
  return unread_.empty() ? Error::ended : Error::truncated;
}

// Returns bytes that are left over after messages first.
Body::ReadPiece Body::read_piece() {
  drop_used();
  const Buffer left = std::exchange(unread_, Buffer());
  if (!left.empty()) put_back(left, 0);
  return ReadPiece(*this);
}

Result<Bytes> Body::ReadPiece::await_resume() {
  const Result<Piece> piece = take();
  if (!piece) return std::unexpected(piece.error());
  return piece->bytes;
}

}  // namespace spate::coro
