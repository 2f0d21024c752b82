// Requests of an evhttp client that cannot connect: the peer refuses, the network is unreachable,
// the name is unknown, the local address does not exist, or the port is invalid. Each case has one
// request or several, retries or none, and callbacks that make further requests. The original never
// sends a request that is made after the last retry failed.
#include "http_connect_reasons.h"

enum { kRequests = 3, kTurnsMost = 4000 };

static void run_reason(const Reason* reason, int requests, int retries, int more) {
  printf("%s, %d requests, %d retries, %d more\n", reason->name, requests, retries, more);
  static const char* const request_names[kRequests] = {"1", "2", "3"};
  base = event_base_new();
  const int port = reason->port < 0 ? bound_port() : reason->port;
  struct evdns_base* by = reason->by_dns ? names() : NULL;
  asked = done = 0;
  again = more;
  connection = evhttp_connection_base_new(base, by, reason->host, (ev_uint16_t)port);
  evhttp_connection_set_closecb(connection, on_close, NULL);
  evhttp_connection_set_retries(connection, retries);
  const struct timeval soon = {0, 1000};
  evhttp_connection_set_initial_retry_tv(connection, &soon);
  if (reason->local) evhttp_connection_set_local_address(connection, reason->local);
  for (int i = 0; i < requests; i++) ask(request_names[i]);
  for (int i = 0; i < kTurnsMost && done < asked; i++) {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    usleep(100);
  }
  printf("  %d of %d done\n", done, asked);
  evhttp_connection_free(connection);
}

static void run_all(int retries) {
  const int reason_count = (int)(sizeof reasons / sizeof *reasons);
  for (int i = 0; i < reason_count; i++) {
    for (int requests = 1; requests <= kRequests; requests += 2) {
      run_reason(&reasons[i], requests, retries, 0);
      if (retries == 0) run_reason(&reasons[i], requests, retries, 1);
    }
  }
}

static void run_at_once(void) { run_all(0); }
static void run_retries(void) { run_all(2); }

static const Case cases[] = {
    {"at once", run_at_once},
    {"after retries", run_retries},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
