/* A directory of --files files is watched. Files are written, --batch at a time, and then the loop
   runs until each write was reported. A contestant includes this file, defines the functions
   declared below, and calls files_reported() once for each write that is reported. */
#ifndef BENCH_WORKLOADS_SCALE_FILES_H
#define BENCH_WORKLOADS_SCALE_FILES_H

#include <malloc.h>
#include <sys/stat.h>

#include "harness/contestant.h"

/* A contestant defines these functions. */
static void files_open(void);                   /* make the loop */
static void files_version(void);                /* call bench_version() */
static void files_watch(const char* directory); /* watch; return when changes are reported */
static void files_run(void);                    /* one pass of the loop, which may block */

static uint64_t files_reports;

static inline void files_reported(void) { files_reports++; }

static int files_directory = -1;
static long files_count;

static void files_name(long i, char name[32]) { snprintf(name, 32, "file%ld", i); }

static void files_make(const char* directory) {
  char name[32];
  files_directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (files_directory < 0) bench_die(directory);
  for (long i = 0; i < files_count; i++) {
    files_name(i, name);
    const int fd = openat(files_directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) bench_die(name);
    close(fd);
  }
}

static void files_remove(const char* directory) {
  char name[32];
  for (long i = 0; i < files_count; i++) {
    files_name(i, name);
    unlinkat(files_directory, name, 0);
  }
  rmdir(directory);
}

static void files_write(long i) {
  char name[32];
  files_name(i, name);
  const int fd = openat(files_directory, name, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || pwrite(fd, "x", 1, 0) != 1) bench_die(name);
  close(fd);
}

static double files_heap(void) {
  const struct mallinfo2 info = mallinfo2();
  return (double)(info.uordblks + info.hblkhd);
}

/* Writes --events times, each file as often as any other. Returns the time that the loop took. */
static double files_measure(long events, long batch) {
  double spent = 0;
  uint64_t written = 0;
  for (long at = 0; at < events; at += batch) {
    for (long k = at; k < at + batch; k++, written++)
      files_write((long)((uint64_t)k * 618034 % (uint64_t)files_count));
    const uint64_t begin = bench_now_ns();
    while (files_reports < written) files_run();
    spent += (double)(bench_now_ns() - begin);
  }
  bench_work("written", written);
  bench_work("reported", files_reports);
  bench_ops("event", written);
  return spent / (double)written;
}

int main(int argc, char** argv) {
  char directory[256];
  files_count = bench_number(argc, argv, "files", 100);
  const long events = bench_number(argc, argv, "events", 20000);
  const long batch = bench_number(argc, argv, "batch", 100);
  snprintf(directory, sizeof directory, "%s/spate-bench-XXXXXX", bench_temporary_directory());
  if (mkdtemp(directory) == NULL) bench_die(directory);
  files_make(directory);
  files_open();
  files_version();
  const double heap = files_heap();
  const uint64_t begin = bench_now_ns();
  files_watch(directory);
  const double watch_ns = (double)(bench_now_ns() - begin);
  bench_metric("watch_us", "us", watch_ns / 1e3);
  bench_metric("watch_bytes", "B", files_heap() - heap);
  bench_metric("event_ns", "ns", files_measure(events, batch));
  files_remove(directory);
  fflush(stdout);
  _exit(0);
}

#endif
