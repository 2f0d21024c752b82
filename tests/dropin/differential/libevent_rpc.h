#pragma once

// Remote calls: a message as event_rpcgen.py would generate it, written by hand, and a server and a
// pool of connections to it on one base.

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/http.h>
#include <event2/http_compat.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/rpc.h>
#include <event2/rpc_struct.h>
#include <event2/tag.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "harness.h"

// ---- a message: a required number, a text, and an array of numbers

struct note;

struct note_access {
  int (*number_assign)(struct note*, ev_uint32_t);
  int (*number_get)(struct note*, ev_uint32_t*);
  int (*text_assign)(struct note*, const char*);
  int (*text_get)(struct note*, char**);
  ev_uint32_t* (*series_add)(struct note*, ev_uint32_t);
  int (*series_get)(struct note*, int, ev_uint32_t*);
};

struct note {
  const struct note_access* base;
  ev_uint32_t number_data;
  char* text_data;
  ev_uint32_t series_data[8];
  int series_length;
  ev_uint8_t number_set;
  ev_uint8_t text_set;
  ev_uint8_t series_set;
};

enum { kNumberTag = 1, kTextTag, kSeriesTag };

static int notes;  // Created and not freed.

static int note_number_assign(struct note* msg, ev_uint32_t value) {
  msg->number_set = 1;
  msg->number_data = value;
  return 0;
}

static int note_number_get(struct note* msg, ev_uint32_t* value) {
  if (msg->number_set != 1) return -1;
  *value = msg->number_data;
  return 0;
}

static int note_text_assign(struct note* msg, const char* value) {
  free(msg->text_data);
  msg->text_data = strdup(value);
  msg->text_set = 1;
  return 0;
}

static int note_text_get(struct note* msg, char** value) {
  if (msg->text_set != 1) return -1;
  *value = msg->text_data;
  return 0;
}

static ev_uint32_t* note_series_add(struct note* msg, ev_uint32_t value) {
  if (msg->series_length == 8) return NULL;
  msg->series_set = 1;
  msg->series_data[msg->series_length] = value;
  return &msg->series_data[msg->series_length++];
}

static int note_series_get(struct note* msg, int offset, ev_uint32_t* value) {
  if (msg->series_set != 1 || offset < 0 || offset >= msg->series_length) return -1;
  *value = msg->series_data[offset];
  return 0;
}

static const struct note_access kNoteAccess = {note_number_assign, note_number_get,
                                               note_text_assign,   note_text_get,
                                               note_series_add,    note_series_get};

static struct note* note_new_with_arg(void* arg) {
  struct note* msg = calloc(1, sizeof *msg);
  (void)arg;
  msg->base = &kNoteAccess;
  notes++;
  return msg;
}

static inline struct note* note_new(void) { return note_new_with_arg(NULL); }

static void note_clear(struct note* msg) {
  free(msg->text_data);
  memset(msg, 0, sizeof *msg);
  msg->base = &kNoteAccess;
}

static void note_free(struct note* msg) {
  note_clear(msg);
  notes--;
  free(msg);
}

static int note_complete(struct note* msg) { return msg->number_set ? 0 : -1; }

static void note_marshal(struct evbuffer* bytes, const struct note* msg) {
  evtag_marshal_int(bytes, kNumberTag, msg->number_data);
  if (msg->text_set) evtag_marshal_string(bytes, kTextTag, msg->text_data);
  for (int i = 0; i < msg->series_length; i++) {
    evtag_marshal_int(bytes, kSeriesTag, msg->series_data[i]);
  }
}

static int note_unmarshal_member(struct note* msg, ev_uint32_t tag, struct evbuffer* bytes) {
  ev_uint32_t number;
  switch (tag) {
    case kNumberTag:
      if (evtag_unmarshal_int(bytes, tag, &msg->number_data) == -1) return -1;
      msg->number_set = 1;
      return 0;
    case kTextTag:
      if (msg->text_set || evtag_unmarshal_string(bytes, tag, &msg->text_data) == -1) return -1;
      msg->text_set = 1;
      return 0;
    case kSeriesTag:
      if (evtag_unmarshal_int(bytes, tag, &number) == -1) return -1;
      return note_series_add(msg, number) != NULL ? 0 : -1;
    default:
      return -1;
  }
}

