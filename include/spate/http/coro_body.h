// Body: reads the body of a request or a response in a coroutine, in pieces as they arrive, or
// split into messages. The common base of coro::Exchange and coro::Call (coro_exchange.h,
// coro_call.h); not for direct use.
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <system_error>
#include <utility>

#include "spate/coro/extend/connection_adapter.h"
#include "spate/coro/or_return.h"
#include "spate/coro/task.h"
#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/framing.h"

namespace spate::coro {

class SPATE_EXPORT Body : public ConnectionAdapter {
 public:
  class ReadPiece;

  // Bytes of a message, with its framing.
  static constexpr std::size_t kMaxMessage = 16 * 1024 * 1024;

 protected:
  Body() = default;
  ~Body() = default;

  ReadPiece read_piece();
  // co_await: returns the next message, valid until the next read. Errors: those of read_piece();
  // EMSGSIZE for a message of more than set_max_message() bytes; EBADMSG for one that is malformed.
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

  Buffer unread_;         // Bytes that were read and not yet returned.
  std::size_t used_ = 0;  // Bytes of it that the last returned message occupies.
  std::size_t max_message_ = kMaxMessage;
};

// The awaitable of read().
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
