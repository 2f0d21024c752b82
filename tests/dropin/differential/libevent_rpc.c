// Remote calls, case by case: messages sent, calls rejected, hooks, pauses, errors, and the effects
// of freeing a pool or a base in the middle.
// differential: --undefined
// differential settings: debug,locks,changelist,precise
#include "libevent_rpc.h"

static EVRPC_STRUCT(Ask) * held;  // A request without a response yet.

// ---- the server's callbacks

static void show_request(EVRPC_STRUCT(Ask) * rpc) {
  struct evhttp_request* http = EVRPC_REQUEST_HTTP(rpc);
  printf("  server:");
  print_note(rpc->request);
  printf(", method %d, uri %s", evhttp_request_get_command(http), evhttp_request_get_uri(http));
  printf(", rpc %s, data %d, meta %d\n", rpc->rpc->uri, rpc->rpc_data != NULL,
         rpc->hook_meta != NULL);
}

static void fill(EVRPC_STRUCT(Ask) * rpc) {
  struct evrpc_req_generic* generic = (struct evrpc_req_generic*)rpc;
  struct note* request = evrpc_get_request(generic);
  struct note* reply = evrpc_get_reply(generic);
  ev_uint32_t number;
  if (EVTAG_GET(request, number, &number) == 0) EVTAG_ASSIGN(reply, number, number + 1);
  EVTAG_ASSIGN(reply, text, "answer");
  EVTAG_ARRAY_ADD_VALUE(reply, series, 5);
  EVTAG_ARRAY_ADD_VALUE(reply, series, 6);
}

static void on_ask(EVRPC_STRUCT(Ask) * rpc, void* arg) {
  (void)arg;
  show_request(rpc);
  fill(rpc);
  EVRPC_REQUEST_DONE(rpc);
}

static void on_ask_incomplete(EVRPC_STRUCT(Ask) * rpc, void* arg) {
  (void)arg;
  show_request(rpc);
  EVRPC_REQUEST_DONE(rpc);
}

static void on_ask_hold(EVRPC_STRUCT(Ask) * rpc, void* arg) {
  (void)arg;
  show_request(rpc);
  held = rpc;
}

static void on_ask_typed(EVRPC_STRUCT(Ask) * rpc, void* arg) {
  evhttp_add_header(evhttp_request_get_output_headers(rpc->http_req), "Content-Type", arg);
  on_ask(rpc, NULL);
}

static void answer_held(void) {
  fill(held);
  EVRPC_REQUEST_DONE(held);
}

#define REGISTER(callback) \
  printf("register %d\n", EVRPC_REGISTER(rpcs, Ask, note, note, callback, NULL))

// ---- plain calls

static void one_call(void) {
  open_world();
  REGISTER(on_ask);
  connections(1);
  printf("make %d\n", ask(1, "a"));
  until(1);
  printf("unregister %d", EVRPC_UNREGISTER(rpcs, Ask));
  printf(" %d\n", EVRPC_UNREGISTER(rpcs, Ask));
  ask(2, "unregistered");
  until(2);
  close_world();
  printf("notes %d\n", notes);
}

static void incomplete(void) {
  open_world();
  REGISTER(on_ask_incomplete);
  connections(1);
  ask(1, "a");
  until(1);
  close_world();
  printf("notes %d\n", notes);
}

static void on_raw(struct evhttp_request* http, void* arg) {
  (void)arg;
  const struct evkeyval* header;
  printf("  raw %d", evhttp_request_get_response_code(http));
  TAILQ_FOREACH(header, evhttp_request_get_input_headers(http), next) {
    if (strcmp(header->key, "Content-Type") == 0) printf(", %s", header->value);
  }
  printf(", %zu bytes\n", evbuffer_get_length(evhttp_request_get_input_buffer(http)));
  ends++;
}

static void raw(enum evhttp_cmd_type type, const char* uri, const char* body, size_t size) {
  struct evhttp_connection* connection = evhttp_connection_base_new(base, NULL, "127.0.0.1", port);
  struct evhttp_request* http = evhttp_request_new(on_raw, NULL);
  evhttp_add_header(evhttp_request_get_output_headers(http), "Host", "h");
  evbuffer_add(evhttp_request_get_output_buffer(http), body, size);
  printf("raw %d %s, %zu bytes\n", type, uri, size);
  evhttp_make_request(connection, http, type, uri);
  until(ends + 1);
  evhttp_connection_free(connection);
}

