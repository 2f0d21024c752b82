// Remote calls with null pointers, meaningless names and numbers out of range. After each call of
// a function a correct remote call follows. libevent_rpc.h has the message and the world.
//
// Left out are the differences that docs/drop-in.md names: calls to a pool without connections,
// names that are registered twice, and a base that is freed while a reply is paused.
// differential: --undefined
#include "arguments.h"
#include "libevent_rpc.h"
#include "virtual_steps.h"

enum { kMany = 20000 };  // Milliseconds: longer than all timeouts.

typedef void (*Free)(void*);
typedef void* (*New)(void*);
typedef int (*Unmarshal)(void*, struct evbuffer*);
typedef void (*Marshal)(struct evbuffer*, void*);
typedef void (*Done)(struct evrpc_status*, void*, void*, void*);
typedef void (*Serve)(struct evrpc_req_generic*, void*);

static EVRPC_STRUCT(Ask) * held;  // A request without a response yet.
static void* paused;              // The context of a paused hook.
static struct evhttp_connection* connection;

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

// ---- domains

static const Value kOwnValues[] = {{"null", 0}, {"its", 1}};
static const Domain kOwn = DOMAIN_OF(kOwnValues);

static const char* const kNames[] = {NULL,
                                     "",
                                     "Ask",
                                     "a b",
                                     "a/b?c",
                                     "Other",
                                     "AVeryLongNameOfAFunctionThatSomeoneMightCallOverTheNetwork"};
static const Value kNameValues[] = {{"null", 0}, {"\"\"", 1},  {"Ask", 2}, {"blank", 3},
                                    {"URI", 4},  {"Other", 5}, {"long", 6}};
static const Domain kNameDomain = DOMAIN_OF(kNameValues);

static const Value kOwnerValues[] = {{"null", 0}, {"base", 1}, {"pool", 2}};
static const Domain kOwners = DOMAIN_OF(kOwnerValues);

static const Value kHookValues[] = {{"null", 0}, {"continues", 1}, {"ends", 2}, {"7", 3}};
static const Domain kHooks = DOMAIN_OF(kHookValues);

static const Value kTypeValues[] = {
    {"-1", -1}, {"input", EVRPC_INPUT}, {"output", EVRPC_OUTPUT}, {"2", 2}, {"max", INT_MAX}};
static const Domain kTypes = DOMAIN_OF(kTypeValues);

