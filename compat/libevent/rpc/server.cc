// Remote calls, the server's side: each name is a path of an HTTP server, to which a request is
// posted.
//
// Semantics: event2/rpc.h and rpc_struct.h; probed: the paths, the requests answered with 503, the
// state that a callback finds, and the owner of the struct of evrpc_register_rpc().
#include <cstddef>

#include "compat/libevent/memory.h"
#include "compat/libevent/rpc/hooks.h"

using namespace spate::libevent;

// A request in progress. The first six members are those of EVRPC_STRUCT(), which a program's
// callback casts this to.
struct evrpc_req_generic {
  evrpc_hook_meta* meta;
  void* request;
  void* reply;
  evrpc* rpc;
  evhttp_request* http;
  evbuffer* data;
  // Private members:
  evrpc_base* base;
  TAILQ_ENTRY(evrpc_req_generic) next;
  Paused paused;
};

struct NoMessage;
EVRPC_HEADER(layout, NoMessage, NoMessage)

namespace {

static_assert(offsetof(evrpc_req__layout, hook_meta) == offsetof(evrpc_req_generic, meta));
static_assert(offsetof(evrpc_req__layout, request) == offsetof(evrpc_req_generic, request));
static_assert(offsetof(evrpc_req__layout, reply) == offsetof(evrpc_req_generic, reply));
static_assert(offsetof(evrpc_req__layout, rpc) == offsetof(evrpc_req_generic, rpc));
static_assert(offsetof(evrpc_req__layout, http_req) == offsetof(evrpc_req_generic, http));
static_assert(offsetof(evrpc_req__layout, rpc_data) == offsetof(evrpc_req_generic, data));
static_assert(sizeof(evrpc) == 120);

TAILQ_HEAD(RpcList, evrpc);
TAILQ_HEAD(RequestList, evrpc_req_generic);

}  // namespace

// Each of its requests holds it, too.
struct evrpc_base {
  HookOwner owner;
  evhttp* http;
  RpcList registered;
  RpcList unregistered;  // They stay while one of their requests is in progress.
  RequestList requests;
};

namespace {

// ---- registration

evrpc* find(RpcList& rpcs, const char* name) {
  evrpc* rpc;
  TAILQ_FOREACH(rpc, &rpcs, next) {
    if (std::string_view(rpc->uri) == name) break;
  }
  return rpc;
}

void free_rpc(evrpc* rpc) {
  release(const_cast<char*>(rpc->uri));
  release(rpc);
}

bool is_used(const evrpc_base& base, const evrpc* rpc) {
  const evrpc_req_generic* request;
  TAILQ_FOREACH(request, &base.requests, next) {
    if (request->rpc == rpc) return true;
  }
  return false;
}

void free_unused(evrpc_base& base) {
  evrpc* following;
  for (evrpc* rpc = TAILQ_FIRST(&base.unregistered); rpc != nullptr; rpc = following) {
    following = TAILQ_NEXT(rpc, next);
    if (is_used(base, rpc)) continue;
    TAILQ_REMOVE(&base.unregistered, rpc, next);
    free_rpc(rpc);
  }
}

int unregister(evrpc_base& base, evrpc* rpc) {
  char* path = path_of(rpc->uri);
  if (path == nullptr) return -1;
  TAILQ_REMOVE(&base.registered, rpc, next);
  TAILQ_INSERT_TAIL(&base.unregistered, rpc, next);
  evhttp_del_cb(base.http, path);
  release(path);
  free_unused(base);
  return 0;
}

// ---- requests

evrpc_req_generic* new_request(evrpc* rpc, evhttp_request* http) {
  auto* request = static_cast<evrpc_req_generic*>(allocate_zeroed(sizeof(evrpc_req_generic)));
  if (request == nullptr) return nullptr;
  request->rpc = rpc;
  request->http = http;
  request->base = rpc->base;
  TAILQ_INSERT_TAIL(&rpc->base->requests, request, next);
  hold(rpc->base->owner);
  return request;
}

void free_request(evrpc_req_generic* request) {
  evrpc_base& base = *request->base;
  const evrpc& rpc = *request->rpc;
  if (request->request != nullptr) rpc.request_free(request->request);
  if (request->reply != nullptr) rpc.reply_free(request->reply);
  if (request->data != nullptr) evbuffer_free(request->data);
  free_meta(request->meta);
  TAILQ_REMOVE(&base.requests, request, next);
  release(request);
  free_unused(base);
  drop(base.owner);
}

void refuse(evhttp_request* http) { evhttp_send_error(http, HTTP_SERVUNAVAIL, nullptr); }

void fail(evrpc_req_generic* request) {
  evhttp_request* http = request->http;
  free_request(request);
  refuse(http);
}

bool make_messages(evrpc_req_generic* request) {
  const evrpc& rpc = *request->rpc;
  request->request = rpc.request_new(rpc.request_new_arg);
  if (request->request == nullptr) return false;
  evbuffer* bytes = evhttp_request_get_input_buffer(request->http);
  if (rpc.request_unmarshal(request->request, bytes) == -1) return false;
  request->reply = rpc.reply_new(rpc.reply_new_arg);
  return request->reply != nullptr;
}

void call(void* context, EVRPC_HOOK_RESULT result) {
  auto* request = static_cast<evrpc_req_generic*>(context);
  if (result == EVRPC_TERMINATE || !make_messages(request)) return fail(request);
  request->rpc->cb(request, request->rpc->cb_arg);
}

void send(void* context, EVRPC_HOOK_RESULT result) {
  auto* request = static_cast<evrpc_req_generic*>(context);
  if (result == EVRPC_TERMINATE) return fail(request);
  evkeyvalq* headers = evhttp_request_get_output_headers(request->http);
  if (evhttp_find_header(headers, "Content-Type") == nullptr) {
    evhttp_add_header(headers, "Content-Type", "application/octet-stream");
  }
  evhttp_send_reply(request->http, HTTP_OK, "OK", request->data);
  free_request(request);
}

// Continues after the hooks, now or when it is resumed.
void ask_then(evrpc_req_generic* request, EVRPC_HOOK_TYPE type, evbuffer* bytes,
              void (*go_on)(void* context, EVRPC_HOOK_RESULT result)) {
  HookOwner& owner = request->base->owner;
  const EVRPC_HOOK_RESULT result = ask_hooks(owner, type, &request->meta, request->http, bytes,
                                             evhttp_request_get_connection(request->http));
  if (result == EVRPC_PAUSE) {
    pause(owner, request->paused, request, go_on);
  } else {
    go_on(request, result);
  }
}

void on_http(evhttp_request* http, void* arg) {
  evbuffer* bytes = evhttp_request_get_input_buffer(http);
  if (evhttp_request_get_command(http) != EVHTTP_REQ_POST || evbuffer_get_length(bytes) == 0) {
    return refuse(http);
  }
  evrpc_req_generic* request = new_request(static_cast<evrpc*>(arg), http);
  if (request == nullptr) return refuse(http);
  ask_then(request, EVRPC_INPUT, bytes, call);
}

}  // namespace

