/* libuv: uv_fs_read() and uv_fs_write() of one block, one request at a time. */
#include "files.h"

#include <uv.h>

static uv_loop_t loop;
static uv_fs_t request;
static uv_buf_t block;

static void on_end(uv_fs_t *ended) {
  files_stop_clock();
  if (ended->result != (ssize_t)files_size) files_fail("the operation");
  if (!files_writes) files_take(files_block, files_size);
  uv_fs_req_cleanup(ended);
  files_end();
}

static void files_open(int argc, char **argv) {
  (void)argc, (void)argv;
  uv_loop_init(&loop);
  block = uv_buf_init((char *)files_block, (unsigned)files_size);
}

static void files_start(void) {
  if (files_writes) {
    uv_fs_write(&loop, &request, files_fd, &block, 1, (int64_t)files_offset, on_end);
  } else {
    uv_fs_read(&loop, &request, files_fd, &block, 1, (int64_t)files_offset, on_end);
  }
}

static void files_run(void) { uv_run(&loop, UV_RUN_DEFAULT); }

static void files_version(void) { bench_version(uv_version_string(), "libuv.so"); }
