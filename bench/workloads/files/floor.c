/* The floor: pread() and pwrite() on the loop's thread. A cold disk blocks it. */
#include "files.h"

static void files_open(int argc, char **argv) { (void)argc, (void)argv; }

/* files_run() performs the operation, so that no call nests. */
static void files_start(void) {}

static void files_run(void) {
  while (files_done < files_count) {
    const ssize_t size = files_writes
                             ? pwrite(files_fd, files_block, files_size, (off_t)files_offset)
                             : pread(files_fd, files_block, files_size, (off_t)files_offset);
    files_stop_clock();
    if (size != (ssize_t)files_size) bench_die("pread or pwrite");
    if (!files_writes) files_take(files_block, files_size);
    files_end();
  }
}

static void files_version(void) { bench_version("", NULL); }
