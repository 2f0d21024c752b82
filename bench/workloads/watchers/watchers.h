/* The shape of the AnyEvent benchmark: make `count` watchers, have each called once, destroy them.
   Kind io: all watch one socket that becomes readable; kind timer: one-shot timers due at once.
   A contestant includes this file, defines the functions declared below, and its callback calls
   watchers_invoked(). */
#ifndef BENCH_WORKLOADS_WATCHERS_H
#define BENCH_WORKLOADS_WATCHERS_H

#include "harness/contestant.h"

typedef enum { WATCHERS_IO, WATCHERS_TIMER } WatchersKind;

static WatchersKind watchers_kind;
static long watchers_count, watchers_left;
static uint64_t watchers_calls;
static int watchers_sockets[2]; /* [0] is watched */

/* A contestant defines these functions. */
static void watchers_open(void);          /* make the loop */
static size_t watchers_object_bytes(void); /* sizeof of one watcher of the kind */
static void watchers_create(void);        /* allocate, initialise and start all */
static void watchers_pass(void);          /* one pass of the loop that does not block */
static void watchers_destroy(void);       /* stop all, the last one first, and free */
static void watchers_version(void);       /* call bench_version() */

/* The last of the callbacks takes the byte away, so that nothing is ready any more. */
static inline void watchers_invoked(void) {
  char byte;
  watchers_calls++;
  if (--watchers_left > 0 || watchers_kind != WATCHERS_IO) return;
  if (read(watchers_sockets[0], &byte, 1) != 1) bench_die("read");
}

int main(int argc, char **argv) {
  const char *kind = bench_text(argc, argv, "kind", "io");
  watchers_kind = strcmp(kind, "io") == 0 ? WATCHERS_IO : WATCHERS_TIMER;
  watchers_count = watchers_left = bench_number(argc, argv, "count", 1000);
  bench_raise_fd_limit();
  bench_socketpair(watchers_sockets);
  watchers_open();
  watchers_version();
  watchers_pass(); /* allocations of a loop's first turn do not count */

  const long resident = bench_resident_bytes();
  const uint64_t begin = bench_now_ns();
  watchers_create();
  const uint64_t created = bench_now_ns();
  if (watchers_kind == WATCHERS_IO && write(watchers_sockets[1], "e", 1) != 1) bench_die("write");
  const uint64_t ready = bench_now_ns();
  while (watchers_left > 0) watchers_pass();
  const uint64_t invoked = bench_now_ns();
  const long grown = bench_resident_bytes() - resident;
  const uint64_t doomed = bench_now_ns();
  watchers_destroy();
  const uint64_t destroyed = bench_now_ns();

  const double count = (double)watchers_count;
  bench_metric("bytes", "B", (double)grown / count);
  bench_metric("object_bytes", "B", (double)watchers_object_bytes());
  bench_metric("create_ns", "ns", (double)(created - begin) / count);
  bench_metric("invoke_ns", "ns", (double)(invoked - ready) / count);
  bench_metric("destroy_ns", "ns", (double)(destroyed - doomed) / count);
  bench_work("callbacks", watchers_calls);
  bench_ops("watcher", (uint64_t)watchers_count);
  return 0;
}

#endif
