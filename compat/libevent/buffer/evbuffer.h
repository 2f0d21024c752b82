// evbuffer: a queue of bytes in pieces, with callbacks for every change.
//
// Semantics: event2/buffer.h; order, return values and counts: probes.
//
// Memory: the two buffers of a bufferevent are parts of it (owner.h). Their contents are allocated
// on use and freed when empty, because most connections are idle.
//
// Threads: the caller of a function below has a Use of the buffer, which holds its lock. Callbacks
// are called with the lock held, as the header says, and may do anything, to free the buffer too:
// it stays until the last Use has ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat/libevent/buffer/owner.h"
#include "compat/libevent/buffer/piece.h"
#include "compat/libevent/threads.h"

// One callback of a program. While callbacks are being called, an ended one stays in the list.
struct evbuffer_cb_entry {
  evbuffer_cb_entry* next;
  evbuffer_cb_func callback;  // One of these two, or neither.
  evbuffer_cb old_callback;
  void* argument;
  bool is_enabled;
  bool is_ended;
};

namespace spate::libevent {

inline constexpr std::size_t kLengthMost = PTRDIFF_MAX;

// Calls the callbacks of a buffer from the loop.
struct DeferredCall {
  event ev;
  std::size_t added;  // Bytes for the next callbacks.
  std::size_t deleted;
  bool is_scheduled;
};

// The contents of a buffer, and its callbacks.
struct Contents {
  Piece* first = nullptr;
  Piece* last = nullptr;
  OwnPiece* spare = nullptr;  // An empty piece, which will be the next one.
  std::size_t size = 0;
  std::size_t added = 0;  // Since the last report to the callbacks.
  std::size_t deleted = 0;
  evbuffer_cb_entry* callbacks = nullptr;  // The newest first.
  DeferredCall* deferred = nullptr;
  void* lock = nullptr;
  std::uint16_t calling = 0;  // The depth of call_callbacks().
  bool owns_lock = false;
  bool may_have_unmapped = false;
  bool has_ended_callbacks = false;
};

// Shared by all empty buffers. Never written to.
inline constexpr Contents kNothing{};

// Where a reader is.
struct Cursor {
  const Piece* piece;
  std::size_t offset;  // Within the piece, less than its size.
};

}  // namespace spate::libevent

struct evbuffer {
 public:
  using Piece = spate::libevent::Piece;
  using OwnPiece = spate::libevent::OwnPiece;
  using Contents = spate::libevent::Contents;

  // A separate buffer; its contents follow in memory.
  explicit evbuffer(Contents* contents) : in_(contents) {}
  // A part of a bufferevent, at this offset from its beginning.
  explicit evbuffer(std::ptrdiff_t behind_owner)
      : in_(nothing()), has_owner_(true), words_behind_owner_(behind_owner / kWord & kWordsMost) {}
  evbuffer(const evbuffer&) = delete;
  evbuffer& operator=(const evbuffer&) = delete;
  ~evbuffer();

  std::size_t size() const { return in_->size; }
  Piece* first() const { return in_->first; }
  bool is_front_frozen() const { return front_is_frozen_; }
  bool is_back_frozen() const { return back_is_frozen_; }
  void freeze(bool at_front, bool on) {
    if (at_front) {
      front_is_frozen_ = on;
    } else {
      back_is_frozen_ = on;
    }
  }
  bool drains_to_fd() const { return drains_to_fd_; }
  void set_drains_to_fd(bool on) { drains_to_fd_ = on; }
  // True if the last evbuffer_read() brought much.
  bool is_sent_much() const { return is_sent_much_; }
  void set_sent_much(bool much) { is_sent_much_ = much; }

  // ---- at the back (append.cc); these return false when memory runs out, without any change

  [[nodiscard]] bool append(const void* bytes, std::size_t count);
  [[nodiscard]] bool can_grow_by(std::size_t count) {
    return count <= spate::libevent::kLengthMost - size() && (count == 0 || hold());
  }
  void link_last(Piece* piece);
  // Adds all of `other`, to either end.
  void append_all(evbuffer& other);
  [[nodiscard]] bool take_contents(evbuffer& other);
  void prepend_all(evbuffer& other);
  [[nodiscard]] bool prepend(const void* bytes, std::size_t count);
  void link_first(Piece* piece);
  // Makes room at the end: the rest of the last piece, and then the spare piece.
  [[nodiscard]] bool make_room(std::size_t at_least);
  std::size_t room_in_last() const;
  // Returns at most two extents: the rest of the last piece, unless that is full, and the spare
  // piece.
  int extents(iovec* extents, int count) const;
  // Returns room in one of the two; its base is null when memory runs out.
  iovec contiguous_room(std::size_t at_least);
  // Appends the bytes written at the beginning of each extent, or of one.
  void commit(std::size_t in_last, std::size_t in_spare);
  void commit_in(const iovec& room, std::size_t count);

  // ---- at the front (take.cc)

