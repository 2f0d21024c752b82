// Remote calls, the client's side: a pool of connections, each of which carries one call at a time.
//
// Semantics: event2/rpc.h and rpc_struct.h; probed: the meaning of each error, which of them clear
// the reply, when the time of a call begins, and that a response is read whatever its status.
#include "compat/libevent/http/connection.h"  // For the timeout of a connection.
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/rpc/hooks.h"

using namespace spate::libevent;

namespace {

struct Connection {
  TAILQ_ENTRY(Connection) next;
  evhttp_connection* http;
  int calls;  // Calls sent and not answered. A paused call is resumed even if there is another.
};

// The state of a call, which determines the owner of its evhttp_request.
enum class Stage {
  queued,     // No request exists.
  busy,       // In a hook or in a callback, of a function that gives back the call afterwards.
  held_back,  // Paused before it is sent. Ours.
  sent,       // evhttp's.
  held_up,    // Paused with its answer. Ours.
};

}  // namespace

struct evrpc_request_wrapper {
  evrpc_hook_meta* meta;  // First member: this is the context of hooks.
  TAILQ_ENTRY(evrpc_request_wrapper) next;
  evrpc_pool* chosen;  // Set by the program, which may change it.
  evrpc_pool* pool;    // The pool in which it was made, and which it holds; null before.
  evhttp_connection* connection;
  evhttp_request* http;
  Stage stage;
  Paused paused;
  event timer;
  char* name;
  void* request;
  void* reply;
  void (*marshal)(evbuffer*, void*);
  void (*clear)(void*);
  int (*unmarshal)(void*, evbuffer*);
  void (*done)(evrpc_status*, void*, void*, void*);
  void* arg;
};

namespace {

using Call = evrpc_request_wrapper;

TAILQ_HEAD(ConnectionList, Connection);
TAILQ_HEAD(CallList, evrpc_request_wrapper);

}  // namespace

struct evrpc_pool {
  HookOwner owner;
  event_base* base;  // May be null: then the current base is used.
  ConnectionList connections;
  CallList queued;
  CallList started;
  int timeout;  // In seconds; not positive: none.
};

