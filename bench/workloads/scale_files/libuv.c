/* libuv: uv_fs_event. It reports each write, not the close. */
#include <uv.h>

#include "scale_files.h"

static uv_loop_t loop;
static uv_fs_event_t watch;

static void files_open(void) { uv_loop_init(&loop); }
static void files_version(void) { bench_version(uv_version_string(), "libuv.so"); }

static void on_event(uv_fs_event_t* handle, const char* name, int events, int status) {
  (void)handle;
  if (name != NULL && events == UV_CHANGE && status == 0) files_reported();
}

static void files_watch(const char* directory) {
  uv_fs_event_init(&loop, &watch);
  if (uv_fs_event_start(&watch, on_event, directory, 0) != 0) bench_die(directory);
}

static void files_run(void) { uv_run(&loop, UV_RUN_ONCE); }