static int note_unmarshal(struct note* msg, struct evbuffer* bytes) {
  ev_uint32_t tag;
  while (evbuffer_get_length(bytes) > 0) {
    if (evtag_peek(bytes, &tag) == -1 || note_unmarshal_member(msg, tag, bytes) == -1) return -1;
  }
  return note_complete(msg);
}

static void print_note(struct note* msg) {
  ev_uint32_t number;
  char* text;
  if (EVTAG_GET(msg, number, &number) == 0) printf(" %u", number);
  if (EVTAG_GET(msg, text, &text) == 0) printf(" \"%s\"", text);
  for (int i = 0; i < EVTAG_ARRAY_LEN(msg, series); i++) {
    EVTAG_ARRAY_GET(msg, series, i, &number);
    printf(" [%u]", number);
  }
  if (!EVTAG_HAS(msg, number)) printf(" no number");
}

EVRPC_HEADER(Ask, note, note)
EVRPC_GENERATE(Ask, note, note)
EVRPC_HEADER(Never, note, note)
EVRPC_GENERATE(Never, note, note)

// ---- the world

enum { kPatience = 5000, kMoment = 60 };  // Milliseconds.

static struct event_base* base;
static struct evhttp* server;
static ev_uint16_t port;
static struct evrpc_base* rpcs;
static struct evrpc_pool* pool;
static int ends;  // Completed calls.

static void open_world(void) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  base = event_init();  // evhttp_connection_new() uses the current base.
  server = evhttp_new(base);
  struct evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
  getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr*)&address, &size);
  port = ntohs(address.sin_port);
  rpcs = evrpc_init(server);
  pool = evrpc_pool_new(base);
}

static struct evhttp_connection* new_connection(void) {
  return evhttp_connection_new("127.0.0.1", port);
}

static void connections(int count) {
  while (count-- > 0) evrpc_pool_add_connection(pool, new_connection());
}

static void on_time_up(evutil_socket_t fd, short what, void* is_up) {
  (void)fd;
  (void)what;
  *(int*)is_up = 1;
}

// Runs until so many calls are complete, or for the time. Returns whether they are.
static inline int run(int count, int milliseconds) {
  const struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
  int is_up = 0;
  struct event* timer = event_new(base, -1, 0, on_time_up, &is_up);
  event_add(timer, &time);
  while (ends < count && !is_up) event_base_loop(base, EVLOOP_ONCE);
  event_free(timer);
  return ends >= count;
}

static inline void until(int count) {
  if (!run(count, kPatience)) printf("lost patience\n");
}

// For calls that never complete: runs long enough for everything else to happen.
static inline void settle(void) { run(INT_MAX, kMoment); }

static void close_world(void) {
  if (pool != NULL) evrpc_pool_free(pool);
  if (rpcs != NULL) evrpc_free(rpcs);
  evhttp_free(server);
  event_base_free(base);
}

static inline void on_done(struct evrpc_status* status, struct note* request, struct note* reply,
                    void* name) {
  struct evhttp_request* http = status->http_req;
  printf("  done %s: error %d, http %d:", (const char*)name, status->error,
         http != NULL ? evhttp_request_get_response_code(http) : -1);
  print_note(reply);
  printf("\n");
  note_free(request);
  note_free(reply);
  ends++;
}

// Makes a call whose reply is not empty, to show whether it is cleared.
static inline int ask(ev_uint32_t number, const char* name) {
  struct note* request = note_new();
  struct note* reply = note_new();
  EVTAG_ASSIGN(request, number, number);
  EVTAG_ASSIGN(reply, number, 4711);
  return EVRPC_MAKE_REQUEST(Ask, pool, request, reply, on_done, (void*)name);
}