static const Value kSecondsValues[] = {{"-1", -1}, {"-2", -2},       {"0", 0},
                                       {"1", 1},   {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kSeconds = DOMAIN_OF(kSecondsValues);

static const Value kResultValues[] = {{"-2", -2}, {"-1", -1}, {"0", 0}, {"1", 1}, {"max", INT_MAX}};
static const Domain kResults = DOMAIN_OF(kResultValues);

static const Value kSizeValues[] = {{"0", 0}, {"1", 1}, {"7", 7}, {"max", LONG_MAX}, {"-1", -1}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

// ---- the world

static void stuck(void) { event_base_loopbreak(base); }

static void begin(void) {
  use_steps(stuck);
  event_set_log_callback(NULL);
  open_world();
}

static void on_ask(EVRPC_STRUCT(Ask) * rpc, void* argument) {
  printf("  server, argument %d:", argument == NULL);
  print_note(rpc->request);
  printf("\n");
  if (argument != NULL) {
    held = rpc;
    return;
  }
  note_number_assign(rpc->reply, 5);
  EVRPC_REQUEST_DONE(rpc);
}

static void register_ask(void* argument) {
  show("registered", EVRPC_REGISTER(rpcs, Ask, note, note, on_ask, argument));
  connection = new_connection();
  evrpc_pool_add_connection(pool, connection);
}

static void wait_long(void) { run(INT_MAX, kMany); }

// Another call, which is correct.
static void finish(void) {
  const int before = ends;
  show("asked", ask(9, "last"));
  run(before + 1, kMany);
  close_world();
  show("notes", notes);
}

static struct evrpc_pool* pool_of(long value) { return value == 0 ? NULL : pool; }

static void* owner_of(long value) { return value == 0 ? NULL : value == 1 ? (void*)rpcs : pool; }

static int on_hook(void* context, struct evhttp_request* http, struct evbuffer* bytes,
                   void* argument) {
  const long* result = argument;
  printf("  hook, context %d, request %d, bytes %d\n", context != NULL, http != NULL,
         evbuffer_get_length(bytes) > 0);
  paused = context;
  return (int)*result;
}

// ---- servers

static void call_init(const long* at) {
  begin();
  struct evrpc_base* other = evrpc_init(at[0] ? server : NULL);
  show("made", other != NULL);
  evrpc_free(at[1] ? other : NULL);
  register_ask(NULL);
  finish();
}

static void call_register_generic(const long* at) {
  begin();
  const int result =
      evrpc_register_generic(at[0] ? rpcs : NULL, kNames[at[1]], at[2] ? (Serve)on_ask : NULL, NULL,
                             (New)note_new_with_arg, NULL, (Free)note_free,
                             (Unmarshal)note_unmarshal, (New)note_new_with_arg, NULL,
                             (Free)note_free, (int (*)(void*))note_complete, (Marshal)note_marshal);
  show("result", result);
  show("removed", evrpc_unregister_rpc(at[0] ? rpcs : NULL, kNames[at[1]]));
  register_ask(NULL);
  finish();
}

// One of its functions is missing.
static void call_register_missing(const long* at) {
  begin();
  show("result",
       evrpc_register_generic(
           rpcs, "Ask", (Serve)on_ask, NULL, at[0] == 0 ? NULL : (New)note_new_with_arg, NULL,
           at[0] == 1 ? NULL : (Free)note_free, at[0] == 2 ? NULL : (Unmarshal)note_unmarshal,
           at[0] == 3 ? NULL : (New)note_new_with_arg, NULL, at[0] == 7 ? NULL : (Free)note_free,
           at[0] == 8 ? NULL : (int (*)(void*))note_complete,
           at[0] == 255 ? NULL : (Marshal)note_marshal));
  connections(1);
  finish();
}

static void call_register_rpc(const long* at) {
  begin();
  struct evrpc* rpc = calloc(1, sizeof *rpc);
  rpc->uri = kNames[at[2]] == NULL ? NULL : strdup(kNames[at[2]]);
  rpc->request_new = (New)note_new_with_arg;
  rpc->request_free = (Free)note_free;
  rpc->request_unmarshal = (Unmarshal)note_unmarshal;
  rpc->reply_new = (New)note_new_with_arg;
  rpc->reply_free = (Free)note_free;
  rpc->reply_complete = (int (*)(void*))note_complete;
  rpc->reply_marshal = (Marshal)note_marshal;
  show("result", evrpc_register_rpc(at[0] ? rpcs : NULL, at[1] ? rpc : NULL, (Serve)on_ask, NULL));
  show("its base", rpc->base == rpcs);
  if (at[2] == 2) {
    connections(1);
  } else {
    register_ask(NULL);
  }
  finish();
}

static void call_unregister(const long* at) {
  begin();
  register_ask(NULL);
  struct evrpc_base* of = at[0] ? rpcs : NULL;
  show("removed", at[1] == 2 ? EVRPC_UNREGISTER(of, Ask) : evrpc_unregister_rpc(of, kNames[at[1]]));
  finish();
}

static void call_request(const long* at) {
  begin();
  register_ask(&held);
  ask(1, "first");
  run(1, 1000);
  struct evrpc_req_generic* request = at[0] ? (struct evrpc_req_generic*)held : NULL;
  if (at[1] == 0) show("request", evrpc_get_request(request) == held->request);
  if (at[1] == 1) show("reply", evrpc_get_reply(request) == held->reply);
  if (at[1] == 2) show("http", EVRPC_REQUEST_HTTP(held) != NULL);
  if (at[2]) note_number_assign(held->reply, 6);
  evrpc_request_done(at[1] == 3 && !at[0] ? NULL : (struct evrpc_req_generic*)held);
  run(1, 1000);
  EVRPC_UNREGISTER(rpcs, Ask);
  show("registered", EVRPC_REGISTER(rpcs, Ask, note, note, on_ask, NULL));
  finish();
}

// ---- pools

static void call_pool_new(const long* at) {
  begin();
  struct evrpc_pool* other = evrpc_pool_new(at[0] ? base : NULL);
  show("made", other != NULL);
  if (at[1]) evrpc_pool_add_connection(other, new_connection());
  evrpc_pool_free(at[2] ? other : NULL);
  register_ask(NULL);
  finish();
}

static void call_pool_connections(const long* at) {
  begin();
  register_ask(NULL);
  struct evhttp_connection* other = new_connection();
  if (at[2] == 2) evrpc_pool_add_connection(pool, other);
  if (at[2] == 1) evrpc_pool_remove_connection(pool_of(at[0]), at[1] ? other : NULL);
  if (at[2] != 1) evrpc_pool_add_connection(pool_of(at[0]), at[1] ? other : NULL);
  if (at[2] == 3) evrpc_pool_remove_connection(pool, other);
  finish();
}

static void call_pool_timeout(const long* at) {
  begin();
  register_ask(&held);
  evrpc_pool_set_timeout(pool_of(at[0]), (int)at[1]);
  ask(1, "first");
  run(1, 1000);
  show("ends", ends);
  if (ends == 0) {
    note_number_assign(held->reply, 6);
    EVRPC_REQUEST_DONE(held);
    run(1, 1000);
  }
  show("ends", ends);
  evrpc_pool_set_timeout(pool, 1);
  finish();
}

// ---- hooks

static void call_add_hook(const long* at) {
  static const long results[] = {EVRPC_CONTINUE, EVRPC_CONTINUE, EVRPC_TERMINATE, 7};
  begin();
  register_ask(NULL);
  void* hook = evrpc_add_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1], at[2] ? on_hook : NULL,
                              (void*)&results[at[2]]);
  show("hook", hook != NULL);
  ask(1, "first");
  run(1, kMany);
  show("removed", evrpc_remove_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1], hook));
  show("again", evrpc_remove_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1], hook));
  finish();
}

