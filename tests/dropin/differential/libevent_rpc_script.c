// Random remote calls: calls over some connections, hooks that continue, terminate, pause or change
// messages, requests that are held, resumed and answered in any order, and pools that are freed
// meanwhile.
//
// A step is over when a plain HTTP request on the same base gets its response while nothing else is
// printed; no clock is involved. With several active connections the lines of a step are sorted.
// differential: --seeds 1:200 --chunk 100
#include <stdarg.h>

#include "libevent_rpc.h"

enum { kSteps = 30, kLinesMax = 200, kLineMax = 200, kMost = 16, kCallsMost = 40 };

static char lines[kLinesMax][kLineMax];
static int line_count;
static int connection_count;

static void say(const char* format, ...) {
  va_list arguments;
  if (line_count == kLinesMax) return;
  va_start(arguments, format);
  vsnprintf(lines[line_count++], kLineMax, format, arguments);
  va_end(arguments);
}

static int compare_lines(const void* a, const void* b) { return strcmp(a, b); }

static void print_lines(void) {
  if (connection_count > 1) qsort(lines, (size_t)line_count, kLineMax, compare_lines);
  for (int i = 0; i < line_count; i++) printf("  %s\n", lines[i]);
  line_count = 0;
}

// ---- waiting

static struct evhttp_connection* pinger;

static void on_pinged(struct evhttp_request* http, void* is_over) {
  (void)http;
  *(int*)is_over = 1;
}

static void on_ping(struct evhttp_request* http, void* arg) {
  (void)arg;
  evhttp_send_reply(http, 204, "Quiet", NULL);
}

static void ping(void) {
  int is_over = 0;
  struct evhttp_request* http = evhttp_request_new(on_pinged, &is_over);
  evhttp_add_header(evhttp_request_get_output_headers(http), "Host", "h");
  evhttp_make_request(pinger, http, EVHTTP_REQ_GET, "/ping");
  while (!is_over && event_base_loop(base, EVLOOP_ONCE) == 0) {
  }
}

static void wait_for_quiet(void) {
  int quiet = 0;
  while (quiet < 3) {
    const int before = line_count;
    ping();
    quiet = line_count == before ? quiet + 1 : 0;
  }
  print_lines();
}

// ---- operations in progress

typedef struct Paused {
  void* owner;
  void* context;
  int number;
} Paused;

static Paused paused[kMost];
static int paused_count;
static EVRPC_STRUCT(Ask) * held[kMost];
static int held_count;
static int holds;  // Whether the server delays its responses.
static int calls;

typedef struct Hook {
  void* owner;
  enum EVRPC_HOOK_TYPE type;
  void* handle;
  int number;
  int percent[4];  // Chances to end, pause, add bytes, remove itself.
} Hook;

static Hook* hooks[kMost];
static int hook_count;
static int hook_number;

static void forget_hooks(void* owner) {
  for (int i = 0; i < hook_count;) {
    if (hooks[i]->owner == owner) {
      hooks[i] = hooks[--hook_count];
    } else {
      i++;
    }
  }
  for (int i = 0; i < paused_count;) {
    if (paused[i].owner == owner) {
      paused[i] = paused[--paused_count];
    } else {
      i++;
    }
  }
}

static void remove_hook(int index) {
  Hook* hook = hooks[index];
  hooks[index] = hooks[--hook_count];
  const int wrong = evrpc_remove_hook(hook->owner, !hook->type, hook->handle);
  const int right = evrpc_remove_hook(hook->owner, hook->type, hook->handle);
  say("hook %d removed %d %d", hook->number, wrong, right);
}

// Returns the number of the call, with which every message begins, if it has four digits.
static int number_in(struct evbuffer* bytes) {
  unsigned char head[5] = {0};
  evbuffer_copyout(bytes, head, sizeof head);
  return (head[2] & 15) | (head[3] >> 4) << 4 | (head[3] & 15) << 8 | (head[4] >> 4) << 12;
}

