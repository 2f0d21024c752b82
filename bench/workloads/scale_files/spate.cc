// A Watch of one directory, without the events of writers that have not closed the file yet.
#include <spate/loop.h>
#include <spate/watch.h>

#include "scale_files.h"

static std::unique_ptr<spate::Loop> loop;
static spate::Watch watch;
static bool is_ready;

static void files_open(void) { loop = spate::Loop::create().value(); }
static void files_version(void) { bench_version("0.1.0", nullptr); }

static void on_events(spate::Result<std::span<const spate::WatchEvent>> events) {
  for (const spate::WatchEvent& event : events.value()) {
    if (event.change == spate::Change::ready) is_ready = true;
    if (event.change == spate::Change::written) files_reported();
  }
}

static void files_watch(const char* directory) {
  watch = spate::Watch::start(*loop, directory, on_events,
                              {.scope = spate::WatchScope::directory, .changed = false})
              .value();
  while (!is_ready) loop->run(spate::Run::once);
}

static void files_run(void) { loop->run(spate::Run::once); }
