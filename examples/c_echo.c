// A TCP echo server in C.
//   c_echo 7000          talk to it: nc localhost 7000
#include <signal.h>
#include <spate_net.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char* what, int error) {
  char text[100];
  fprintf(stderr, "c_echo: %s: %s\n", what, spate_strerror(error, text, sizeof text));
  return 1;
}

// Stops reading from a peer that does not read. Bytes that are left are passed again on resume.
static size_t on_data(spate_stream* stream, const void* bytes, size_t size) {
  if (spate_stream_is_full(stream)) {
    spate_stream_pause(stream);
    return 0;
  }
  spate_stream_write(stream, bytes, size);
  return size;
}

static void on_drained(spate_stream* stream) { spate_stream_resume(stream); }

static void on_closed(spate_stream* stream, int error) {
  (void)error;
  spate_stream_destroy(stream);
}

static spate_stream_callbacks callbacks;

static void on_accept(spate_listener* listener, spate_stream* stream, const spate_address* peer) {
  (void)listener;
  (void)peer;
  spate_stream_start(stream, &callbacks, NULL);
}

static void on_term(spate_loop* loop, spate_signal* signal, uint32_t events) {
  (void)signal;
  (void)events;
  spate_loop_stop(loop);
}

static int serve(spate_loop* loop, const char* where) {
  spate_address address;
  spate_listener* listener;
  spate_signal term;
  char text[128];
  int error = spate_address_parse_listen(&address, where);
  if (error == 0) error = spate_listen(&listener, loop, &address, on_accept, NULL, NULL);
  if (error != 0) return fail(where, error);

  spate_signal_init(&term, loop, on_term, NULL);
  spate_signal_set(&term, SIGTERM);
  error = spate_signal_start(&term);
  if (error != 0) return fail("SIGTERM", error);

  spate_listener_address(listener, &address);
  printf("%s\n", spate_address_text(&address, text, sizeof text));
  fflush(stdout);
  error = spate_loop_run(loop, SPATE_RUN_UNTIL_DONE);
  spate_signal_stop(&term);
  spate_listener_destroy(listener);
  return error == 0 ? 0 : fail("the loop", error);
}

int main(int argc, char** argv) {
  spate_loop* loop;
  int error;
  int status;
  if (argc != 2) {
    fprintf(stderr, "usage: c_echo [HOST:]PORT\n");
    return 2;
  }
  callbacks.size = sizeof callbacks;
  callbacks.on_data = on_data;
  callbacks.on_drained = on_drained;
  callbacks.on_closed = on_closed;
  error = spate_loop_create(&loop, NULL);
  if (error != 0) return fail("the loop", error);
  status = serve(loop, argv[1]);
  spate_loop_destroy(loop);
  return status;
}
