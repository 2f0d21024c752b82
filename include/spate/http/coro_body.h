// Body: that of a request or an answer, as a coroutine reads it: in pieces as they come, or split
// into messages. What coro::Exchange and coro::Call have in common (coro_exchange.h, coro_call.h),
// not for use by itself.
#pragma once

#include <cstddef>
#include <system_error>
#include <utility>

#include "spate/coro/conversation.h"
#include "spate/coro/or_return.h"
#include "spate/coro/task.h"
#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/framing.h"

namespace spate::coro {

class SPATE_EXPORT Body : public Conversation {
 public:
  class ReadPiece;

  // Of a message, with its framing, in bytes.
  static constexpr std::size_t kMaxMessage = 16 * 1024 * 1024;

 protected:
  Body() = default;
  ~Body() = default;

  ReadPiece read_piece();
  template <class Framing>
  Task<Result<Bytes>> read_message(Framing framing);
  void set_max_message(std::size_t size) { max_message_ = size; }

 private:
  static std::unexpected<std::error_code> failure(std::errc why) {
    return std::unexpected(std::make_error_code(why));
  }
  void drop_used();
  Result<Bytes> take(const Frame& frame);
  std::error_code error_of_end() const;

  Buffer unread_;         // What was read in pieces, and is not used up.
  std::size_t used_ = 0;  // Of that, by the message that was shown last.
  std::size_t max_message_ = kMaxMessage;
};

// What read() gives to co_await.
class SPATE_EXPORT Body::ReadPiece : public Read {
 public:
  using Read::Read;

  Result<Bytes> await_resume();
};

template <class Framing>
Task<Result<Bytes>> Body::read_message(Framing framing) {
  drop_used();
  for (std::size_t wanted = 1;;) {
    if (unread_.size() >= wanted) {
      const Bytes bytes = unread_.flat(unread_.size());
      if (bytes.size() < unread_.size()) co_return failure(std::errc::not_enough_memory);
      const Frame frame = framing.next(bytes);
      if (frame.size > max_message_) co_return failure(std::errc::message_size);
      if (frame.state != Frame::State::unfinished) co_return take(frame);
      wanted = frame.size;
    }
    const Bytes piece = co_await or_return(ReadPiece(*this));
    if (piece.empty()) co_return std::unexpected(error_of_end());
    if (!unread_.append(piece)) co_return failure(std::errc::not_enough_memory);
  }
}

}  // namespace spate::coro
