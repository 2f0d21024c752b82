// evbuffer: a queue of bytes in pieces, with callbacks for every change.
//
// Semantics: event2/buffer.h; order, return values and counts: probes.
//
// Threads: whoever calls a function below has a Use of the buffer, which holds its lock. Callbacks
// are called with the lock held, as the header says, and may do anything, to free the buffer too:
// it stays until the last Use has ended.
#pragma once

#include <cstddef>
#include <cstdint>

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
  // Told of every change after the callbacks, and never later: for the owner of the buffer.
  using Watcher = void (*)(void* owner, const evbuffer_cb_info& change);

  evbuffer() = default;
  evbuffer(const evbuffer&) = delete;
  evbuffer& operator=(const evbuffer&) = delete;
  ~evbuffer();

  std::size_t size() const { return size_; }
  Piece* first() const { return first_; }
  bool is_front_frozen() const { return front_is_frozen_; }
  bool is_back_frozen() const { return back_is_frozen_; }
  void freeze(bool at_front, bool on) { (at_front ? front_is_frozen_ : back_is_frozen_) = on; }
  bool drains_to_fd() const { return drains_to_fd_; }
  void set_drains_to_fd(bool on) { drains_to_fd_ = on; }
  // What the last evbuffer_read() has brought.
  bool is_sent_much() const { return is_sent_much_; }
  void set_sent_much(bool much) { is_sent_much_ = much; }

  // ---- at the back (append.cc); false when memory runs out, and nothing has changed then

  bool append(const void* bytes, std::size_t count);
  bool can_grow_by(std::size_t count) const {
    return count <= spate::libevent::kLengthMost - size_;
  }
  void link_last(Piece* piece);
  // All of `other`, to either end.
  void append_all(evbuffer& other);
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
  bool make_readable() { return !may_have_unmapped_ || map_files(); }

  // ---- changes (callbacks.cc)

  void watch(Watcher watcher, void* owner) {
    watcher_ = watcher;
    owner_ = owner;
  }
  // Tells of what was added and deleted since the last call, now or from the loop.
  void changed() {
    if ((added_ | deleted_) != 0) tell();
  }
  void call_deferred();
  evbuffer_cb_entry* add_callback(evbuffer_cb_func callback, evbuffer_cb old_callback,
                                  void* argument);
  bool remove_callback(evbuffer_cb_entry* entry);
  evbuffer_cb_entry* find_callback(evbuffer_cb_func callback, void* argument) const;
  void remove_callbacks();
  bool has_callbacks() const { return callbacks_ != nullptr; }
  bool defer(event_base* base);

  // ---- lifetime

  void* lock() const { return lock_; }
  bool has_own_lock() const { return owns_lock_; }
  void set_lock(void* lock, bool is_own) {
    lock_ = lock;
    owns_lock_ = is_own;
  }
  void take() { ++owners_; }
  // True if it was the last owner's.
  bool give_up() { return --owners_ == 0; }

 private:
  bool make_spare(std::size_t at_least);
  void take_all(evbuffer& other);
  void tell();
  void schedule(const evbuffer_cb_info& change);
  void call_callbacks(const evbuffer_cb_info& change);
  void release_ended_callbacks();
  bool map_files();
  void unlink_first_pieces(std::size_t& count, Piece*& unlinked);

  Piece* first_ = nullptr;
  Piece* last_ = nullptr;
  OwnPiece* spare_ = nullptr;  // Empty, to be the next one.
  std::size_t size_ = 0;
  std::size_t added_ = 0;  // Since the last tell().
  std::size_t deleted_ = 0;
  Watcher watcher_ = nullptr;
  void* owner_ = nullptr;
  evbuffer_cb_entry* callbacks_ = nullptr;  // The newest first.
  spate::libevent::DeferredCall* deferred_ = nullptr;
  void* lock_ = nullptr;
  int owners_ = 1;
  std::uint16_t calling_ = 0;  // How deep inside call_callbacks().
  bool owns_lock_ = false;
  bool front_is_frozen_ = false;
  bool back_is_frozen_ = false;
  bool drains_to_fd_ = false;
  bool is_sent_much_ = false;
  bool may_have_unmapped_ = false;
  bool has_ended_callbacks_ = false;
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
