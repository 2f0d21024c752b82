/* GLib: sources whose only condition is g_source_set_ready_time. Setting it is cheap; each pass of
   the loop is linear in the number of sources. A stop is a ready time of -1, which keeps the source
   attached: cheaper than destroying it and making another. Microseconds are its unit. */
#include "timers.h"

#include <glib.h>

static GMainContext *context;
static GSource **timers;
static gint64 now;

static gboolean on_timer(GSource *source, GSourceFunc callback, gpointer data) {
  (void)callback, (void)data;
  g_source_set_ready_time(source, -1);
  timers_fired();
  return G_SOURCE_CONTINUE;
}

static void timers_open(void) {
  static GSourceFuncs functions = {NULL, NULL, on_timer, NULL, NULL, NULL};
  context = g_main_context_new();
  g_main_context_acquire(context);
  timers = (GSource **)malloc((size_t)timers_pending * sizeof(GSource *));
  for (long i = 0; i < timers_pending; i++) {
    timers[i] = g_source_new(&functions, sizeof(GSource));
    g_source_attach(timers[i], context);
  }
}

static void timers_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%u.%u.%u", glib_major_version, glib_minor_version,
           glib_micro_version);
  bench_version(version, "libglib-2.0.so");
}

static void timers_update_now(void) { now = g_get_monotonic_time(); }

static inline void timers_start(uint32_t i, uint64_t ns) {
  g_source_set_ready_time(timers[i], now + (gint64)(ns / 1000));
}

static inline void timers_restart(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop(uint32_t i) { g_source_set_ready_time(timers[i], -1); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) { g_main_context_iteration(context, FALSE); }
static void timers_inside(void (*phase)(void)) { phase(); }
