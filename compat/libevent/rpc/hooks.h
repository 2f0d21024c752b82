// Hooks: a program's functions that see, change, pause or refuse a call on its way, on the server's
// side (an evrpc_base) or the client's (an evrpc_pool).
//
// Semantics: event2/rpc.h; probed: the order, that hooks after one that pauses are not called any
// more, and that a resumed call continues unless it is terminated.
//
// Both sides begin with a HookOwner, to which the void* of the public functions points. It lives as
// long as someone holds it: the program, until it frees the base or the pool, and each call that is
// on its way through here, so that a hook or a callback may do so.
#pragma once

#include <sys/queue.h>

#include "compat/libevent/rpc_api.h"

namespace spate::libevent {

struct Hook {
  TAILQ_ENTRY(Hook) next;
  int (*ask)(void* context, evhttp_request* request, evbuffer* bytes, void* arg);
  void* arg;
  bool is_removed;  // It stays in the list while hooks are being called.
};
TAILQ_HEAD(HookList, Hook);

// A member of a paused call. It is in its owner's list, and the call continues when it is removed
// from that.
struct Paused {
  TAILQ_ENTRY(Paused) next;
  void* context;
  void (*go_on)(void* context, EVRPC_HOOK_RESULT result);
};
TAILQ_HEAD(PausedList, Paused);

struct HookOwner {
  HookList hooks[2];  // By EVRPC_HOOK_TYPE.
  PausedList paused;
  int asking;  // The number of calls whose hooks are running.
  int holds;
  bool is_freed;  // By the program.
};

// The owner's memory is allocated by allocate_zeroed(), and freed with the last hold. init() takes
// the first, which is the program's.
void init(HookOwner& owner);
void hold(HookOwner& owner);
void drop(HookOwner& owner);

// Frees all hooks and marks the owner as freed. The owner handles the paused calls.
void free_hooks(HookOwner& owner);

// Calls the hooks. The context begins with a pointer to their stored data, `meta`; if there is any
// hook, the connection is stored there. Returns EVRPC_TERMINATE also if a hook has freed the owner.
EVRPC_HOOK_RESULT ask_hooks(HookOwner& owner, EVRPC_HOOK_TYPE type, evrpc_hook_meta** meta,
                            evhttp_request* request, evbuffer* bytes,
                            evhttp_connection* connection);

void pause(HookOwner& owner, Paused& paused, void* context,
           void (*go_on)(void* context, EVRPC_HOOK_RESULT result));

void free_meta(evrpc_hook_meta* meta);

// Returns the path of a name's calls; null without memory.
char* path_of(const char* name);

}  // namespace spate::libevent
