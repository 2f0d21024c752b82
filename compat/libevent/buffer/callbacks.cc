// Who is told that a buffer has changed, and when.
//
// Semantics: event2/buffer.h (evbuffer_add_cb, evbuffer_defer_callbacks), event2/buffer_compat.h
// (evbuffer_setcb); the newest is called first, a change that nobody is there to hear of is
// forgotten, and one that happens inside a callback is told at once: probes.
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
  const evbuffer_cb_info change{size_ + deleted_ - added_, added_, deleted_};
  added_ = deleted_ = 0;
  if (callbacks_ != nullptr && deferred_ != nullptr) {
    schedule(change);
  } else if (callbacks_ != nullptr) {
    call_callbacks(change);
  }
  if (watcher_ != nullptr) watcher_(owner_, change);
}

void evbuffer::schedule(const evbuffer_cb_info& change) {
  deferred_->added += change.n_added;
  deferred_->deleted += change.n_deleted;
  if (deferred_->is_scheduled) return;
  deferred_->is_scheduled = true;
  take();
  activate_deferred(deferred_->ev);
}

void evbuffer::call_deferred() {
  deferred_->is_scheduled = false;
  const std::size_t added = std::exchange(deferred_->added, 0);
  const std::size_t deleted = std::exchange(deferred_->deleted, 0);
  call_callbacks({size_ + deleted - added, added, deleted});
}

void evbuffer::call_callbacks(const evbuffer_cb_info& change) {
  ++calling_;
  for (evbuffer_cb_entry* entry = callbacks_; entry != nullptr; entry = entry->next) {
    if (entry->is_enabled && !entry->is_ended) call(this, *entry, change);
  }
  --calling_;
  if (calling_ == 0 && has_ended_callbacks_) release_ended_callbacks();
}

void evbuffer::release_ended_callbacks() {
  has_ended_callbacks_ = false;
  evbuffer_cb_entry** place = &callbacks_;
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
  auto* entry = static_cast<evbuffer_cb_entry*>(allocate(sizeof(evbuffer_cb_entry)));
  if (entry == nullptr) return nullptr;
  *entry = {callbacks_, callback, old_callback, argument, true, false};
  callbacks_ = entry;
  return entry;
}

bool evbuffer::remove_callback(evbuffer_cb_entry* entry) {
  evbuffer_cb_entry** place = &callbacks_;
  while (*place != nullptr && *place != entry) place = &(*place)->next;
  if (*place == nullptr || entry->is_ended) return false;
  if (calling_ != 0) {
    entry->is_ended = has_ended_callbacks_ = true;
  } else {
    *place = entry->next;
    release(entry);
  }
  return true;
}

evbuffer_cb_entry* evbuffer::find_callback(evbuffer_cb_func callback, void* argument) const {
  evbuffer_cb_entry* entry = callbacks_;
  while (entry != nullptr &&
         (entry->is_ended || entry->callback != callback || entry->argument != argument)) {
    entry = entry->next;
  }
  return entry;
}

void evbuffer::remove_callbacks() {
  for (evbuffer_cb_entry* entry = callbacks_; entry != nullptr;) {
    evbuffer_cb_entry* next = entry->next;
    remove_callback(entry);
    entry = next;
  }
}

bool evbuffer::defer(event_base* base) {
  if (deferred_ == nullptr) {
    deferred_ = static_cast<DeferredCall*>(allocate_zeroed(sizeof(DeferredCall)));
    if (deferred_ == nullptr) return false;
  }
  if (deferred_->is_scheduled) return true;
  return event_assign(&deferred_->ev, base, -1, 0, call_from_loop, this) == 0;
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
