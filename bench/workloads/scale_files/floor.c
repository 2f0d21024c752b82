/* inotify, and read() into one buffer. */
#include <sys/inotify.h>

#include "scale_files.h"

static int inotify = -1;
static char buffer[65536];

static void files_open(void) { inotify = inotify_init1(IN_CLOEXEC); }
static void files_version(void) { bench_version("none", NULL); }

static void files_watch(const char* directory) {
  if (inotify_add_watch(inotify, directory, IN_CLOSE_WRITE) < 0) bench_die(directory);
}

static void files_run(void) {
  const ssize_t size = read(inotify, buffer, sizeof buffer);
  if (size <= 0) bench_die("inotify");
  for (ssize_t at = 0; at < size;) {
    struct inotify_event event;
    memcpy(&event, buffer + at, sizeof event);
    at += (ssize_t)(sizeof event + event.len);
    files_reported();
  }
}
