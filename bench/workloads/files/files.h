/* Reads or writes blocks of one file, one after the other. A contestant includes this file and
   defines the four functions declared below. When an operation has ended, its callback calls
   files_end(), after files_take() for each piece that was read. files_end() begins the next one. */
#ifndef BENCH_WORKLOADS_FILES_H
#define BENCH_WORKLOADS_FILES_H

#include "harness/contestant.h"

static size_t files_size; /* of an operation */
static int files_fd;
static unsigned char *files_block; /* files_size bytes: written, or, if a contestant likes, read */
static uint64_t files_offset;      /* of the present operation */

static size_t files_length;
static long files_count, files_cold, files_writes, files_done;
static uint64_t files_begin, files_bytes, files_sum;
static uint64_t *files_times;

/* A contestant defines these functions. */
static void files_open(int argc, char **argv); /* make the loop */
static void files_start(void); /* begin to read or write at files_offset: see files_writes */
static void files_run(void);   /* run the loop until no operation is left */
static void files_version(void); /* call bench_version() */

/* Ends the time of the operation: looking at the bytes is no part of it. */
static inline void files_stop_clock(void) {
  files_times[files_done] = bench_now_ns() - files_begin;
}

/* Looks at one byte of each cache line. */
static inline void files_take(const void *data, size_t size) {
  const unsigned char *bytes = (const unsigned char *)data;
  for (size_t i = 0; i < size; i += 64) files_sum = files_sum * 31 + bytes[i];
  files_bytes += size;
}

static inline void files_begin_next(void) {
  const uint64_t blocks = files_length / files_size;
  files_offset = (uint64_t)files_done * 7919u % blocks * files_size;
  if (files_cold && posix_fadvise(files_fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
    bench_die("posix_fadvise");
  files_begin = bench_now_ns();
  files_start();
}

static inline void files_end(void) {
  if (++files_done < files_count) files_begin_next();
}

static void files_fail(const char *what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

/* Makes a file that has no name, and that is on the disk. */
static void files_create(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/spate-bench-files-XXXXXX", bench_temporary_directory());
  files_fd = mkostemp(path, O_CLOEXEC);
  if (files_fd < 0) bench_die(path);
  unlink(path);
  enum { kPiece = 65536 };
  static uint64_t piece[kPiece / 8];
  for (size_t at = 0; at < files_length; at += kPiece) {
    for (size_t i = 0; i < kPiece / 8; i++) piece[i] = bench_random();
    if (pwrite(files_fd, piece, kPiece, (off_t)at) != kPiece) bench_die("pwrite");
  }
  if (fsync(files_fd) != 0) bench_die("fsync");
}

static void files_check_written(void) {
  for (size_t at = 0; at < files_length; at += files_size) {
    if (pread(files_fd, files_block, files_size, (off_t)at) != (ssize_t)files_size)
      bench_die("pread");
    files_take(files_block, files_size);
  }
}

static int files_compare(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

int main(int argc, char **argv) {
  files_size = (size_t)bench_number(argc, argv, "size", 4096);
  files_count = bench_number(argc, argv, "operations", 1000);
  files_cold = bench_number(argc, argv, "cold", 0);
  files_writes = bench_number(argc, argv, "write", 0);
  files_length = (size_t)bench_number(argc, argv, "mebibytes", 64) << 20;
  if (files_count < 1 || files_size < 1 || files_length < files_size) {
    fprintf(stderr, "--operations and --size are at least 1, and a block fits into the file\n");
    return 2;
  }
  files_create();
  files_times = (uint64_t *)calloc((size_t)files_count, sizeof *files_times);
  /* The kernel copies into a block of malloc(), 16 bytes behind a page, at half of the speed. */
  files_block = (unsigned char *)aligned_alloc(64, (files_size + 63) / 64 * 64);
  memset(files_block, 'w', files_size);
  files_open(argc, argv);
  files_version();
  files_begin_next();
  files_run();
  if (files_done != files_count) files_fail("the run");
  if (files_writes) files_check_written();
  qsort(files_times, (size_t)files_count, sizeof *files_times, files_compare);
  bench_metric("operation_us", "us", (double)files_times[files_count / 2] / 1e3);
  bench_metric("fastest_us", "us", (double)files_times[0] / 1e3);
  bench_work("operations", (uint64_t)files_done);
  bench_work("bytes", files_bytes);
  bench_work("sum", files_sum);
  bench_ops("operation", (uint64_t)files_done);
  return 0;
}

#endif
