// Random scripts over a client of evhttp whose bufferevent is one filter or two over a socket. The
// filters change each byte, and the server, a raw socket in the same process, changes it back.
//
// The original never connects a filter: its evhttp waits for BEV_EVENT_CONNECTED. So it runs the
// script on a socket, and a client over filters must behave like that. After a response that the
// end of the connection ends, a queued request is sent through a filter, and not through a socket;
// so there are no such responses where requests are queued.
//
// differential: --seeds 1:300
// differential settings: debug,precise,poll
#include "http_client_script.h"
#include "masking_filter.h"

static int filters;
static int is_alone;   // Requests are not queued.
static int is_masked;  // An odd number of filters change the bytes.

static struct evhttp_connection* make_connection(int port) {
  filters = 1 + random_below(kFiltersMost);
  is_alone = random_chance(50);
  printf("filters %d, alone %d\n", filters, is_alone);
  if (!getenv("DIFFERENTIAL_DROP_IN")) filters = 0;
  is_masked = filters % 2;
  struct bufferevent* bev = make_masked(base, filters);
  return evhttp_connection_base_bufferevent_new(base, NULL, bev, "127.0.0.1", (ev_uint16_t)port);
}

static int may_ask(void) { return !is_alone || !is_waited_for(); }
static int may_end_body(void) { return is_alone; }
static int may_retry(void) { return 1; }
static int is_plain(void) { return 1; }
static void peer_opens(void) {}
static int peer_may_send(void) { return 1; }

static void change_back(char* bytes, size_t size) {
  if (!is_masked) return;
  for (size_t i = 0; i < size; i++) bytes[i] = (char)(bytes[i] ^ mask);
}

// A socket reports its timeout before bytes that arrived meanwhile, and a filter after them.
static void end_what_is_due(void) { event_base_loop(base, EVLOOP_NONBLOCK); }

static void peer_sends(const char* bytes, size_t size) {
  static char changed[kTextMost];
  end_what_is_due();
  memcpy(changed, bytes, size);
  change_back(changed, size);
  send_bytes(peer, changed, size);
}

static int peer_shows(void) {
  static char bytes[kWireMost + 1];
  const ssize_t size = recv(peer, bytes, kWireMost, MSG_DONTWAIT);
  if (size > 0) {
    change_back(bytes, (size_t)size);
    print_received(peers, bytes, (size_t)size);
    return 1;
  }
  if (size < 0 && errno == EAGAIN) return 0;
  printf("  wire %d ends\n", peers);
  return -1;
}

static void peer_shuts(void) {
  end_what_is_due();
  shutdown(peer, SHUT_WR);
}

static void peer_closes(void) {
  end_what_is_due();
  close(peer);
}

int main(int argc, char** argv) {
  block_seconds = 5;
  return run_seeds(argc, argv, run_script);
}