// ---- the exported functions

evrpc_base* evrpc_init(evhttp* server) {
  auto* base = static_cast<evrpc_base*>(allocate_zeroed(sizeof(evrpc_base)));
  if (base == nullptr) return nullptr;
  init(base->owner);
  base->http = server;
  TAILQ_INIT(&base->registered);
  TAILQ_INIT(&base->unregistered);
  TAILQ_INIT(&base->requests);
  return base;
}

// Requests that wait for a hook are no longer answered, as in libevent.
void evrpc_free(evrpc_base* base) {
  free_hooks(base->owner);
  while (evrpc* rpc = TAILQ_FIRST(&base->registered)) {
    if (unregister(*base, rpc) != 0) return;  // The server still has it, so the base stays.
  }
  while (Paused* paused = TAILQ_FIRST(&base->owner.paused)) {
    TAILQ_REMOVE(&base->owner.paused, paused, next);
    free_request(static_cast<evrpc_req_generic*>(paused->context));
  }
  drop(base->owner);
}

int evrpc_register_rpc(evrpc_base* base, evrpc* rpc, void (*cb)(evrpc_req_generic*, void*),
                       void* arg) {
  char* path = path_of(rpc->uri);
  if (path == nullptr) return -1;
  rpc->base = base;
  rpc->cb = cb;
  rpc->cb_arg = arg;
  TAILQ_INSERT_TAIL(&base->registered, rpc, next);
  evhttp_set_cb(base->http, path, on_http, rpc);
  release(path);
  return 0;
}

int evrpc_register_generic(evrpc_base* base, const char* name,
                           void (*cb)(evrpc_req_generic*, void*), void* arg,
                           void* (*req_new)(void*), void* req_new_arg, void (*req_free)(void*),
                           int (*req_unmarshal)(void*, evbuffer*), void* (*rpl_new)(void*),
                           void* rpl_new_arg, void (*rpl_free)(void*), int (*rpl_complete)(void*),
                           void (*rpl_marshal)(evbuffer*, void*)) {
  auto* rpc = static_cast<evrpc*>(allocate_zeroed(sizeof(evrpc)));
  if (rpc == nullptr) return -1;
  rpc->uri = duplicate(name);
  rpc->request_new = req_new;
  rpc->request_new_arg = req_new_arg;
  rpc->request_free = req_free;
  rpc->request_unmarshal = req_unmarshal;
  rpc->reply_new = rpl_new;
  rpc->reply_new_arg = rpl_new_arg;
  rpc->reply_free = rpl_free;
  rpc->reply_complete = rpl_complete;
  rpc->reply_marshal = rpl_marshal;
  if (rpc->uri != nullptr && evrpc_register_rpc(base, rpc, cb, arg) == 0) return 0;
  free_rpc(rpc);
  return -1;
}

int evrpc_unregister_rpc(evrpc_base* base, const char* name) {
  evrpc* rpc = find(base->registered, name);
  return rpc != nullptr ? unregister(*base, rpc) : -1;
}

void evrpc_request_done(evrpc_req_generic* request) {
  if (request->rpc->reply_complete(request->reply) == -1) return fail(request);
  request->data = evbuffer_new();
  if (request->data == nullptr) return fail(request);
  request->rpc->reply_marshal(request->data, request->reply);
  ask_then(request, EVRPC_OUTPUT, request->data, send);
}

void* evrpc_get_request(evrpc_req_generic* request) { return request->request; }

void* evrpc_get_reply(evrpc_req_generic* request) { return request->reply; }