static void call_remove_hook(const long* at) {
  static const long goes_on = EVRPC_CONTINUE;
  begin();
  register_ask(NULL);
  void* hook = evrpc_add_hook(rpcs, EVRPC_INPUT, on_hook, (void*)&goes_on);
  void* other = evrpc_add_hook(pool, EVRPC_OUTPUT, on_hook, (void*)&goes_on);
  show("removed", evrpc_remove_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1],
                                    at[2] == 0   ? NULL
                                    : at[2] == 1 ? hook
                                                 : other));
  finish();
}

static void call_resume(const long* at) {
  static const long pauses = EVRPC_PAUSE;
  begin();
  register_ask(NULL);
  void* hook =
      evrpc_add_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1], on_hook, (void*)&pauses);
  ask(1, "first");
  run(1, 3000);
  show("paused", paused != NULL);
  evrpc_remove_hook(owner_of(at[0]), (enum EVRPC_HOOK_TYPE)at[1], hook);
  show("resumed",
       evrpc_resume_request(owner_of(at[0]), at[3] ? paused : NULL, (enum EVRPC_HOOK_RESULT)at[2]));
  if (at[0] == 1 && at[1] == EVRPC_OUTPUT && !at[3]) return;
  run(1, 3000);
  show("ends", ends);
  finish();
}

static void call_resume_unknown(const long* at) {
  begin();
  register_ask(NULL);
  show("resumed",
       evrpc_resume_request(owner_of(at[0]), at[1] ? &held : NULL, (enum EVRPC_HOOK_RESULT)at[2]));
  finish();
}

// ---- contexts

static struct evrpc_request_wrapper* new_context(void) {
  struct note* request = note_new();
  EVTAG_ASSIGN(request, number, 3);
  return EVRPC_MAKE_CTX(Ask, note, note, pool, request, note_new(), on_done, "context");
}

static void call_meta(const long* at) {
  static const char kData[] = "value!";
  void* found = NULL;
  size_t size = 77;
  begin();
  register_ask(NULL);
  struct evrpc_request_wrapper* context = new_context();
  void* of = at[0] ? context : NULL;
  evrpc_hook_add_meta(of, kNames[at[1]], at[2] ? kData : NULL, (size_t)at[3]);
  show("found", evrpc_hook_find_meta(of, kNames[at[1]], &found, &size));
  show("size", (long)size);
  if (found != NULL && size == sizeof kData) printf("%s\n", (const char*)found);
  show("asked", evrpc_make_request(context));
  run(1, kMany);
  finish();
}

static void call_find_meta(const long* at) {
  void* found = NULL;
  size_t size = 77;
  begin();
  register_ask(NULL);
  struct evrpc_request_wrapper* context = new_context();
  if (at[1]) evrpc_hook_add_meta(context, "Ask", "x", 1);
  show("found", evrpc_hook_find_meta(at[0] ? context : NULL, kNames[at[2]], at[3] ? &found : NULL,
                                     at[4] ? &size : NULL));
  printf("%d %zu\n", found != NULL, size);
  show("connection", evrpc_hook_get_connection(at[0] ? context : NULL) != NULL);
  show("asked", evrpc_make_request(context));
  run(1, kMany);
  finish();
}

