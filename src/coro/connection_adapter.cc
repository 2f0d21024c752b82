// ConnectionAdapter: passes pieces to the reader, and the end to all waiters.
#include "spate/coro/extend/connection_adapter.h"

#include <cstring>
#include <new>
#include <utility>

namespace spate::coro {

// A piece that arrived while no coroutine was reading.
class ConnectionAdapter::StoredPiece {
 public:
  // Both return nullptr when memory runs out.
  static std::unique_ptr<StoredPiece> make(std::size_t size, std::uint8_t kind) {
    std::unique_ptr<StoredPiece> made(new (std::nothrow) StoredPiece(size));
    if (made == nullptr || !made->memory_) return nullptr;
    made->piece = {{made->memory_.data(), size}, kind};
    return made;
  }
  static std::unique_ptr<StoredPiece> copy(Bytes bytes, std::uint8_t kind) {
    std::unique_ptr<StoredPiece> made = make(bytes.size(), kind);
    if (made != nullptr && !bytes.empty())
      std::memcpy(made->memory_.data(), bytes.data(), bytes.size());
    return made;
  }

  std::span<std::byte> room() { return {memory_.data(), piece.bytes.size()}; }

  Piece piece;
  std::unique_ptr<StoredPiece> next;

 private:
  explicit StoredPiece(std::size_t size) : memory_(size) {}

  Block memory_;
};

ConnectionAdapter::ConnectionAdapter() = default;

ConnectionAdapter::~ConnectionAdapter() {
  SPATE_ASSERT(reading_ == nullptr, "the object was destroyed while a coroutine reads from it");
  for ([[maybe_unused]] const Wait* wait : waiting_) {
    SPATE_ASSERT(wait == nullptr, "the object was destroyed while a coroutine waits for it");
  }
  if (destroyed_ != nullptr) *destroyed_ = true;
}

std::error_code ConnectionAdapter::write_error() const {
  return error_ ? error_ : std::make_error_code(std::errc::broken_pipe);
}

// ---- called by the callbacks

// Resumes a waiter. False if the object was destroyed.
bool ConnectionAdapter::resume_waiter(Continuation continuation) {
  bool is_destroyed = false;
  bool* const outer = std::exchange(destroyed_, &is_destroyed);
  continuation.resume();
  if (is_destroyed) {
    if (outer != nullptr) *outer = true;
    return false;
  }
  destroyed_ = outer;
  return true;
}

void ConnectionAdapter::deliver(Bytes bytes, std::uint8_t kind) {
  Read* const read = reading_;
  const bool can_go_on =
      read != nullptr && !read->is_woken_ && !read->continuation_.fiber().is_running();
  if (!can_go_on) {
    if (!store(bytes, kind)) return;
    return update_input();
  }
  read->delivered_ = Piece{bytes, kind};
  reading_ = nullptr;
  if (resume_waiter(read->continuation_)) update_input();
}

// Resumes the input while a reader waits without a piece, and pauses it otherwise. Before the
// beginning there is no input.
void ConnectionAdapter::update_input() {
  if (ended_ != Ended::nothing || !is_begun_) return;
  set_paused(reading_ == nullptr || stored_ != nullptr);
  if (reading_ == nullptr || stored_ == nullptr) return;
  if (!std::exchange(reading_->is_woken_, true)) reading_->continuation_.wake();
}

void ConnectionAdapter::set_paused(bool is_paused) {
  if (is_paused == std::exchange(is_paused_, is_paused)) return;
  is_paused ? pause() : resume();
}

bool ConnectionAdapter::store(Bytes bytes, std::uint8_t kind) {
  std::unique_ptr<StoredPiece> made = StoredPiece::copy(bytes, kind);
  if (made == nullptr) return fail_for_memory(), false;
  std::unique_ptr<StoredPiece>* last = &stored_;
  while (*last != nullptr) last = &(*last)->next;
  *last = std::move(made);
  return true;
}

void ConnectionAdapter::put_back(const Buffer& bytes, std::uint8_t kind) {
  std::unique_ptr<StoredPiece> made = StoredPiece::make(bytes.size(), kind);
  if (made == nullptr) return fail_for_memory();
  bytes.copy(made->room());
  made->next = std::move(stored_);
  stored_ = std::move(made);
}

// A connection that lost received bytes must not continue.
void ConnectionAdapter::fail_for_memory() {
  abort_connection();
  close(std::make_error_code(std::errc::not_enough_memory));
}

ConnectionAdapter::Piece ConnectionAdapter::take_stored() {
  current_ = std::move(stored_);
  stored_ = std::move(current_->next);
  return current_->piece;
}

void ConnectionAdapter::open() {
  is_begun_ = true;
  Wait*& waiting = waiting_[static_cast<std::size_t>(Wait::For::beginning)];
  if (waiting != nullptr && !resume_waiter(std::exchange(waiting, nullptr)->continuation_)) return;
  update_input();
}

void ConnectionAdapter::drain() {
  Wait*& waiting = waiting_[static_cast<std::size_t>(Wait::For::room)];
  if (waiting == nullptr) return;
  const Continuation continuation = std::exchange(waiting, nullptr)->continuation_;
  continuation.resume();
}

void ConnectionAdapter::end_input() {
  if (ended_ == Ended::nothing) ended_ = Ended::input;
  if (reading_ == nullptr || std::exchange(reading_->is_woken_, true)) return;
  const Continuation continuation = std::exchange(reading_, nullptr)->continuation_;
  continuation.resume();
}

void ConnectionAdapter::wake_waits() {
  for (Wait*& waiting : waiting_) {
    if (waiting != nullptr) std::exchange(waiting, nullptr)->continuation_.wake();
  }
}

// A resumed waiter may destroy this.
void ConnectionAdapter::close(std::error_code error) {
  ended_ = Ended::all;
  error_ = error;
  wake_waits();
  end_input();
}

// ---- reading

bool ConnectionAdapter::Read::await_ready() const {
  SPATE_ASSERT(adapter_.reading_ == nullptr, "only one coroutine may read at a time");
  return adapter_.stored_ != nullptr || adapter_.ended_ != Ended::nothing;
}

bool ConnectionAdapter::Read::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  adapter_.reading_ = this;
  adapter_.update_input();
  return true;
}

