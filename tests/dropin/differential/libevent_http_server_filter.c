// The scripts of http_server_script.h over a server whose bufferevents are one filter or two over a
// socket. The filters change each byte, and the clients change it back.
//
// differential: --seeds 1:500
// differential settings: debug,precise,poll
#include "http_server_script.h"
#include "masking_filter.h"

static int filters;

static struct bufferevent* make_filters(struct event_base* of, void* arg) {
  (void)arg;
  return make_masked(of, filters);
}

static void prepare_server(void) {
  is_filtered = 1;
  filters = 1 + random_below(kFiltersMost);
  wire_mask = filters % 2 ? mask : 0;
  printf("filters %d\n", filters);
  evhttp_set_bevcb(server, make_filters, NULL);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
