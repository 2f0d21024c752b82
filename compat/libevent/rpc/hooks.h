// Hooks: what a program wants to see, change, hold up or refuse on the way of a call, on the
// server's side (an evrpc_base) or the client's (an evrpc_pool).
//
// Semantics: event2/rpc.h; the order, that the hooks after one that pauses are not asked any more,
// and that what is resumed goes on unless it is terminated: probes.
//
// Both sides begin with a HookOwner, which is what the public functions take as a void*. It lives
// as long as someone holds it: the program, until it frees the base or the pool, and each call that
// is on its way through here, so that a hook or a callback may do so.
#pragma once

#include <sys/queue.h>

#include "compat/libevent/rpc_api.h"

namespace spate::libevent {

struct Hook {
  TAILQ_ENTRY(Hook) next;
  int (*ask)(void* context, evhttp_request* request, evbuffer* bytes, void* arg);
  void* arg;
  bool is_removed;  // While hooks are being asked it stays in the list.
};
TAILQ_HEAD(HookList, Hook);

// A call that is held up: a member of it. It is in its owner's list, and goes on as soon as it is
// taken out of that.
struct Paused {
  TAILQ_ENTRY(Paused) next;
  void* context;
  void (*go_on)(void* context, EVRPC_HOOK_RESULT result);
};
TAILQ_HEAD(PausedList, Paused);

struct HookOwner {
  HookList hooks[2];  // By EVRPC_HOOK_TYPE.
  PausedList paused;
  int asking;  // How many calls are among the hooks right now.
  int holds;
  bool is_freed;  // By the program.
};

// The owner's memory is taken by allocate_zeroed(), and given back with the last hold. init() takes
// the first, which is the program's.
void init(HookOwner& owner);
void hold(HookOwner& owner);
void drop(HookOwner& owner);

// Gives back all hooks and marks the owner as freed. The paused are the owner's own affair.
void free_hooks(HookOwner& owner);

// Asks the hooks. The context begins with a pointer to what they remember, `meta`; any hook at all
// makes it remember the connection. EVRPC_TERMINATE also if a hook has freed the owner.
EVRPC_HOOK_RESULT ask_hooks(HookOwner& owner, EVRPC_HOOK_TYPE type, evrpc_hook_meta** meta,
                            evhttp_request* request, evbuffer* bytes,
                            evhttp_connection* connection);

void pause(HookOwner& owner, Paused& paused, void* context,
           void (*go_on)(void* context, EVRPC_HOOK_RESULT result));

void free_meta(evrpc_hook_meta* meta);

// Where the calls of a name go to; null if there is no memory.
char* path_of(const char* name);

}  // namespace spate::libevent