static void on_other(struct evrpc_status* status, void* request, void* reply, void* argument) {
  printf("  other callback, argument %d\n", argument == NULL);
  on_done(status, request, reply, (void*)"other");
}

static void call_context(const long* at) {
  begin();
  register_ask(NULL);
  struct evrpc_request_wrapper* context = at[0] ? new_context() : NULL;
  if (at[1] == 0) evrpc_request_set_pool(context, NULL);
  if (at[1] == 1) evrpc_request_set_pool(context, pool);
  if (at[1] == 2) evrpc_request_set_cb(context, NULL, NULL);
  if (at[1] == 3) evrpc_request_set_cb(context, on_other, NULL);
  show("pool", evrpc_request_get_pool(context) == pool);
  show("asked", evrpc_make_request(context));
  run(1, kMany);
  finish();
}

static void call_make_context(const long* at) {
  begin();
  register_ask(NULL);
  struct evrpc_request_wrapper* context = evrpc_make_request_ctx(
      pool_of(at[0]), note_new(), note_new(), kNames[at[1]],
      at[2] == 0 ? NULL : (Marshal)note_marshal, at[2] == 1 ? NULL : (Free)note_clear,
      at[2] == 2 ? NULL : (Unmarshal)note_unmarshal, at[2] == 3 ? NULL : (Done)on_done,
      (void*)"context");
  show("made", context != NULL);
  show("pool", evrpc_request_get_pool(context) == pool);
  if (at[0]) show("asked", evrpc_make_request(context));
  run(1, kMany);
  finish();
}

static void call_send(const long* at) {
  begin();
  register_ask(NULL);
  show("asked", evrpc_send_request_generic(pool_of(at[0]), note_new(), note_new(), on_other, NULL,
                                           kNames[at[1]], (Marshal)note_marshal, (Free)note_clear,
                                           at[2] ? (Unmarshal)note_unmarshal : NULL));
  wait_long();
  show("ends", ends);
  finish();
}

static void call_make_request(const long* at) {
  begin();
  register_ask(NULL);
  struct note* request = at[1] ? note_new() : NULL;
  struct note* reply = at[2] ? note_new() : NULL;
  show("asked", EVRPC_MAKE_REQUEST(Ask, pool_of(at[0]), request, reply, at[3] ? on_done : NULL,
                                   (void*)"it"));
  run(1, kMany);
  finish();
}

// ---- the table

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evrpc_init", call_init, {&kOwn, &kBooleans}},
      {"evrpc_register_generic", call_register_generic, {&kOwn, &kNameDomain, &kBooleans}},
      {"evrpc_register_generic, missing", call_register_missing, {&kNumbers}},
      {"evrpc_register_rpc", call_register_rpc, {&kOwn, &kOwn, &kNameDomain}},
      {"evrpc_unregister_rpc", call_unregister, {&kOwn, &kNameDomain}},
      {"evrpc_request_done", call_request, {&kOwn, &kSmall, &kBooleans}},
      {"evrpc_pool_new", call_pool_new, {&kOwn, &kBooleans, &kBooleans}},
      {"evrpc_pool_add_connection", call_pool_connections, {&kOwn, &kOwn, &kSmall}},
      {"evrpc_pool_set_timeout", call_pool_timeout, {&kOwn, &kSeconds}},
      {"evrpc_add_hook", call_add_hook, {&kOwners, &kTypes, &kHooks}},
      {"evrpc_remove_hook", call_remove_hook, {&kOwners, &kTypes, &kSmall}},
      {"evrpc_resume_request", call_resume, {&kOwners, &kTypes, &kResults, &kOwn}},
      {"evrpc_resume_request, unknown", call_resume_unknown, {&kOwners, &kBooleans, &kResults}},
      {"evrpc_hook_add_meta", call_meta, {&kOwn, &kNameDomain, &kBooleans, &kSizes}},
      {"evrpc_hook_find_meta",
       call_find_meta,
       {&kOwn, &kBooleans, &kNameDomain, &kBooleans, &kBooleans}},
      {"evrpc_make_request", call_context, {&kOwn, &kNumbers}},
      {"evrpc_make_request_ctx", call_make_context, {&kOwn, &kNameDomain, &kNumbers}},
      {"evrpc_send_request_generic", call_send, {&kOwn, &kNameDomain, &kBooleans}},
      {"EVRPC_MAKE_REQUEST", call_make_request, {&kOwn, &kOwn, &kOwn, &kBooleans}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