namespace {

Connection* find(const evrpc_pool& pool, const evhttp_connection* http) {
  Connection* connection;
  TAILQ_FOREACH(connection, &pool.connections, next) {
    if (connection->http == http) break;
  }
  return connection;
}

Connection* find_idle(const evrpc_pool& pool) {
  Connection* connection;
  TAILQ_FOREACH(connection, &pool.connections, next) {
    if (connection->calls == 0) break;
  }
  return connection;
}

void free_call(Call* call) {
  free_meta(call->meta);
  release(call->name);
  release(call);
}

// Removes the call from one of the pool's lists.
void end_call(Call* call, CallList& list) {
  evrpc_pool& pool = *call->pool;
  TAILQ_REMOVE(&list, call, next);
  event_debug_unassign(&call->timer);
  free_call(call);
  drop(pool.owner);
}

void start(Call* call);

// Starts one call, if there is a connection for it. It runs for each call that is made and each
// that is answered; not, as in libevent, for one that could not be started: calls queued after that
// one wait for the next.
void schedule(evrpc_pool& pool, const Connection* connection) {
  Call* call = TAILQ_FIRST(&pool.queued);
  if (call == nullptr || connection == nullptr) return;
  TAILQ_REMOVE(&pool.queued, call, next);
  TAILQ_INSERT_TAIL(&pool.started, call, next);
  call->connection = connection->http;
  start(call);
}

// Calls the program back, unless it has freed the pool meanwhile, and releases the call.
void finish(Call* call, int error) {
  evrpc_pool& pool = *call->pool;
  hold(pool.owner);
  evhttp_request* http = call->http;
  const bool owns_http = call->stage == Stage::held_up;
  call->stage = Stage::busy;
  if (!pool.owner.is_freed) {
    evrpc_status status{error, http};
    call->done(&status, call->request, call->reply, call->arg);
  }
  if (owns_http) evhttp_request_free(http);
  end_call(call, pool.started);
  if (error != EVRPC_STATUS_ERR_UNSTARTED) schedule(pool, find_idle(pool));
  drop(pool.owner);
}

void finish_cleared(Call* call, int error) {
  if (!call->pool->owner.is_freed) call->clear(call->reply);
  finish(call, error);
}

// ---- sending

// Between these two, evhttp owns it.
void note_sent(Call* call, Connection* connection) {
  const timeval timeout{call->pool->timeout, 0};
  call->stage = Stage::sent;
  ++connection->calls;
  if (timeout.tv_sec > 0) event_add(&call->timer, &timeout);
}

void note_returned(Call* call) {
  Connection* connection = find(*call->pool, call->connection);
  if (connection != nullptr && connection->calls > 0) --connection->calls;
  event_del(&call->timer);
  call->stage = Stage::busy;
  call->http = nullptr;
}

void refuse(Call* call) {
  if (call->http != nullptr) evhttp_request_free(call->http);
  call->http = nullptr;
  finish(call, EVRPC_STATUS_ERR_UNSTARTED);
}

void send(void* context, EVRPC_HOOK_RESULT result) {
  auto* call = static_cast<Call*>(context);
  call->stage = Stage::busy;
  Connection* connection = find(*call->pool, call->connection);  // May be removed.
  char* path = path_of(call->name);
  if (result == EVRPC_TERMINATE || connection == nullptr || path == nullptr) {
    release(path);
    return refuse(call);
  }
  note_sent(call, connection);
  const int status = evhttp_make_request(connection->http, call->http, EVHTTP_REQ_POST, path);
  release(path);
  if (status == 0) return;
  note_returned(call);
  refuse(call);
}

// ---- receiving

void receive(void* context, EVRPC_HOOK_RESULT result) {
  auto* call = static_cast<Call*>(context);
  if (result == EVRPC_TERMINATE) return finish_cleared(call, EVRPC_STATUS_ERR_HOOKABORTED);
  if (call->unmarshal(call->reply, evhttp_request_get_input_buffer(call->http)) == -1) {
    return finish_cleared(call, EVRPC_STATUS_ERR_BADPAYLOAD);
  }
  finish(call, EVRPC_STATUS_ERR_NONE);
}

// Without a response, http is null.
void on_http(evhttp_request* http, void* arg) {
  auto* call = static_cast<Call*>(arg);
  HookOwner& owner = call->pool->owner;
  note_returned(call);
  if (http == nullptr) return finish_cleared(call, EVRPC_STATUS_ERR_TIMEOUT);
  call->http = http;
  const EVRPC_HOOK_RESULT result =
      ask_hooks(owner, EVRPC_INPUT, &call->meta, http, evhttp_request_get_input_buffer(http),
                call->connection);
  if (result != EVRPC_PAUSE) return receive(call, result);
  evhttp_request_own(http);
  call->stage = Stage::held_up;
  pause(owner, call->paused, call, receive);
}

void on_timeout(evutil_socket_t, short, void* arg) {
  auto* call = static_cast<Call*>(arg);
  evhttp_request* http = call->http;
  note_returned(call);
  evhttp_cancel_request(http);
  finish_cleared(call, EVRPC_STATUS_ERR_TIMEOUT);
}

void start(Call* call) {
  HookOwner& owner = call->pool->owner;
  call->stage = Stage::busy;
  call->http = evhttp_request_new(on_http, call);
  if (call->http == nullptr) return refuse(call);
  evbuffer* bytes = evhttp_request_get_output_buffer(call->http);
  call->marshal(bytes, call->request);
  const EVRPC_HOOK_RESULT result =
      ask_hooks(owner, EVRPC_OUTPUT, &call->meta, call->http, bytes, call->connection);
  if (result != EVRPC_PAUSE) return send(call, result);
  call->stage = Stage::held_back;
  pause(owner, call->paused, call, send);
}

// For a pool that is being freed.
void abandon(Call* call) {
  evhttp_request* http = call->http;
  switch (call->stage) {
    case Stage::busy:
      return;
    case Stage::sent:
      note_returned(call);
      evhttp_cancel_request(http);
      break;
    case Stage::held_back:
    case Stage::held_up:
      evhttp_request_free(http);
      break;
    case Stage::queued:
      return end_call(call, call->pool->queued);
  }
  end_call(call, call->pool->started);
}

void abandon_all(CallList& calls) {
  Call* following;
  for (Call* call = TAILQ_FIRST(&calls); call != nullptr; call = following) {
    following = TAILQ_NEXT(call, next);
    abandon(call);
  }
}

}  // namespace

// ---- the exported functions: pools

