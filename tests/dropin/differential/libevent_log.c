// The library's log messages: severities, the default form on stderr, the callbacks; and fatal
// errors.
// differential: --stderr
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>

#include "harness.h"

static void print_log(int severity, const char* text) {
  printf("log %d \"%s\", errno %d\n", severity, text, errno);
}

static void print_fatal(int error) { printf("fatal %x\n", error); }

static void leave(int error) {
  printf("leaving %x\n", error);
  fflush(stdout);
  _exit(3);
}

static void warn(void) { evutil_make_socket_nonblocking(-1); }

// A second call is an error for which libevent ends the program.
static void end_program(void) {
  event_enable_debug_mode();
  event_enable_debug_mode();
  printf("still here\n");
}

static void warnings(void) {
  warn();
  event_set_log_callback(print_log);
  warn();
  event_set_log_callback(NULL);
  warn();
}

static void errno_is_kept(void) {
  event_set_log_callback(print_log);
  errno = 0;
  printf("%d\n", evutil_make_socket_closeonexec(-1));
  printf("errno %d\n", errno);
}

static void default_ending(void) { end_program(); }

static void ending_with_log(void) {
  event_set_log_callback(print_log);
  end_program();
}

static void fatal_callback_returns(void) {
  event_set_log_callback(print_log);
  event_set_fatal_callback(print_fatal);
  end_program();
}

static void fatal_callback_leaves(void) {
  event_set_fatal_callback(leave);
  end_program();
}

static void fatal_callback_taken_back(void) {
  event_set_fatal_callback(leave);
  event_set_fatal_callback(NULL);
  end_program();
}

static int is_debugging;

static void find_unasked(int severity, const char* text) {
  if (severity == EVENT_LOG_DEBUG && !is_debugging) {
    printf("unasked: %s\n", text);
  }
}

static void make_base(void) {
  struct event_base* base = event_base_new();
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
}

// The number and text of debug messages differ between the libraries.
static void debug_logging(void) {
  event_set_log_callback(find_unasked);
  make_base();
  is_debugging = 1;
  event_enable_debug_logging(EVENT_DBG_ALL);
  make_base();
  event_enable_debug_logging(EVENT_DBG_NONE);
  is_debugging = 0;
  make_base();
}

static const Case kCases[] = {{"warnings", warnings},
                              {"errno is kept", errno_is_kept},
                              {"default ending", default_ending},
                              {"ending with a log callback", ending_with_log},
                              {"a fatal callback that returns", fatal_callback_returns},
                              {"a fatal callback that leaves", fatal_callback_leaves},
                              {"a fatal callback taken back", fatal_callback_taken_back},
                              {"debug logging", debug_logging}};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, sizeof kCases / sizeof *kCases);
}
