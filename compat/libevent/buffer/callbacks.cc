// The callbacks for changes of a buffer.
//
// Semantics: event2/buffer.h (evbuffer_add_cb, evbuffer_defer_callbacks), event2/buffer_compat.h
// (evbuffer_setcb); probed: the newest is called first, a change without a callback is forgotten,
// and a change inside a callback is reported at once.
#include <utility>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/event/deferred.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

void call(evbuffer* buffer, const evbuffer_cb_entry& entry, const evbuffer_cb_info& change) {
  if (entry.old_callback != nullptr) {
    const std::size_t now = change.orig_size + change.n_added - change.n_deleted;
    entry.old_callback(buffer, change.orig_size, now, entry.argument);
  } else if (entry.callback != nullptr) {
    entry.callback(buffer, &change, entry.argument);
  }
}

void call_from_loop(evutil_socket_t, short, void* argument) {
  auto* buffer = static_cast<evbuffer*>(argument);
  const Use use(buffer);
  buffer->give_up();  // schedule() took it.
  buffer->call_deferred();
}

}  // namespace

void evbuffer::tell() {
  const evbuffer_cb_info change{in_->size + in_->deleted - in_->added, in_->added, in_->deleted};
  in_->added = in_->deleted = 0;
  if (in_->callbacks != nullptr && in_->deferred != nullptr) {
    schedule(change);
  } else if (in_->callbacks != nullptr) {
    call_callbacks(change);
  } else if (in_->deferred != nullptr) {
    in_->deferred->added = in_->deferred->deleted = 0;  // No callback is left for them either.
  }
  if (has_owner_) notify_owner(*owner(), *this, change);
  release_if_idle();
}

void evbuffer::schedule(const evbuffer_cb_info& change) {
  in_->deferred->added += change.n_added;
  in_->deferred->deleted += change.n_deleted;
  if (in_->deferred->is_scheduled) return;
  in_->deferred->is_scheduled = true;
  take();
  activate_deferred(in_->deferred->ev);
}

void evbuffer::call_deferred() {
  in_->deferred->is_scheduled = false;
  const std::size_t added = std::exchange(in_->deferred->added, 0);
  const std::size_t deleted = std::exchange(in_->deferred->deleted, 0);
  if (added != 0 || deleted != 0) call_callbacks({in_->size + deleted - added, added, deleted});
}

void evbuffer::call_callbacks(const evbuffer_cb_info& change) {
  ++in_->calling;
  for (evbuffer_cb_entry* entry = in_->callbacks; entry != nullptr; entry = entry->next) {
    if (entry->is_enabled && !entry->is_ended) call(this, *entry, change);
  }
  --in_->calling;
  if (in_->calling == 0 && in_->has_ended_callbacks) release_ended_callbacks();
}

void evbuffer::release_ended_callbacks() {
  in_->has_ended_callbacks = false;
  evbuffer_cb_entry** place = &in_->callbacks;
  while (*place != nullptr) {
    evbuffer_cb_entry* entry = *place;
    if (entry->is_ended) {
      *place = entry->next;
      release(entry);
    } else {
      place = &entry->next;
    }
  }
}

evbuffer_cb_entry* evbuffer::add_callback(evbuffer_cb_func callback, evbuffer_cb old_callback,
                                          void* argument) {
  if (!hold()) return nullptr;
  auto* entry = static_cast<evbuffer_cb_entry*>(allocate(sizeof(evbuffer_cb_entry)));
  if (entry == nullptr) return nullptr;
  *entry = {in_->callbacks, callback, old_callback, argument, true, false};
  in_->callbacks = entry;
  return entry;
}

bool evbuffer::remove_callback(evbuffer_cb_entry* entry) {
  evbuffer_cb_entry** place = &in_->callbacks;
  while (*place != nullptr && *place != entry) place = &(*place)->next;
  if (*place == nullptr || entry->is_ended) return false;
  if (in_->calling != 0) {
    entry->is_ended = in_->has_ended_callbacks = true;
  } else {
    *place = entry->next;
    release(entry);
  }
  return true;
}

evbuffer_cb_entry* evbuffer::find_callback(evbuffer_cb_func callback, void* argument) const {
  evbuffer_cb_entry* entry = in_->callbacks;
  while (entry != nullptr &&
         (entry->is_ended || entry->callback != callback || entry->argument != argument)) {
    entry = entry->next;
  }
  return entry;
}

void evbuffer::remove_callbacks() {
  for (evbuffer_cb_entry* entry = in_->callbacks; entry != nullptr;) {
    evbuffer_cb_entry* next = entry->next;
    remove_callback(entry);
    entry = next;
  }
}

bool evbuffer::defer(event_base* base) {
  if (!hold()) return false;
  if (in_->deferred == nullptr) {
    in_->deferred = static_cast<DeferredCall*>(allocate_zeroed(sizeof(DeferredCall)));
    if (in_->deferred == nullptr) return false;
  }
  if (in_->deferred->is_scheduled) return true;
  return event_assign(&in_->deferred->ev, base, -1, 0, call_from_loop, this) == 0;
}

// ---- the exported functions

evbuffer_cb_entry* evbuffer_add_cb(evbuffer* buffer, evbuffer_cb_func callback, void* argument) {
  const Use use(buffer);
  return buffer->add_callback(callback, nullptr, argument);
}

int evbuffer_remove_cb_entry(evbuffer* buffer, evbuffer_cb_entry* entry) {
  const Use use(buffer);
  return buffer->remove_callback(entry) ? 0 : -1;
}

int evbuffer_remove_cb(evbuffer* buffer, evbuffer_cb_func callback, void* argument) {
  const Use use(buffer);
  evbuffer_cb_entry* entry = buffer->find_callback(callback, argument);
  return entry != nullptr && buffer->remove_callback(entry) ? 0 : -1;
}

int evbuffer_setcb(evbuffer* buffer, evbuffer_cb callback, void* argument) {
  const Use use(buffer);
  buffer->remove_callbacks();
  if (callback == nullptr) return 0;
  return buffer->add_callback(nullptr, callback, argument) != nullptr ? 0 : -1;
}

int evbuffer_cb_set_flags(evbuffer* buffer, evbuffer_cb_entry* entry, ev_uint32_t flags) {
  const Use use(buffer);
  if ((flags & EVBUFFER_CB_ENABLED) != 0) entry->is_enabled = true;
  return 0;
}

int evbuffer_cb_clear_flags(evbuffer* buffer, evbuffer_cb_entry* entry, ev_uint32_t flags) {
  const Use use(buffer);
  if ((flags & EVBUFFER_CB_ENABLED) != 0) entry->is_enabled = false;
  return 0;
}

int evbuffer_defer_callbacks(evbuffer* buffer, event_base* base) {
  const Use use(buffer);
  return buffer->defer(base) ? 0 : -1;
}
