// Random scripts over a client of evhttp: a raw server in the same process answers, right and
// wrong, in pieces or not at all.
//
// Less than 4,096 bytes are sent at once: the original reads no more. Left out are differences on
// purpose (docs/drop-in.md).
//
// With `--whole`, for weather, the pieces of a response are not printed: weather splits it
// differently.
//
// differential: --seeds 1:800
// differential in weather: --seeds 1:400 --chunk 50 -- --whole
// differential settings: debug,changelist,precise,poll,select
#include "http_client_script.h"

static struct evhttp_connection* make_connection(int port) {
  return evhttp_connection_base_new(base, NULL, "127.0.0.1", (ev_uint16_t)port);
}

static int may_ask(void) { return 1; }
static int may_end_body(void) { return 1; }
static int may_retry(void) { return 1; }
static int is_plain(void) { return 1; }
static void peer_opens(void) {}
static int peer_may_send(void) { return 1; }
static void peer_sends(const char* bytes, size_t size) { send_bytes(peer, bytes, size); }
static int peer_shows(void) { return print_wire(peers, peer); }
static void peer_shuts(void) { shutdown(peer, SHUT_WR); }
static void peer_closes(void) { close(peer); }

int main(int argc, char** argv) {
  block_seconds = 5;
  hides_input = argc > 1 && strcmp(argv[argc - 1], "--whole") == 0;
  return run_seeds(argc, argv, run_script);
}