static void raw_requests(void) {
  open_world();
  REGISTER(on_ask_typed);
  raw(EVHTTP_REQ_GET, "/.rpc.Ask", "", 0);
  raw(EVHTTP_REQ_GET, "/.rpc.Ask", "\1\1\5", 3);
  raw(EVHTTP_REQ_PUT, "/.rpc.Ask", "\1\1\5", 3);
  raw(EVHTTP_REQ_POST, "/.rpc.Ask", "", 0);
  raw(EVHTTP_REQ_POST, "/.rpc.Ask", "xx", 2);
  raw(EVHTTP_REQ_POST, "/.rpc.Ask", "\2\2\0", 3);
  raw(EVHTTP_REQ_POST, "/.rpc.Ask2", "\1\1\5", 3);
  raw(EVHTTP_REQ_POST, "/Ask", "\1\1\5", 3);
  EVRPC_UNREGISTER(rpcs, Ask);
  EVRPC_REGISTER(rpcs, Ask, note, note, on_ask_typed, "text/own");
  raw(EVHTTP_REQ_POST, "/.rpc.Ask?x=y", "\1\1\5", 3);
  EVRPC_UNREGISTER(rpcs, Ask);
  EVRPC_REGISTER(rpcs, Ask, note, note, on_ask, NULL);
  raw(EVHTTP_REQ_POST, "/.rpc.Ask", "\1\1\5", 3);
  close_world();
  printf("notes %d\n", notes);
}

static int refuse_with(void* msg, struct evbuffer* bytes) {
  evbuffer_drain(bytes, evbuffer_get_length(bytes));
  note_number_assign(msg, 0);
  return 1;  // Only -1 means failure.
}

static int complete_with(void* msg) { return msg != NULL; }

static void* no_new(void* arg) {
  printf("  new %s\n", (const char*)arg);
  return NULL;
}

static void register_generic(const char* name, void* (*req_new)(void*), void* (*rpl_new)(void*)) {
  printf("register %d\n",
         evrpc_register_generic(rpcs, name, (void (*)(struct evrpc_req_generic*, void*))on_ask,
                                NULL, req_new, "request", (void (*)(void*))note_free, refuse_with,
                                rpl_new, "reply", (void (*)(void*))note_free, complete_with,
                                (void (*)(struct evbuffer*, void*))note_marshal));
}

static void ask_named(const char* name) {
  struct note* request = note_new();
  printf("make %d\n", evrpc_send_request_generic(
                          pool, request, note_new(),
                          (void (*)(struct evrpc_status*, void*, void*, void*))on_done, (void*)name,
                          name, (void (*)(struct evbuffer*, void*))note_marshal,
                          (void (*)(void*))note_clear, refuse_with));
  until(ends + 1);
}

typedef void* (*New)(void*);

static void generic(void) {
  static const char* const kNames[] = {"", "a/b?c d", "a/b", "a%2fb%3fc%20d", "\xff", "Other"};
  open_world();
  connections(1);
  for (int i = 0; i < 5; i++) {
    register_generic(kNames[i], (New)note_new_with_arg, (New)note_new_with_arg);
  }
  for (int i = 0; i < 6; i++) ask_named(kNames[i]);
  for (int i = 0; i < 6; i++) printf("unregister %d\n", evrpc_unregister_rpc(rpcs, kNames[i]));
  register_generic("Other", (New)note_new_with_arg, (New)note_new_with_arg);
  raw(EVHTTP_REQ_POST, "/.rpc.Other", "", 0);
  raw(EVHTTP_REQ_GET, "/.rpc.Other", "x", 1);
  raw(EVHTTP_REQ_POST, "/.rpc.Other", "x", 1);
  evrpc_unregister_rpc(rpcs, "Other");
  register_generic("Other", no_new, (New)note_new_with_arg);
  ask_named("Other");
  evrpc_unregister_rpc(rpcs, "Other");
  register_generic("Other", (New)note_new_with_arg, no_new);
  ask_named("Other");
  close_world();
  printf("notes %d\n", notes);
}