void ConnectionAdapter::Read::cancel() {
  if (!continuation_) return;
  std::exchange(continuation_, Continuation()).cancel();
  if (adapter_.reading_ != this) return;
  adapter_.reading_ = nullptr;
  adapter_.update_input();
}

Result<ConnectionAdapter::Piece> ConnectionAdapter::Read::take() {
  continuation_ = Continuation();
  if (adapter_.reading_ == this) adapter_.reading_ = nullptr;
  if (delivered_) return *delivered_;
  if (adapter_.stored_ != nullptr) return adapter_.take_stored();
  const std::error_code error = adapter_.error_ ? adapter_.error_ : adapter_.end_of_input();
  if (error) return std::unexpected(error);
  return Piece();
}

// ---- other waits

bool ConnectionAdapter::Wait::await_ready() const {
  SPATE_ASSERT(adapter_.waiting_[static_cast<std::size_t>(what_)] == nullptr,
               "only one coroutine may wait for this at a time");
  if (error_ || adapter_.is_over()) return true;
  if (what_ == For::beginning) return adapter_.is_begun();
  return what_ == For::room && !adapter_.is_full();
}

bool ConnectionAdapter::Wait::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  adapter_.waiting_[static_cast<std::size_t>(what_)] = this;
  return true;
}

void ConnectionAdapter::Wait::cancel() {
  if (!continuation_) return;
  std::exchange(continuation_, Continuation()).cancel();
  Wait*& waiting = adapter_.waiting_[static_cast<std::size_t>(what_)];
  if (waiting == this) waiting = nullptr;
}

Result<void> ConnectionAdapter::Wait::await_resume() {
  continuation_ = Continuation();
  if (!error_ && adapter_.is_over()) {
    const bool is_what_was_wanted =
        what_ == For::end || (what_ == For::beginning && adapter_.is_begun());
    error_ = is_what_was_wanted ? adapter_.error_ : adapter_.write_error();
  }
  if (error_) return std::unexpected(error_);
  return {};
}

}  // namespace spate::coro