evrpc_pool* evrpc_pool_new(event_base* base) {
  auto* pool = static_cast<evrpc_pool*>(allocate_zeroed(sizeof(evrpc_pool)));
  if (pool == nullptr) return nullptr;
  init(pool->owner);
  pool->base = base;
  TAILQ_INIT(&pool->connections);
  TAILQ_INIT(&pool->queued);
  TAILQ_INIT(&pool->started);
  return pool;
}

void evrpc_pool_free(evrpc_pool* pool) {
  free_hooks(pool->owner);
  abandon_all(pool->queued);
  abandon_all(pool->started);
  while (Connection* connection = TAILQ_FIRST(&pool->connections)) {
    TAILQ_REMOVE(&pool->connections, connection, next);
    evhttp_connection_free(connection->http);
    release(connection);
  }
  drop(pool->owner);
}

void evrpc_pool_add_connection(evrpc_pool* pool, evhttp_connection* http) {
  auto* connection = static_cast<Connection*>(allocate_zeroed(sizeof(Connection)));
  if (connection == nullptr) return warn("%s: no memory", __func__);
  connection->http = http;
  if (pool->base != nullptr) evhttp_connection_set_base(http, pool->base);
  if (pool->timeout > 0 && !evutil_timerisset(&http->timeout)) {
    evhttp_connection_set_timeout(http, pool->timeout);
  }
  TAILQ_INSERT_TAIL(&pool->connections, connection, next);
  schedule(*pool, connection);
}

void evrpc_pool_remove_connection(evrpc_pool* pool, evhttp_connection* http) {
  Connection* connection = find(*pool, http);
  if (connection == nullptr) return;
  TAILQ_REMOVE(&pool->connections, connection, next);
  release(connection);
}

void evrpc_pool_set_timeout(evrpc_pool* pool, int seconds) {
  pool->timeout = seconds;
  const Connection* connection;
  TAILQ_FOREACH(connection, &pool->connections, next) {
    evhttp_connection_set_timeout(connection->http, seconds);
  }
}

// ---- calls

evrpc_request_wrapper* evrpc_make_request_ctx(evrpc_pool* pool, void* request, void* reply,
                                              const char* name, void (*marshal)(evbuffer*, void*),
                                              void (*clear)(void*),
                                              int (*unmarshal)(void*, evbuffer*),
                                              void (*done)(evrpc_status*, void*, void*, void*),
                                              void* arg) {
  auto* call = static_cast<Call*>(allocate_zeroed(sizeof(Call)));
  if (call == nullptr) return nullptr;
  call->name = duplicate(name);
  if (call->name == nullptr) {
    free_call(call);
    return nullptr;
  }
  call->chosen = pool;
  call->request = request;
  call->reply = reply;
  call->marshal = marshal;
  call->clear = clear;
  call->unmarshal = unmarshal;
  call->done = done;
  call->arg = arg;
  return call;
}

// libevent aborts if the pool has no connection; here the call waits for one.
int evrpc_make_request(evrpc_request_wrapper* call) {
  if (call->chosen == nullptr || call->pool != nullptr) return -1;
  evrpc_pool& pool = *call->chosen;
  call->pool = &pool;
  event_assign(&call->timer, pool.base, -1, 0, on_timeout, call);
  hold(pool.owner);
  TAILQ_INSERT_TAIL(&pool.queued, call, next);
  schedule(pool, find_idle(pool));
  return 0;
}

int evrpc_send_request_generic(evrpc_pool* pool, void* request, void* reply,
                               void (*done)(evrpc_status*, void*, void*, void*), void* arg,
                               const char* name, void (*marshal)(evbuffer*, void*),
                               void (*clear)(void*), int (*unmarshal)(void*, evbuffer*)) {
  evrpc_request_wrapper* call =
      evrpc_make_request_ctx(pool, request, reply, name, marshal, clear, unmarshal, done, arg);
  if (call != nullptr) return evrpc_make_request(call);
  evrpc_status status{EVRPC_STATUS_ERR_UNSTARTED, nullptr};
  done(&status, request, reply, arg);
  return -1;
}

evrpc_pool* evrpc_request_get_pool(evrpc_request_wrapper* call) { return call->chosen; }

void evrpc_request_set_pool(evrpc_request_wrapper* call, evrpc_pool* pool) { call->chosen = pool; }

void evrpc_request_set_cb(evrpc_request_wrapper* call,
                          void (*done)(evrpc_status*, void*, void*, void*), void* arg) {
  call->done = done;
  call->arg = arg;
}
