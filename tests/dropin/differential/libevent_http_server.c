// The scripts of http_server_script.h over sockets.
//
// With `--clients 1`, for weather, there is one client, which does not leave, and how much of its
// requests was read early is not printed: in weather the order of concurrent events is undefined.
//
// differential: --seeds 1:800,223026,1202024
// differential in weather: --seeds 1:400 --chunk 50 -- --clients 1
// differential settings: debug,changelist,precise,poll,select
#include "http_server_script.h"

static void prepare_server(void) {}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[argc - 2], "--clients") == 0) {
    client_count = atoi(argv[argc - 1]);
    hides_input = client_count == 1;
  }
  return run_seeds(argc, argv, run_script);
}
