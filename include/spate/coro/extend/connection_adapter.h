// ConnectionAdapter: adapts a connection with a handler to coroutines. One coroutine reads pieces;
// others wait for room to write, for the beginning or for the end. For authors of awaitables: the
// WebSocket, Exchange and Call of spate/http/ use it.
//
// The handler's callbacks call deliver(), open(), drain(), end_input() and close(), each as their
// last action, since the coroutine that is resumed may destroy the object. A piece is passed on
// without a copy, and is valid until the coroutine waits. It is copied only if the reader cannot be
// resumed at once, because its fiber runs the loop, or is not waiting. No piece may arrive while no
// coroutine reads: the connection starts paused, and resume() and pause() are called as readers
// come and go.
// Threads: the loop's thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

#include "spate/coro/extend/block.h"
#include "spate/coro/scope.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::coro {

class SPATE_EXPORT ConnectionAdapter {
 public:
  class Read;
  class Wait;

  ConnectionAdapter(const ConnectionAdapter&) = delete;
  ConnectionAdapter& operator=(const ConnectionAdapter&) = delete;

 protected:
  // A received piece. The derived class defines the values of `kind`.
  struct Piece {
    Bytes bytes;
    std::uint8_t kind = 0;
  };

  ConnectionAdapter();
  ~ConnectionAdapter();

  // ---- called by the handler's callbacks

  void deliver(Bytes bytes, std::uint8_t kind);
  // Called when the connection has begun: resumes Wait::For::beginning.
  void open();
  // Called when there is room to write: resumes Wait::For::room.
  void drain();
  // Called when no piece follows.
  void end_input();
  // Called when the connection has ended: resumes all waiters.
  void close(std::error_code error);

  // ---- called by the derived class

  bool is_begun() const { return is_begun_; }
  bool is_over() const { return ended_ == Ended::all; }
  std::error_code error() const { return error_; }
  // Returns bytes to the front: the next reader gets them first. Must not be called while a
  // coroutine reads.
  void put_back(const Buffer& bytes, std::uint8_t kind);
  // Returns why nothing can be sent: the error that closed the connection, or EPIPE.
  std::error_code write_error() const;

 private:
  class StoredPiece;
  enum class Ended : std::uint8_t { nothing, input, all };

  // Pause and resume the input. Called when that changes, from the first read on.
  virtual void pause() = 0;
  virtual void resume() = 0;
  // Called when there is no memory for a piece: must end the connection, without a callback.
  virtual void abort_connection() = 0;
  // Returns whether senders must wait.
  virtual bool is_full() const = 0;
  // Returns the error that a reader gets at the end of the pieces. Without one it gets an empty
  // piece.
  virtual std::error_code end_of_input() const = 0;

  void update_input();
  void set_paused(bool is_paused);
  bool store(Bytes bytes, std::uint8_t kind);
  void fail_for_memory();
  Piece take_stored();
  bool resume_waiter(Continuation continuation);
  void wake_waits();

  Read* reading_ = nullptr;
  std::array<Wait*, 3> waiting_{};       // One per Wait::For.
  bool* destroyed_ = nullptr;            // Set by the destructor, for the innermost callback.
  std::unique_ptr<StoredPiece> stored_;  // Copies, oldest first.
  std::unique_ptr<StoredPiece> current_;
  std::error_code error_;
  Ended ended_ = Ended::nothing;
  bool is_begun_ = false;
  bool is_paused_ = true;
};

// Waits for a piece.
class SPATE_EXPORT ConnectionAdapter::Read : public Operation<Read> {
 public:
  explicit Read(ConnectionAdapter& adapter) : adapter_(adapter) {}
  ~Read() { cancel(); }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();

 protected:
  // Returns the piece from which await_resume() makes its value.
  Result<Piece> take();
  ConnectionAdapter& adapter() const { return adapter_; }

 private:
  friend class ConnectionAdapter;

  ConnectionAdapter& adapter_;
  std::optional<Piece> delivered_;
  Continuation continuation_;
  bool is_woken_ = false;
};

// Waits for the beginning, for room, or for the end.
class SPATE_EXPORT ConnectionAdapter::Wait : public Operation<Wait> {
 public:
  enum class For : std::uint8_t { beginning, room, end };

  // If there is an `error`, co_await returns it at once.
  Wait(ConnectionAdapter& adapter, For what, std::error_code error = {})
      : adapter_(adapter), error_(error), what_(what) {}
  ~Wait() { cancel(); }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  // Returns whether it was started and not yet resumed.
  bool is_waiting() const { return static_cast<bool>(continuation_); }
  // Errors: the error that closed the connection; EPIPE if it ended without the awaited event.
  Result<void> await_resume();

 private:
  friend class ConnectionAdapter;

  ConnectionAdapter& adapter_;
  Continuation continuation_;
  std::error_code error_;
  For what_;
};

}  // namespace spate::coro
