// Making and freeing buffers, their locks and flags.
//
// Semantics: event2/buffer.h; that callbacks which are due from the loop are still called after the
// program has freed the buffer: probes.
#include "compat/libevent/buffer/evbuffer.h"

#include <new>

#include "compat/libevent/memory.h"

using namespace spate::libevent;

evbuffer::~evbuffer() {
  remove_callbacks();
  release_pieces(first_);
  if (spare_ != nullptr) release_piece(spare_);
  if (deferred_ != nullptr) event_debug_unassign(&deferred_->ev);
  release(deferred_);
}

void spate::libevent::end_use(evbuffer* buffer, void* lock) {
  const bool owns_lock = buffer->has_own_lock();
  buffer->~evbuffer();
  release(buffer);
  give_back(lock);
  if (owns_lock) free_lock(lock);
}

// ---- the exported functions

evbuffer* evbuffer_new() {
  void* memory = allocate(sizeof(evbuffer));
  return memory != nullptr ? new (memory) evbuffer : nullptr;
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
  buffer->set_lock(lock, is_own);
  return 0;
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
