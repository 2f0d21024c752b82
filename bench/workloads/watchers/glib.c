/* GLib: one GSource a watcher (g_unix_fd_source_new, g_timeout_source_new), allocated by GLib. The
   context is owned by this thread. Several steps are linear in the number of sources, so the runner
   gives it fewer. */
#include "watchers.h"

#include <glib-unix.h>
#include <glib.h>

static GMainContext *context;
static GSource **sources;

static gboolean on_fd(gint fd, GIOCondition condition, gpointer data) {
  (void)fd, (void)condition, (void)data;
  watchers_invoked();
  return G_SOURCE_CONTINUE;
}

static gboolean on_timeout(gpointer data) {
  (void)data;
  watchers_invoked();
  return G_SOURCE_REMOVE;
}

static void watchers_open(void) {
  context = g_main_context_new();
  g_main_context_acquire(context);
}

static size_t watchers_object_bytes(void) { return sizeof(GSource); } /* its private part is more */

static void watchers_create(void) {
  const size_t count = (size_t)watchers_count;
  sources = (GSource **)malloc(count * sizeof(GSource *));
  for (size_t i = 0; i < count; i++) {
    if (watchers_kind == WATCHERS_IO) {
      sources[i] = g_unix_fd_source_new(watchers_sockets[0], G_IO_IN);
      g_source_set_callback(sources[i], G_SOURCE_FUNC(on_fd), NULL, NULL);
    } else {
      sources[i] = g_timeout_source_new(0);
      g_source_set_callback(sources[i], on_timeout, NULL, NULL);
    }
    g_source_attach(sources[i], context);
  }
}

static void watchers_pass(void) { g_main_context_iteration(context, FALSE); }

static void watchers_destroy(void) {
  for (long i = watchers_count; i-- > 0;) {
    g_source_destroy(sources[i]);
    g_source_unref(sources[i]);
  }
  free(sources);
}

static void watchers_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%u.%u.%u", glib_major_version, glib_minor_version,
           glib_micro_version);
  bench_version(version, "libglib-2.0.so");
}
