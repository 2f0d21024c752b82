#include "compat/libevent/rpc/hooks.h"

#include <cstring>

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

struct Entry {
  TAILQ_ENTRY(Entry) next;
  char* key;
  void* data;
  std::size_t size;
};

void free_entry(Entry* entry) {
  release(entry->key);
  release(entry->data);
  release(entry);
}

Entry* new_entry(const char* key, const void* data, std::size_t size) {
  auto* entry = static_cast<Entry*>(allocate_zeroed(sizeof(Entry)));
  if (entry == nullptr) return nullptr;
  entry->key = duplicate(key);
  entry->data = allocate(size);
  entry->size = size;
  if (entry->key == nullptr || (entry->data == nullptr && size != 0)) {
    free_entry(entry);
    return nullptr;
  }
  if (size != 0) std::memcpy(entry->data, data, size);
  return entry;
}

}  // namespace

// The data that the hooks of one call have stored. The oldest of several entries with one key
// counts.
struct evrpc_hook_meta {
  evhttp_connection* connection;
  TAILQ_HEAD(, Entry) entries;
};

namespace {

evrpc_hook_meta* meta_in(evrpc_hook_meta** meta) {
  if (*meta == nullptr) {
    *meta = static_cast<evrpc_hook_meta*>(allocate_zeroed(sizeof(evrpc_hook_meta)));
    if (*meta != nullptr) TAILQ_INIT(&(*meta)->entries);
  }
  return *meta;
}

// The context passed to a hook.
evrpc_hook_meta** meta_of(void* context) { return static_cast<evrpc_hook_meta**>(context); }

Entry* find(evrpc_hook_meta* meta, const char* key) {
  Entry* entry = nullptr;
  if (meta == nullptr) return nullptr;
  TAILQ_FOREACH(entry, &meta->entries, next) {
    if (std::strcmp(entry->key, key) == 0) break;
  }
  return entry;
}

// Returns null for an invalid type of hook: libevent aborts.
HookList* hooks_of(void* vbase, EVRPC_HOOK_TYPE type) {
  if (type != EVRPC_INPUT && type != EVRPC_OUTPUT) return nullptr;
  return &static_cast<HookOwner*>(vbase)->hooks[type];
}

void sweep(HookList& hooks) {
  Hook* following;
  for (Hook* hook = TAILQ_FIRST(&hooks); hook != nullptr; hook = following) {
    following = TAILQ_NEXT(hook, next);
    if (!hook->is_removed) continue;
    TAILQ_REMOVE(&hooks, hook, next);
    release(hook);
  }
}

void sweep_all(HookOwner& owner) {
  if (owner.asking != 0) return;
  for (HookList& hooks : owner.hooks) sweep(hooks);
}

// Any other result terminates the call.
EVRPC_HOOK_RESULT ask(HookList& hooks, evrpc_hook_meta** context, evhttp_request* request,
                      evbuffer* bytes) {
  Hook* hook;
  TAILQ_FOREACH(hook, &hooks, next) {
    if (hook->is_removed) continue;
    const int result = hook->ask(context, request, bytes, hook->arg);
    if (result == EVRPC_PAUSE) return EVRPC_PAUSE;
    if (result != EVRPC_CONTINUE) return EVRPC_TERMINATE;
  }
  return EVRPC_CONTINUE;
}

}  // namespace

void spate::libevent::init(HookOwner& owner) {
  for (HookList& hooks : owner.hooks) TAILQ_INIT(&hooks);
  TAILQ_INIT(&owner.paused);
  owner.holds = 1;
}

void spate::libevent::hold(HookOwner& owner) { ++owner.holds; }

void spate::libevent::drop(HookOwner& owner) {
  if (--owner.holds == 0) release(&owner);
}

void spate::libevent::free_hooks(HookOwner& owner) {
  for (HookList& hooks : owner.hooks) {
    Hook* hook;
    TAILQ_FOREACH(hook, &hooks, next) hook->is_removed = true;
  }
  sweep_all(owner);
  owner.is_freed = true;
}

