// A client in C: connects by name, sends a line, and prints the response.
//   c_ask localhost 7000 hello
#include <spate_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t kSecond = 1000000000;
static int status = 1;

static void on_connected(spate_stream* stream) {
  const char* const line = (const char*)spate_stream_data(stream);
  spate_stream_write(stream, line, strlen(line));
  spate_stream_write(stream, "\n", 1);
  spate_stream_end(stream);
}

static size_t on_data(spate_stream* stream, const void* bytes, size_t size) {
  (void)stream;
  return fwrite(bytes, 1, size, stdout);
}

static void on_closed(spate_stream* stream, int error) {
  char text[100];
  if (error != 0) fprintf(stderr, "c_ask: %s\n", spate_strerror(error, text, sizeof text));
  status = error != 0;
  spate_stream_destroy(stream);
}

int main(int argc, char** argv) {
  spate_loop* loop;
  spate_stream* stream;
  spate_stream_callbacks callbacks = {sizeof callbacks, on_data, NULL,
                                      on_connected,     NULL,    on_closed};
  spate_connect_options options;
  if (argc != 4) {
    fprintf(stderr, "usage: c_ask HOST PORT LINE\n");
    return 2;
  }
  if (spate_loop_create(&loop, NULL) != 0) return 1;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.timeout = 5 * kSecond;
  if (spate_stream_connect(&stream, loop, argv[1], (uint16_t)atoi(argv[2]), &callbacks, argv[3],
                           &options) == 0) {
    spate_loop_run(loop, SPATE_RUN_UNTIL_DONE);
  }
  spate_loop_destroy(loop);
  return status;
}
