// Making and freeing buffers, their locks and flags.
//
// Semantics: event2/buffer.h; probed: callbacks that are due from the loop are still called after
// the program has freed the buffer.
#include "compat/libevent/buffer/evbuffer.h"

#include <new>

#include "compat/libevent/memory.h"

using namespace spate::libevent;

evbuffer::~evbuffer() {
  remove_callbacks();
  release_pieces(in_->first);
  if (in_->spare != nullptr) release_piece(in_->spare);
  if (in_->deferred != nullptr) event_debug_unassign(&in_->deferred->ev);
  release(in_->deferred);
  release_contents();
}

bool evbuffer::make_contents() {
  void* memory = allocate(sizeof(Contents));
  if (memory == nullptr) return false;
  in_ = new (memory) Contents;
  return true;
}

void evbuffer::release_contents() {
  if (is_alone() || in_ == nothing()) return;
  release(in_);
  in_ = nothing();
}

void evbuffer::release_if_idle() {
  const bool is_empty = in_->first == nullptr && in_->spare == nullptr;
  const bool has_callbacks = in_->callbacks != nullptr || in_->deferred != nullptr;
  if (is_empty && !has_callbacks && in_->lock == nullptr) release_contents();
}

bool evbuffer::set_lock(void* lock, bool is_own) {
  if (!hold()) return false;
  in_->lock = lock;
  in_->owns_lock = is_own;
  return true;
}

namespace {

// The memory of evbuffer_new().
struct BufferAlone {
  evbuffer buffer{&contents};
  Contents contents;
};

void end(evbuffer* buffer) {
  bufferevent* owner = buffer->owner();
  buffer->~evbuffer();
  if (owner == nullptr) return release(buffer);
  release_with_owner(*owner);
}

}  // namespace

void spate::libevent::end_use(evbuffer* buffer, void* lock) {
  const bool owns_lock = buffer->has_own_lock();
  end(buffer);
  give_back(lock);
  if (owns_lock) free_lock(lock);
}

// ---- the exported functions

evbuffer* evbuffer_new() {
  void* memory = allocate(sizeof(BufferAlone));
  return memory != nullptr ? &(new (memory) BufferAlone)->buffer : nullptr;
}

void evbuffer_free(evbuffer* buffer) {
  const Use use(buffer);
  buffer->give_up();
}

int evbuffer_enable_locking(evbuffer* buffer, void* lock) {
  if (buffer->lock() != nullptr) return -1;
  const bool is_own = lock == nullptr;
  if (is_own) lock = make_lock();
  if (lock == nullptr) return -1;
  if (buffer->set_lock(lock, is_own)) return 0;
  if (is_own) free_lock(lock);
  return -1;
}

void evbuffer_lock(evbuffer* buffer) { acquire(buffer->lock()); }
void evbuffer_unlock(evbuffer* buffer) { give_back(buffer->lock()); }

int evbuffer_set_flags(evbuffer* buffer, ev_uint64_t flags) {
  const Use use(buffer);
  if ((flags & EVBUFFER_FLAG_DRAINS_TO_FD) != 0) buffer->set_drains_to_fd(true);
  return 0;
}

int evbuffer_clear_flags(evbuffer* buffer, ev_uint64_t flags) {
  const Use use(buffer);
  if ((flags & EVBUFFER_FLAG_DRAINS_TO_FD) != 0) buffer->set_drains_to_fd(false);
  return 0;
}

size_t evbuffer_get_length(const evbuffer* buffer) {
  const Holding holding(buffer->lock());
  return buffer->size();
}

size_t evbuffer_get_contiguous_space(const evbuffer* buffer) {
  const Holding holding(buffer->lock());
  return buffer->first() != nullptr ? buffer->first()->size : 0;
}

int evbuffer_freeze(evbuffer* buffer, int at_front) {
  const Use use(buffer);
  buffer->freeze(at_front != 0, true);
  return 0;
}

int evbuffer_unfreeze(evbuffer* buffer, int at_front) {
  const Use use(buffer);
  buffer->freeze(at_front != 0, false);
  return 0;
}