static void look_at_meta(const Hook* hook, void* context) {
  char key[2] = {(char)('a' + hook->number % 3), '\0'};
  void* data = NULL;
  size_t size = 0;
  if (evrpc_hook_find_meta(context, key, &data, &size) == 0) {
    say("hook %d finds %zu %s", hook->number, size, (const char*)data);
  }
  evrpc_hook_add_meta(context, key, hook->type == EVRPC_INPUT ? "input" : "output", 8);
}

// Depends only on the hook and the call, since several connections have no fixed order.
static int decide(const Hook* hook, int number) {
  const unsigned mixed = (unsigned)(hook->number * 7919 + number * 104729) * 2654435761U;
  return (int)(mixed >> 16) % 100;
}

static int on_hook(void* context, struct evhttp_request* http, struct evbuffer* bytes, void* arg) {
  const Hook* hook = arg;
  const int number = number_in(bytes);
  const int chance = decide(hook, number);
  say("hook %d of %s, kind %d, call %x, %zu bytes, connection %d", hook->number,
      hook->owner == pool ? "pool" : "base", http->kind, number, evbuffer_get_length(bytes),
      evrpc_hook_get_connection(context) == evhttp_request_get_connection(http) ||
          evrpc_hook_get_connection(context) != NULL);
  look_at_meta(hook, context);
  if (chance < hook->percent[0]) return EVRPC_TERMINATE;
  if (chance < hook->percent[1] && paused_count < kMost) {
    paused[paused_count++] = (Paused){hook->owner, context, number};
    return EVRPC_PAUSE;
  }
  if (chance < hook->percent[2]) evtag_marshal_int(bytes, kSeriesTag, (ev_uint32_t)hook->number);
  return EVRPC_CONTINUE;
}

static void add_hook(void* owner) {
  if (hook_count == kMost || owner == NULL) return;
  Hook* hook = calloc(1, sizeof *hook);
  hook->owner = owner;
  hook->type = random_chance(50) ? EVRPC_INPUT : EVRPC_OUTPUT;
  hook->number = ++hook_number;
  hook->percent[0] = random_chance(30) ? random_below(40) : 0;
  hook->percent[1] = random_chance(40) ? random_below(80) : 0;
  hook->percent[2] = random_chance(50) ? 90 : 0;
  hook->handle = evrpc_add_hook(owner, hook->type, on_hook, hook);
  hooks[hook_count++] = hook;
  printf("add hook %d to the %s's %s\n", hook->number, owner == pool ? "pool" : "base",
         hook->type == EVRPC_INPUT ? "input" : "output");
}

// ---- calls

static void answer(EVRPC_STRUCT(Ask) * rpc) {
  ev_uint32_t number = 0;
  EVTAG_GET(rpc->request, number, &number);
  if (number % 7 != 0) EVTAG_ASSIGN(rpc->reply, number, number);  // Otherwise incomplete.
  EVTAG_ASSIGN(rpc->reply, text, "answer");
  EVRPC_REQUEST_DONE(rpc);
}

static void on_ask(EVRPC_STRUCT(Ask) * rpc, void* arg) {
  ev_uint32_t number = 0;
  (void)arg;
  EVTAG_GET(rpc->request, number, &number);
  say("server: call %x, series of %d", number, EVTAG_ARRAY_LEN(rpc->request, series));
  if (holds && held_count < kMost) {
    held[held_count++] = rpc;
  } else {
    answer(rpc);
  }
}

static void on_over(struct evrpc_status* status, struct note* request, struct note* reply,
                    void* arg) {
  ev_uint32_t number = 0;
  (void)arg;
  EVTAG_GET(request, number, &number);
  say("done: call %x, error %d, http %d, series of %d%s", number, status->error,
      status->http_req != NULL ? evhttp_request_get_response_code(status->http_req) : -1,
      EVTAG_ARRAY_LEN(reply, series), EVTAG_HAS(reply, number) ? "" : ", no number");
  note_free(request);
  note_free(reply);
}

