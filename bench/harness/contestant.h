/* Shared by every contestant, in C and in C++: arguments, clock, random numbers, socket pairs,
   resident memory, and the output protocol. Nothing here touches the library under test.

   Output: one JSON object a line on stdout. harness/README.md states the protocol. */
#ifndef BENCH_HARNESS_CONTESTANT_H
#define BENCH_HARNESS_CONTESTANT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BENCH_UNUSED __attribute__((unused))

BENCH_UNUSED static void bench_die(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

/* Returns the directory of temporary files, which the harness deletes after the run. */
BENCH_UNUSED static const char *bench_temporary_directory(void) {
  const char *directory = getenv("TMPDIR");
  return directory != NULL && directory[0] != 0 ? directory : "/tmp";
}

/* The value after "--name", or `otherwise` when the argument is absent. */
BENCH_UNUSED static const char *bench_text(int argc, char **argv, const char *name,
                                           const char *otherwise) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0) return argv[i + 1];
  return otherwise;
}

BENCH_UNUSED static long bench_number(int argc, char **argv, const char *name, long otherwise) {
  const char *text = bench_text(argc, argv, name, NULL);
  return text == NULL ? otherwise : strtol(text, NULL, 10);
}

BENCH_UNUSED static inline uint64_t bench_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

BENCH_UNUSED static void bench_sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

/* xorshift64*: the same sequence for every contestant. */
static uint64_t bench_random_state = 0x9e3779b97f4a7c15u;

BENCH_UNUSED static inline uint64_t bench_random(void) {
  uint64_t x = bench_random_state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  bench_random_state = x;
  return x * 0x2545f4914f6cdd1du;
}

/* Uniform in [0, limit), limit < 2^32. */
BENCH_UNUSED static inline uint64_t bench_random_below(uint64_t limit) {
  return ((bench_random() >> 32) * limit) >> 32;
}

BENCH_UNUSED static void bench_socketpair(int fds[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
    bench_die("socketpair");
}

BENCH_UNUSED static void bench_raise_fd_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) bench_die("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

BENCH_UNUSED static long bench_resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long size = 0, resident = 0;
  if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) bench_die("/proc/self/statm");
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

/* Prints a metric. JSON has no infinity and no NaN: a program that divides by zero fails here. */
BENCH_UNUSED static void bench_metric(const char *name, const char *unit, double value) {
  if (!__builtin_isfinite(value)) {
    fprintf(stderr, "%s is not finite\n", name);
    exit(1);
  }
  printf("{\"metric\": \"%s\", \"unit\": \"%s\", \"value\": %.9g}\n", name, unit, value);
}

/* Work done, compared between the contestants before anything is timed. */
BENCH_UNUSED static void bench_work(const char *name, uint64_t value) {
  printf("{\"work\": \"%s\", \"value\": %" PRIu64 "}\n", name, value);
}

/* Ends a contestant that cannot run here, for example because the kernel lacks a feature. The
   report shows the reason. */
BENCH_UNUSED static void bench_leave_out(const char *reason) {
  printf("{\"left_out\": \"%s\"}\n", reason);
  exit(0);
}

/* Prints how many operations of a kind this run performed: the divisor of the counts. */
BENCH_UNUSED static void bench_ops(const char *name, uint64_t value) {
  printf("{\"ops\": \"%s\", \"value\": %" PRIu64 "}\n", name, value);
}

/* Prints the version that the library itself reports, and the path of the mapped shared object
   whose name begins with `soname` ("libev.so"). `soname` is NULL for a library that is static or
   has headers only. */
BENCH_UNUSED static void bench_version(const char *version, const char *soname) {
  char line[4096], library[4096] = "";
  FILE *maps = soname == NULL ? NULL : fopen("/proc/self/maps", "r");
  while (maps != NULL && library[0] == 0 && fgets(line, sizeof line, maps) != NULL) {
    char *name = strrchr(line, '/');
    if (name == NULL || strncmp(name + 1, soname, strlen(soname)) != 0) continue;
    line[strcspn(line, "\n")] = 0;
    strcpy(library, strchr(line, '/'));
  }
  if (maps != NULL) fclose(maps);
  if (soname != NULL && library[0] == 0) {
    fprintf(stderr, "%s is not mapped into this process\n", soname);
    exit(1);
  }
  printf("{\"version\": \"%s\", \"library\": \"%s\"}\n", version, library);
}

#endif
