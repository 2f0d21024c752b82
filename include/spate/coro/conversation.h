// Conversation: a connection that tells a handler what happens, for coroutines: what comes in
// pieces, for the one who reads; and room to write, a beginning and an end, for those who wait. For
// those who write awaitables: WebSocket, Exchange and Call of spate/http/ are made of it.
//
// The handler's callbacks call give(), open(), drain(), end_input() and close(), each last, as
// whoever goes on in it may destroy the object. A piece is handed on as it has come, and is valid
// until the coroutine waits. Who cannot go on, since his chain runs the loop, and who is late, gets
// a copy. Nothing is to come while nobody reads: the object begins so, and is told by resume() and
// pause().
// Threads: the loop's thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

#include "spate/coro/block.h"
#include "spate/coro/scope.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::coro {

class SPATE_EXPORT Conversation {
 public:
  class Read;
  class Wait;

  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

 protected:
  // What has come, and what it is: the object's own numbers.
  struct Piece {
    Bytes bytes;
    std::uint8_t kind = 0;
  };

  Conversation();
  ~Conversation();

  // ---- by the callbacks

  void give(Bytes bytes, std::uint8_t kind);
  // It has begun: Wait::For::beginning.
  void open();
  // There is room: Wait::For::room.
  void drain();
  // No piece follows.
  void end_input();
  // Nothing follows, and all go on.
  void close(std::error_code error);

  // ---- of the object

  bool is_begun() const { return is_begun_; }
  bool is_over() const { return over_ == Over::all; }
  std::error_code error() const { return error_; }
  // Who reads next gets this first. Not while somebody reads.
  void put_back(const Buffer& bytes, std::uint8_t kind);
  // Why nothing can be sent: what has closed it, or EPIPE.
  std::error_code write_error() const;

 private:
  class Kept;
  enum class Over : std::uint8_t { nothing, input, all };

  // Of what comes: called when that changes, from the first time that somebody reads on.
  virtual void pause() = 0;
  virtual void resume() = 0;
  // There is no memory for a piece: the connection is to end, without a callback.
  virtual void give_up() = 0;
  // Whether who sends is to wait.
  virtual bool is_full() const = 0;
  // What a reader is told at the end of the pieces. No error is an empty piece.
  virtual std::error_code end_of_input() const = 0;

  void look();
  void set_paused(bool is_paused);
  bool keep(Bytes bytes, std::uint8_t kind);
  void lose_memory();
  Piece take_kept();
  bool go_on(Then then);
  void wake_waits();

  Read* reading_ = nullptr;
  std::array<Wait*, 3> waiting_{};  // One of each.
  bool* gone_ = nullptr;            // Told to the innermost callback.
  std::unique_ptr<Kept> kept_;      // Copies, the oldest first.
  std::unique_ptr<Kept> shown_;
  std::error_code error_;
  Over over_ = Over::nothing;
  bool is_begun_ = false;
  bool is_paused_ = true;
};

// Waits for a piece.
class SPATE_EXPORT Conversation::Read : public Operation<Read> {
 public:
  explicit Read(Conversation& conversation) : conversation_(conversation) {}
  ~Read() { cancel(); }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();

 protected:
  // What await_resume() makes its value of.
  Result<Piece> take();
  Conversation& conversation() const { return conversation_; }

 private:
  friend class Conversation;

  Conversation& conversation_;
  std::optional<Piece> given_;
  Then then_;
  bool is_woken_ = false;
};

// Waits for something else.
class SPATE_EXPORT Conversation::Wait : public Operation<Wait> {
 public:
  enum class For : std::uint8_t { beginning, room, end };

  // With an error there is nothing to wait for.
  Wait(Conversation& conversation, For what, std::error_code error = {})
      : conversation_(conversation), error_(error), what_(what) {}
  ~Wait() { cancel(); }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();
  // It was begun, and has not gone on.
  bool is_waiting() const { return static_cast<bool>(then_); }
  // Errors: what has closed it; EPIPE if it has ended without what was waited for.
  Result<void> await_resume();

 private:
  friend class Conversation;

  Conversation& conversation_;
  Then then_;
  std::error_code error_;
  For what_;
};

}  // namespace spate::coro