static void make_call(void) {
  if (connection_count == 0 || calls == kCallsMost) return;
  struct note* request = note_new();
  struct note* reply = note_new();  // Not empty, to show when it is cleared.
  EVTAG_ASSIGN(request, number, (ev_uint32_t)(0x1000 + ++calls));
  EVTAG_ASSIGN(reply, number, 1);
  printf("call %x: %d\n", 0x1000 + calls,
         EVRPC_MAKE_REQUEST(Ask, pool, request, reply, on_over, NULL));
}

static int by_number(const void* a, const void* b) {
  return ((const Paused*)a)->number - ((const Paused*)b)->number;
}

static void resume(void) {
  if (paused_count == 0) return;
  qsort(paused, (size_t)paused_count, sizeof *paused, by_number);
  const int index = random_below(paused_count);
  const Paused chosen = paused[index];
  paused[index] = paused[--paused_count];
  const enum EVRPC_HOOK_RESULT result = random_chance(75) ? EVRPC_CONTINUE : EVRPC_TERMINATE;
  void* other = chosen.owner == rpcs ? (void*)pool : rpcs;
  if (other != NULL) say("other owner %d", evrpc_resume_request(other, chosen.context, result));
  say("resume call %x with %d", chosen.number, result);
  say("resumed %d", evrpc_resume_request(chosen.owner, chosen.context, result));
}

static int by_request(const void* a, const void* b) {
  EVRPC_STRUCT(Ask)* const* one = a;
  EVRPC_STRUCT(Ask)* const* other = b;
  return (int)(*one)->request->number_data - (int)(*other)->request->number_data;
}

static void answer_one(void) {
  if (held_count == 0) return;
  qsort(held, (size_t)held_count, sizeof *held, by_request);
  const int index = random_below(held_count);
  EVRPC_STRUCT(Ask)* rpc = held[index];
  held[index] = held[--held_count];
  say("answer call %x", rpc->request->number_data);
  answer(rpc);
}

// ---- pools and bases

static void add_connection(void) {
  if (connection_count == 3) return;
  connection_count++;
  printf("connection %d\n", connection_count);
  connections(1);
}

static void renew_pool(void) {
  printf("new pool\n");
  forget_hooks(pool);
  evrpc_pool_free(pool);
  pool = evrpc_pool_new(base);
  connection_count = 0;
}

// With requests in progress the original would use freed memory.
static void change_registration(void) {
  wait_for_quiet();
  if (held_count > 0 || paused_count > 0) return;
  if (random_chance(50)) {
    say("unregister %d", EVRPC_UNREGISTER(rpcs, Ask));
  } else if (EVRPC_UNREGISTER(rpcs, Ask) == -1 || random_chance(80)) {
    say("register %d", EVRPC_REGISTER(rpcs, Ask, note, note, on_ask, NULL));
  }
}

static void step(void) {
  switch (random_below(16)) {
    case 0:
    case 1:
      add_hook(random_chance(50) ? (void*)pool : rpcs);
      break;
    case 2:
      if (hook_count > 0) remove_hook(random_below(hook_count));
      break;
    case 3:
    case 4:
    case 5:
      resume();
      break;
    case 6:
      holds = random_chance(30);
      break;
    case 7:
    case 8:
      answer_one();
      break;
    case 9:
      add_connection();
      break;
    case 10:
      if (random_chance(25)) renew_pool();
      break;
    case 11:
      if (random_chance(25)) change_registration();
      break;
    default:
      for (int i = random_below(4); i >= 0; i--) make_call();
  }
  if (random_chance(80)) wait_for_quiet();
}

static void script(void) {
  open_world();
  evhttp_set_cb(server, "/ping", on_ping, NULL);
  pinger = evhttp_connection_base_new(base, NULL, "127.0.0.1", port);
  EVRPC_REGISTER(rpcs, Ask, note, note, on_ask, NULL);
  connection_count = 0;
  add_connection();
  for (int i = 0; i < kSteps; i++) step();
  wait_for_quiet();
  while (paused_count > 0 || held_count > 0) {
    resume();
    answer_one();
    wait_for_quiet();
  }
  evhttp_connection_free(pinger);
  close_world();
  printf("%d calls\n", calls);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, script); }
