/* The shape of libevent's bench.c, as libev's published runs used it. A contestant includes this
   file and defines the four functions declared below; its callback calls fd_receive(index). */
#ifndef BENCH_WORKLOADS_FD_H
#define BENCH_WORKLOADS_FD_H

#include "harness/contestant.h"

static long fd_pairs, fd_active, fd_writes, fd_timeouts, fd_rounds;
static int *fd_sockets; /* pair i reads from [2 * i], is written through [2 * i + 1] */

static long fd_fired, fd_received, fd_writes_left;
static uint64_t fd_total_sent, fd_total_received, fd_resets, fd_balance, fd_expired;

/* A contestant defines these functions. */
static void fd_open(int argc, char **argv);          /* make the loop and the watchers' memory */
static inline void fd_watch(long i, int fd);         /* stop, set and start the watcher of pair i */
static inline void fd_pass(void);                    /* one pass of the loop that does not block */
static void fd_version(void);                        /* call bench_version() */

static inline int fd_socket(long i) { return fd_sockets[2 * i]; }

/* A fresh idle timeout: 10 to 11 seconds. */
static inline uint64_t fd_timeout_ns(void) {
  fd_resets++;
  return 10000000000u + bench_random_below(1000000000u);
}

static inline void fd_send(long i) {
  if (send(fd_sockets[2 * i + 1], "e", 1, 0) != 1) bench_die("send");
  fd_fired++;
  fd_balance += (uint64_t)i;
}

/* Reads one byte of pair i and, while chained writes are left, sends one to the next pair. */
static inline void fd_receive(long i) {
  char byte;
  if (recv(fd_socket(i), &byte, 1, 0) != 1) return;
  fd_received++;
  fd_balance -= (uint64_t)i;
  if (fd_writes_left > 0) {
    fd_writes_left--;
    fd_send(i + 1 < fd_pairs ? i + 1 : 0);
  }
}

typedef struct {
  uint64_t setup_ns, whole_ns;
} FdTimes;

static FdTimes fd_run_once(void) {
  const uint64_t begin = bench_now_ns();
  for (long i = 0; i < fd_pairs; i++) fd_watch(i, fd_socket(i));
  fd_pass();
  const uint64_t ready = bench_now_ns();
  fd_fired = fd_received = 0;
  fd_writes_left = fd_writes;
  const long space = fd_pairs / fd_active;
  for (long i = 0; i < fd_active; i++) fd_send(i * space);
  do fd_pass();
  while (fd_received < fd_fired);
  const uint64_t end = bench_now_ns();
  fd_total_sent += (uint64_t)fd_fired;
  fd_total_received += (uint64_t)fd_received;
  return (FdTimes){ready - begin, end - begin};
}

int main(int argc, char **argv) {
  fd_pairs = bench_number(argc, argv, "pairs", 100);
  fd_active = bench_number(argc, argv, "active", 100);
  fd_writes = bench_number(argc, argv, "writes", 100);
  fd_timeouts = bench_number(argc, argv, "timeouts", 0);
  fd_rounds = bench_number(argc, argv, "rounds", 2);
  bench_raise_fd_limit();
  fd_sockets = (int *)malloc(sizeof(int) * 2 * (size_t)fd_pairs);
  for (long i = 0; i < fd_pairs; i++) bench_socketpair(fd_sockets + 2 * i);
  fd_open(argc, argv);
  fd_version();
  FdTimes last = {0, 0};
  for (long round = 0; round < fd_rounds; round++) last = fd_run_once();
  bench_metric("setup_us", "us", (double)last.setup_ns / 1e3);
  bench_metric("processing_us", "us", (double)(last.whole_ns - last.setup_ns) / 1e3);
  bench_metric("whole_us", "us", (double)last.whole_ns / 1e3);
  bench_work("bytes_sent", fd_total_sent);
  bench_work("bytes_received", fd_total_received);
  bench_work("unbalanced", fd_balance);
  bench_work("timeouts_set", fd_resets);
  bench_work("timeouts_expired", fd_expired);
  bench_ops("event", fd_total_received);
  bench_ops("registration", (uint64_t)(fd_rounds * fd_pairs));
  fflush(stdout);
  _exit(0); /* tens of thousands of sockets are the kernel's to close, not the library's */
}

#endif