EVRPC_HOOK_RESULT spate::libevent::ask_hooks(HookOwner& owner, EVRPC_HOOK_TYPE type,
                                             evrpc_hook_meta** meta, evhttp_request* request,
                                             evbuffer* bytes, evhttp_connection* connection) {
  HookList& hooks = owner.hooks[type];
  if (TAILQ_EMPTY(&hooks)) return EVRPC_CONTINUE;
  if (meta_in(meta) == nullptr) return EVRPC_TERMINATE;
  (*meta)->connection = connection;
  hold(owner);
  ++owner.asking;
  EVRPC_HOOK_RESULT result = ask(hooks, meta, request, bytes);
  --owner.asking;
  sweep_all(owner);
  if (owner.is_freed) result = EVRPC_TERMINATE;
  drop(owner);
  return result;
}

void spate::libevent::pause(HookOwner& owner, Paused& paused, void* context,
                            void (*go_on)(void* context, EVRPC_HOOK_RESULT result)) {
  paused.context = context;
  paused.go_on = go_on;
  TAILQ_INSERT_TAIL(&owner.paused, &paused, next);
}

void spate::libevent::free_meta(evrpc_hook_meta* meta) {
  if (meta == nullptr) return;
  while (Entry* entry = TAILQ_FIRST(&meta->entries)) {
    TAILQ_REMOVE(&meta->entries, entry, next);
    free_entry(entry);
  }
  release(meta);
}

char* spate::libevent::path_of(const char* name) {
  constexpr char kDirectory[] = "/.rpc.";
  const std::size_t size = sizeof kDirectory + std::strlen(name);
  auto* path = static_cast<char*>(allocate(size));
  if (path != nullptr) evutil_snprintf(path, size, "%s%s", kDirectory, name);
  return path;
}

// ---- the exported functions

void* evrpc_add_hook(void* vbase, EVRPC_HOOK_TYPE type,
                     int (*ask)(void*, evhttp_request*, evbuffer*, void*), void* arg) {
  HookList* hooks = hooks_of(vbase, type);
  if (hooks == nullptr) return nullptr;
  auto* hook = static_cast<Hook*>(allocate_zeroed(sizeof(Hook)));
  if (hook == nullptr) return nullptr;
  hook->ask = ask;
  hook->arg = arg;
  TAILQ_INSERT_TAIL(hooks, hook, next);
  return hook;
}

int evrpc_remove_hook(void* vbase, EVRPC_HOOK_TYPE type, void* handle) {
  HookList* hooks = hooks_of(vbase, type);
  if (hooks == nullptr) return 0;
  Hook* hook;
  TAILQ_FOREACH(hook, hooks, next) {
    if (hook != handle || hook->is_removed) continue;
    hook->is_removed = true;
    sweep_all(*static_cast<HookOwner*>(vbase));
    return 1;
  }
  return 0;
}

int evrpc_resume_request(void* vbase, void* context, EVRPC_HOOK_RESULT result) {
  auto& owner = *static_cast<HookOwner*>(vbase);
  Paused* paused;
  TAILQ_FOREACH(paused, &owner.paused, next) {
    if (paused->context != context) continue;
    TAILQ_REMOVE(&owner.paused, paused, next);
    paused->go_on(context, result);
    return 0;
  }
  return -1;
}

void evrpc_hook_add_meta(void* context, const char* key, const void* data, size_t size) {
  Entry* entry = new_entry(key, data, size);
  evrpc_hook_meta* meta = entry != nullptr ? meta_in(meta_of(context)) : nullptr;
  if (meta == nullptr) {
    warn("%s: no memory", __func__);
    if (entry != nullptr) free_entry(entry);
    return;
  }
  TAILQ_INSERT_TAIL(&meta->entries, entry, next);
}

int evrpc_hook_find_meta(void* context, const char* key, void** data, size_t* size) {
  const Entry* entry = find(*meta_of(context), key);
  if (entry == nullptr) return -1;
  *data = entry->data;
  *size = entry->size;
  return 0;
}

evhttp_connection* evrpc_hook_get_connection(void* context) {
  const evrpc_hook_meta* meta = *meta_of(context);
  return meta != nullptr ? meta->connection : nullptr;
}