static void own_struct(void) {
  open_world();
  connections(1);
  struct evrpc* rpc = calloc(1, sizeof *rpc);
  rpc->uri = strdup("Own");
  rpc->request_new = (New)note_new_with_arg;
  rpc->request_free = (void (*)(void*))note_free;
  rpc->request_unmarshal = (int (*)(void*, struct evbuffer*))note_unmarshal;
  rpc->reply_new = (New)note_new_with_arg;
  rpc->reply_free = (void (*)(void*))note_free;
  rpc->reply_complete = (int (*)(void*))note_complete;
  rpc->reply_marshal = (void (*)(struct evbuffer*, void*))note_marshal;
  printf("register %d\n",
         evrpc_register_rpc(rpcs, rpc, (void (*)(struct evrpc_req_generic*, void*))on_ask, rpc));
  printf("%s %d %d %d\n", rpc->uri, rpc->base == rpcs, rpc->cb_arg == rpc,
         rpc->cb == (void (*)(struct evrpc_req_generic*, void*))on_ask);
  ask_named("Own");
  printf("unregister %d\n", evrpc_unregister_rpc(rpcs, "Own"));
  close_world();
}

// ---- pools

static void several_calls(void) {
  open_world();
  REGISTER(on_ask);
  connections(1);
  ask(1, "a");
  ask(2, "b");
  ask(3, "c");
  until(3);
  close_world();
  printf("notes %d\n", notes);
}

static void no_server(void) {
  open_world();
  port = 1;
  connections(1);
  ask(1, "refused");
  ask(2, "refused too");
  until(2);
  struct evhttp_connection* connection = new_connection();
  evhttp_connection_set_local_address(connection, "1.2.3.4");
  evrpc_pool_free(pool);
  pool = evrpc_pool_new(base);
  evrpc_pool_add_connection(pool, connection);
  ask(3, "no such local address");
  close_world();
}

static void on_garbage(struct evhttp_request* http, void* text) {
  struct evbuffer* bytes = evbuffer_new();
  evbuffer_add_printf(bytes, "%s", (const char*)text);
  evhttp_send_reply(http, 200, "OK", bytes);
  evbuffer_free(bytes);
}

static void garbage(void) {
  static const char* const kTexts[] = {"xyz", "", "\1\1", "\1\1\5\1\1\6", "\2\1"};
  open_world();
  connections(1);
  for (int i = 0; i < 5; i++) {
    evhttp_set_cb(server, "/.rpc.Never", on_garbage, (void*)kTexts[i]);
    printf("make %d\n", EVRPC_MAKE_REQUEST(Never, pool, note_new(), note_new(), on_done, "n"));
    until(i + 1);
    evhttp_del_cb(server, "/.rpc.Never");
  }
  close_world();
}

static void pools_without_a_base(void) {
  open_world();
  REGISTER(on_ask);
  evrpc_pool_free(pool);
  pool = evrpc_pool_new(NULL);
  connections(1);
  ask(1, "a");
  until(1);
  evrpc_pool_add_connection(pool, evhttp_connection_base_new(base, NULL, "127.0.0.1", port));
  ask(2, "b");
  ask(3, "c");
  until(3);
  close_world();
}

static void a_removed_connection(void) {
  open_world();
  REGISTER(on_ask);
  struct evhttp_connection* connection = new_connection();
  evrpc_pool_add_connection(pool, connection);
  evrpc_pool_remove_connection(pool, connection);
  connections(1);
  ask(1, "a");
  until(1);
  evhttp_connection_free(connection);
  close_world();
}

static void timeouts(void) {
  open_world();
  REGISTER(on_ask_hold);
  evrpc_pool_set_timeout(pool, 1);
  connections(1);
  ask(1, "a");
  ask(2, "b");
  until(1);
  answer_held();  // Too late.
  EVRPC_UNREGISTER(rpcs, Ask);
  REGISTER(on_ask);
  until(2);
  evrpc_pool_set_timeout(pool, 0);
  ask(3, "c");
  until(3);
  close_world();
}

static void on_other(struct evrpc_status* status, void* request, void* reply, void* arg) {
  printf("  other\n");
  on_done(status, request, reply, arg);
}