  void consume(std::size_t count);
  // Drops the first `count` bytes, or all if there are fewer. Works on a frozen front, too, for the
  // bufferevent that contains the buffer.
  void discard(std::size_t count);
  // Moves the first `count` bytes, which must be fewer than the size.
  [[nodiscard]] bool move_to(evbuffer& other, std::size_t count);
  std::size_t copy(spate::libevent::Cursor from, void* target, std::size_t count) const;
  spate::libevent::Cursor cursor_at(std::size_t offset) const;
  // Returns the first `count` bytes, at least one, in one piece; null when memory runs out.
  unsigned char* make_contiguous(std::size_t count);
  // Loads file segments into memory, so that their bytes can be read.
  [[nodiscard]] bool make_readable() { return !in_->may_have_unmapped || map_files(); }

  // ---- changes (callbacks.cc)

  // Reports the changes since the last call: to the callbacks now or from the loop, and then to the
  // owner, always now.
  void changed() {
    if ((in_->added | in_->deleted) != 0) tell();
  }
  void call_deferred();
  evbuffer_cb_entry* add_callback(evbuffer_cb_func callback, evbuffer_cb old_callback,
                                  void* argument);
  bool remove_callback(evbuffer_cb_entry* entry);
  evbuffer_cb_entry* find_callback(evbuffer_cb_func callback, void* argument) const;
  void remove_callbacks();
  bool has_callbacks() const { return in_->callbacks != nullptr; }
  [[nodiscard]] bool defer(event_base* base);

  // The most that the owner moves at once, into this buffer or out of it; 0 is the default.
  std::uint32_t most_at_once() const { return most_at_once_; }
  void set_most_at_once(std::uint32_t most) { most_at_once_ = most; }

  // ---- lifetime

  void* lock() const {
    return has_owners_lock_ ? spate::libevent::lock_of_owner(*owner()) : in_->lock;
  }
  bool has_own_lock() const { return in_->owns_lock; }
  // Returns false when memory runs out.
  [[nodiscard]] bool set_lock(void* lock, bool is_own);
  // Returns the bufferevent that contains it, also after leave_owner(); null for a separate buffer.
  bufferevent* owner() const {
    if (is_alone()) return nullptr;
    auto* here = reinterpret_cast<unsigned char*>(const_cast<evbuffer*>(this));
    return reinterpret_cast<bufferevent*>(here - words_behind_owner_ * kWord);
  }
  void use_owners_lock() { has_owners_lock_ = true; }
  // The owner is destroyed, except its memory.
  void leave_owner() {
    has_owner_ = false;
    has_owners_lock_ = false;
  }
  void take() { ++owners_; }
  // Returns true for the last owner.
  bool give_up() { return --owners_ == 0; }

 private:
  static Contents* nothing() { return const_cast<Contents*>(&spate::libevent::kNothing); }
  // Makes its own contents, which may be written to. Returns false when memory runs out.
  [[nodiscard]] bool hold() { return in_ != nothing() || make_contents(); }
  [[nodiscard]] bool make_contents();
  void release_contents();
  void release_if_idle();

  [[nodiscard]] bool make_spare(std::size_t at_least);
  void take_all(evbuffer& other);
  void tell();
  void schedule(const evbuffer_cb_info& change);
  void call_callbacks(const evbuffer_cb_info& change);
  void release_ended_callbacks();
  [[nodiscard]] bool map_files();
  void unlink_first_pieces(std::size_t& count, Piece*& unlinked);

  static constexpr int kWord = 8;
  static constexpr int kWordsMost = 127;

  bool is_alone() const { return words_behind_owner_ == 0; }

  // Two words, since an idle bufferevent has two buffers.
  Contents* in_;
  std::uint32_t most_at_once_ = 0;
  std::uint16_t owners_ = 1;  // Each Use counts as one; the stack limits their number.
  bool front_is_frozen_ : 1 = false;
  bool back_is_frozen_ : 1 = false;
  bool drains_to_fd_ : 1 = false;
  bool is_sent_much_ : 1 = false;
  bool has_owner_ : 1 = false;
  std::uint8_t : 0;  // Starts a new byte: lock() reads the members that follow before it holds the
                     // lock.
  bool has_owners_lock_ : 1 = false;
  std::uint8_t words_behind_owner_ : 7 = 0;
};

namespace spate::libevent {

// Frees the buffer after its last owner; the lock is released before.
void end_use(evbuffer* buffer, void* lock);

class Use {
 public:
  explicit Use(evbuffer* buffer) : buffer_(buffer), lock_(buffer->lock()) {
    acquire(lock_);
    buffer_->take();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (buffer_->give_up()) {
      end_use(buffer_, lock_);
    } else {
      give_back(lock_);
    }
  }

 private:
  evbuffer* buffer_;
  void* lock_;
};

// Locks two buffers, always in the same order, so that no two threads deadlock.
class UseBoth {
 public:
  UseBoth(evbuffer* one, evbuffer* other)
      : first_(one < other ? one : other), second_(one < other ? other : one) {}

 private:
  Use first_;
  Use second_;
};

}  // namespace spate::libevent
