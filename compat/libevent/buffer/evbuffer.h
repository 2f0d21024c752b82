// evbuffer: a queue of bytes in pieces, with callbacks for every change.
//
// Semantics: event2/buffer.h; order, return values and counts: probes.
//
// Memory: the two buffers of a bufferevent are parts of it (owner.h). What is in them is allocated
// when there is something and given back when there is nothing, because most connections are idle.
//
// Threads: whoever calls a function below has a Use of the buffer, which holds its lock. Callbacks
// are called with the lock held, as the header says, and may do anything, to free the buffer too:
// it stays until the last Use has ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat/libevent/buffer/owner.h"
#include "compat/libevent/buffer/piece.h"
#include "compat/libevent/threads.h"

// One callback of a program. It stays in the list, ended, while callbacks are being called.
struct evbuffer_cb_entry {
  evbuffer_cb_entry* next;
  evbuffer_cb_func callback;  // One of these two, or none.
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
  std::size_t added;  // That they are to be told of.
  std::size_t deleted;
  bool is_scheduled;
};

// What is in a buffer, and who is told of it.
struct Contents {
  Piece* first = nullptr;
  Piece* last = nullptr;
  OwnPiece* spare = nullptr;  // Empty, to be the next one.
  std::size_t size = 0;
  std::size_t added = 0;  // Since the last tell().
  std::size_t deleted = 0;
  evbuffer_cb_entry* callbacks = nullptr;  // The newest first.
  DeferredCall* deferred = nullptr;
  void* lock = nullptr;
  std::uint16_t calling = 0;  // How deep inside call_callbacks().
  bool owns_lock = false;
  bool may_have_unmapped = false;
  bool has_ended_callbacks = false;
};

// Of all buffers that have none of their own. Nobody writes to it.
inline constexpr Contents kNothing{};

// Where a reader is.
struct Cursor {
  const Piece* piece;
  std::size_t offset;  // In the piece, less than its size.
};

}  // namespace spate::libevent

struct evbuffer {
 public:
  using Piece = spate::libevent::Piece;
  using OwnPiece = spate::libevent::OwnPiece;
  using Contents = spate::libevent::Contents;

  // On its own; the contents are behind it.
  explicit evbuffer(Contents* contents) : in_(contents) {}
  // As a part of a bufferevent, so many bytes behind its beginning.
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
  // What the last evbuffer_read() has brought.
  bool is_sent_much() const { return is_sent_much_; }
  void set_sent_much(bool much) { is_sent_much_ = much; }

  // ---- at the back (append.cc); false when memory runs out, and nothing has changed then

  bool append(const void* bytes, std::size_t count);
  bool can_grow_by(std::size_t count) {
    return count <= spate::libevent::kLengthMost - size() && (count == 0 || hold());
  }
  void link_last(Piece* piece);
  // All of `other`, to either end.
  void append_all(evbuffer& other);
  bool take_contents(evbuffer& other);
  void prepend_all(evbuffer& other);
  bool prepend(const void* bytes, std::size_t count);
  void link_first(Piece* piece);
  // Memory for what comes next: what the last piece has left, and behind that the spare piece.
  bool make_room(std::size_t at_least);
  std::size_t room_in_last() const;
  // At most two, of which the first is what the last piece has left, unless that is nothing.
  int extents(iovec* extents, int count) const;
  // In one of the two; its base is null when memory runs out.
  iovec contiguous_room(std::size_t at_least);
  // Appends what was written to the beginning of each, or of one.
  void commit(std::size_t in_last, std::size_t in_spare);
  void commit_in(const iovec& room, std::size_t count);

  // ---- at the front (take.cc)

  void consume(std::size_t count);
  // Moves the first `count` bytes, which are fewer than there are.
  bool move_to(evbuffer& other, std::size_t count);
  std::size_t copy(spate::libevent::Cursor from, void* target, std::size_t count) const;
  spate::libevent::Cursor cursor_at(std::size_t offset) const;
  // The first `count` bytes, at least one, in one piece; null when memory runs out.
  unsigned char* make_contiguous(std::size_t count);
  // Brings parts of files into memory, for who wants to see them.
  bool make_readable() { return !in_->may_have_unmapped || map_files(); }

  // ---- changes (callbacks.cc)

  // Tells of what was added and deleted since the last call: the callbacks now or from the loop,
  // and then the owner, never later.
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
  bool defer(event_base* base);

  // How much the owner moves at once, into this buffer or out of it; 0 is the default.
  std::uint32_t most_at_once() const { return most_at_once_; }
  void set_most_at_once(std::uint32_t most) { most_at_once_ = most; }

  // ---- lifetime

  void* lock() const {
    return has_owners_lock_ ? spate::libevent::lock_of_owner(*owner()) : in_->lock;
  }
  bool has_own_lock() const { return in_->owns_lock; }
  // False when memory runs out.
  bool set_lock(void* lock, bool is_own);
  // Whose memory it lies in, also after leave_owner(); null if it is on its own.
  bufferevent* owner() const {
    if (is_alone()) return nullptr;
    auto* here = reinterpret_cast<unsigned char*>(const_cast<evbuffer*>(this));
    return reinterpret_cast<bufferevent*>(here - words_behind_owner_ * kWord);
  }
  void use_owners_lock() { has_owners_lock_ = true; }
  // The owner is no more, but for the memory.
  void leave_owner() {
    has_owner_ = false;
    has_owners_lock_ = false;
  }
  void take() { ++owners_; }
  // True if it was the last owner's.
  bool give_up() { return --owners_ == 0; }

 private:
  static Contents* nothing() { return const_cast<Contents*>(&spate::libevent::kNothing); }
  // Contents of its own, to be written to. False when memory runs out.
  bool hold() { return in_ != nothing() || make_contents(); }
  bool make_contents();
  void release_contents();
  void release_if_idle();

  bool make_spare(std::size_t at_least);
  void take_all(evbuffer& other);
  void tell();
  void schedule(const evbuffer_cb_info& change);
  void call_callbacks(const evbuffer_cb_info& change);
  void release_ended_callbacks();
  bool map_files();
  void unlink_first_pieces(std::size_t& count, Piece*& unlinked);

  static constexpr int kWord = 8;
  static constexpr int kWordsMost = 127;

  bool is_alone() const { return words_behind_owner_ == 0; }

  // Two words, of which an idle bufferevent has two.
  Contents* in_;
  std::uint32_t most_at_once_ = 0;
  std::uint16_t owners_ = 1;  // A Use is one: who is so deep in callbacks has no stack left.
  bool front_is_frozen_ : 1 = false;
  bool back_is_frozen_ : 1 = false;
  bool drains_to_fd_ : 1 = false;
  bool is_sent_much_ : 1 = false;
  bool has_owner_ : 1 = false;
  std::uint8_t : 0;  // lock() looks at what follows before it has the lock.
  bool has_owners_lock_ : 1 = false;
  std::uint8_t words_behind_owner_ : 7 = 0;
};

namespace spate::libevent {

// Frees the buffer if nobody has it any more; its lock is then given back before.
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

// Two buffers at once: always in the same order, so that no two threads wait for each other.
class UseBoth {
 public:
  UseBoth(evbuffer* one, evbuffer* other)
      : first_(one < other ? one : other), second_(one < other ? other : one) {}

 private:
  Use first_;
  Use second_;
};

}  // namespace spate::libevent
