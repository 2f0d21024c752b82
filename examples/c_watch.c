// In C: prints the changes in a directory tree, until ctrl-C.
//   c_watch /tmp/tree
#include <spate_net.h>
#include <stdio.h>

static void on_event(spate_watch* watch, const spate_watch_event* event) {
  const char* const name = spate_change_name(event->change);
  char text[100];
  (void)watch;
  printf("%s", name == NULL ? "unknown" : name);
  if (event->is_found) printf(" (found)");
  if (event->change == SPATE_CHANGE_MOVED) printf(" %s ->", event->old_path);
  printf(" %s%s", event->path[0] == 0 ? "." : event->path, event->is_directory ? "/" : "");
  if (event->error != 0) printf(": %s", spate_strerror(event->error, text, sizeof text));
  printf("\n");
  fflush(stdout);
}

static void on_end(spate_watch* watch, int error) {
  char text[100];
  (void)watch;
  printf("the watch has ended: %s\n", spate_strerror(error, text, sizeof text));
  fflush(stdout);
}

int main(int argc, char** argv) {
  const spate_watch_callbacks callbacks = {sizeof callbacks, on_event, on_end};
  spate_loop* loop;
  spate_watch* watch;
  char text[100];
  int error;
  if (argc != 2) {
    fprintf(stderr, "usage: c_watch DIRECTORY\n");
    return 2;
  }
  if (spate_loop_create(&loop, NULL) != 0) return 1;
  error = spate_watch_start(&watch, loop, argv[1], &callbacks, NULL, NULL);
  if (error == 0) {
    spate_loop_run(loop, SPATE_RUN_UNTIL_DONE);
  } else {
    fprintf(stderr, "%s: %s\n", argv[1], spate_strerror(error, text, sizeof text));
  }
  spate_watch_destroy(watch);
  spate_loop_destroy(loop);
  return error == 0 ? 0 : 1;
}
