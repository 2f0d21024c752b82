// Random scripts over requests of an evhttp client that cannot connect: the reason, the number of
// retries and of requests vary, requests are cancelled, and made in callbacks and between turns. On
// the clock of virtual_steps.h.
//
// The original never sends a request that is made after the retries have run out, or while a retry
// is due and another was cancelled. So with retries all requests are made at first, and none is
// cancelled. Nor is EVHTTP_CON_REUSE_CONNECTED_ADDR set, by which it uses addresses that failed.
//
// differential: --seeds 1:300
#include "http_connect_reasons.h"
#include "virtual_steps.h"

enum { kAsksMost = 30, kTurns = 60, kSettleMost = 300 };

static char names_of_requests[kAsksMost][12];
static struct evhttp_request* waiting[kAsksMost];
static int count;
static int retries;

static void on_stuck(void) { event_base_loopbreak(base); }

static void script_done(struct evhttp_request* request, void* arg);

static void script_ask(void) {
  if (count >= kAsksMost) return;
  const int number = count++;
  snprintf(names_of_requests[number], sizeof names_of_requests[number], "%d", number);
  struct evhttp_request* request = evhttp_request_new(script_done, names_of_requests[number]);
  waiting[number] = request;
  if (random_chance(70)) evhttp_request_set_error_cb(request, on_error);
  static const enum evhttp_cmd_type types[] = {EVHTTP_REQ_GET, EVHTTP_REQ_POST, EVHTTP_REQ_HEAD};
  const int result = evhttp_make_request(connection, request, types[random_below(3)], "/");
  printf("  ask %d: %d\n", number, result);
  if (result != 0) waiting[number] = NULL;
}

static void script_done(struct evhttp_request* request, void* arg) {
  printf("  done %s: ", (const char*)arg);
  waiting[atoi(arg)] = NULL;
  if (request) {
    printf("code %d\n", evhttp_request_get_response_code(request));
  } else {
    printf("no request\n");
  }
  if (retries == 0 && random_chance(30)) script_ask();
}

static void cancel_one(void) {
  if (count == 0) return;
  const int number = random_below(count);
  if (!waiting[number]) return;
  printf("  cancel %d\n", number);
  struct evhttp_request* request = waiting[number];
  waiting[number] = NULL;
  evhttp_cancel_request(request);
}

static void set_up(const Reason* reason) {
  use_steps(on_stuck);
  base = event_base_new();
  const int port = reason->port < 0 ? bound_port() : reason->port;
  struct evdns_base* by = reason->by_dns ? names() : NULL;
  connection = evhttp_connection_base_new(base, by, reason->host, (ev_uint16_t)port);
  if (random_chance(60)) evhttp_connection_set_closecb(connection, on_close, NULL);
  retries = random_below(4);
  evhttp_connection_set_retries(connection, retries);
  const struct timeval soon = {0, 300000};
  evhttp_connection_set_initial_retry_tv(connection, &soon);
  if (random_chance(40)) evhttp_connection_set_timeout(connection, 1 + random_below(3));
  if (reason->local) evhttp_connection_set_local_address(connection, reason->local);
}

static int is_waiting(void) {
  for (int i = 0; i < count; i++) {
    if (waiting[i]) return 1;
  }
  return 0;
}

// How many turns a lookup takes depends on the method, so nothing else is done during one.
static void turn_of(const Reason* reason) {
  event_base_loop(base, EVLOOP_ONCE);
  if (!reason->by_dns) return;
  for (int i = 0; i < kSettleMost && is_waiting(); i++) event_base_loop(base, EVLOOP_ONCE);
}

static void run_script(void) {
  const Reason* reason = &reasons[random_below((int)(sizeof reasons / sizeof *reasons))];
  set_up(reason);
  printf("%s, %d retries\n", reason->name, retries);
  for (int i = 1 + random_below(4); i > 0; i--) script_ask();
  for (int turn = 0; turn < kTurns; turn++) {
    const int choice = random_below(100);
    if (retries == 0 && choice < 10) script_ask();
    if (retries == 0 && (choice >= 94 || choice < 4)) cancel_one();
    turn_of(reason);
  }
  evhttp_connection_free(connection);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return run_seeds(argc, argv, run_script);
}