static void contexts(void) {
  open_world();
  REGISTER(on_ask);
  connections(1);
  struct evrpc_request_wrapper* context =
      EVRPC_MAKE_CTX(Ask, note, note, pool, note_new(), note_new(), on_done, "a");
  void* data = NULL;
  size_t size = 0;
  printf("pool %d\n", evrpc_request_get_pool(context) == pool);
  evrpc_request_set_pool(context, NULL);
  printf("pool %d\n", evrpc_request_get_pool(context) == NULL);
  evrpc_request_set_pool(context, pool);
  evrpc_request_set_cb(context, on_other, "b");
  printf("connection %d\n", evrpc_hook_get_connection(context) != NULL);
  printf("meta %d\n", evrpc_hook_find_meta(context, "k", &data, &size));
  evrpc_hook_add_meta(context, "k", "\0value", 7);
  evrpc_hook_add_meta(context, "k", "other", 6);
  printf("meta %d", evrpc_hook_find_meta(context, "k", &data, &size));
  printf(" %zu %s\n", size, (const char*)data + 1);
  printf("meta %d\n", evrpc_hook_find_meta(context, "K", &data, &size));
  printf("connection %d\n", evrpc_hook_get_connection(context) != NULL);
  printf("make %d\n", evrpc_make_request(context));
  until(1);
  close_world();
}

static void on_done_again(struct evrpc_status* status, struct note* request, struct note* reply,
                          void* name) {
  on_done(status, request, reply, name);
  if (ends < 4) {
    printf("make %d\n", EVRPC_MAKE_REQUEST(Ask, pool, note_new(), note_new(), on_done_again, name));
  }
}

static void calls_in_callbacks(void) {
  open_world();
  REGISTER(on_ask);
  connections(1);
  ask(1, "a");
  EVRPC_MAKE_REQUEST(Ask, pool, note_new(), note_new(), on_done_again, "again");
  ask(2, "b");
  until(4);
  close_world();
  printf("notes %d\n", notes);
}

static void on_done_free(struct evrpc_status* status, struct note* request, struct note* reply,
                         void* name) {
  on_done(status, request, reply, name);
  evrpc_pool_free(pool);
  pool = NULL;
}

static void a_pool_freed_in_a_callback(void) {
  open_world();
  REGISTER(on_ask);
  connections(1);
  EVRPC_MAKE_REQUEST(Ask, pool, note_new(), note_new(), on_done_free, "a");
  ask(1, "never");
  until(1);
  settle();
  close_world();
  printf("notes %d\n", notes);
}

// ---- freeing

static void a_pool_freed_with_calls(void) {
  open_world();
  REGISTER(on_ask_hold);
  connections(1);
  ask(1, "sent");
  ask(2, "queued");
  settle();
  evrpc_pool_free(pool);
  pool = NULL;
  settle();
  answer_held();
  close_world();
}

static void a_base_freed_with_requests(void) {
  open_world();
  REGISTER(on_ask_hold);
  connections(1);
  ask(1, "a");
  settle();
  evrpc_free(rpcs);
  rpcs = NULL;
  ask(2, "b");
  answer_held();
  until(2);
  close_world();
  printf("notes %d\n", notes);
}

static void a_call_unregistered_with_requests(void) {
  open_world();
  REGISTER(on_ask_hold);
  connections(1);
  ask(1, "a");
  settle();
  printf("unregister %d\n", EVRPC_UNREGISTER(rpcs, Ask));
  answer_held();
  until(1);
  close_world();
  printf("notes %d\n", notes);
}

int main(int argc, char** argv) {
  static const Case kCases[] = {
      {"one call", one_call},
      {"incomplete", incomplete},
      {"raw requests", raw_requests},
      {"generic", generic},
      {"own struct", own_struct},
      {"several calls", several_calls},
      {"no server", no_server},
      {"garbage", garbage},
      {"pools without a base", pools_without_a_base},
      {"a removed connection", a_removed_connection},
      {"timeouts", timeouts},
      {"contexts", contexts},
      {"calls in callbacks", calls_in_callbacks},
      {"a pool freed in a callback", a_pool_freed_in_a_callback},
      {"a pool freed with calls", a_pool_freed_with_calls},
      {"a base freed with requests", a_base_freed_with_requests},
      {"a call unregistered with requests", a_call_unregistered_with_requests},
  };
  return run_cases(argc, argv, kCases, sizeof kCases / sizeof *kCases);
}
