// A program in C that calls its handlers itself, from batches of events. A binding does this to set
// something up once around all callbacks of a batch.
#include <spate.h>
#include <stdio.h>
#include <unistd.h>

struct task {
  spate_io io;
  const char* name;
  int left;  // The remaining number of calls.
  struct task* rival;
};

// A callback of the program's own form; the library does not call it.
static void on_ready(struct task* task) {
  printf("%s: %d\n", task->name, task->left);
  if (--task->left > 0) return;
  spate_io_stop(&task->io);
  // Stopping a watcher whose event is already in the batch also prevents its call.
  spate_io_stop(&task->rival->io);
}

static int turn(spate_loop* loop) {
  spate_event due[64];
  int i;
  const int count = spate_loop_poll(loop, due, 64, -1);
  for (i = 0; i < count; ++i) {
    spate_watcher* const watcher = spate_event_claim(loop, &due[i]);
    if (watcher != NULL) on_ready((struct task*)watcher->data);
  }
  return count;
}

static int start(struct task* task, spate_loop* loop, int fd) {
  spate_io_init(&task->io, loop, NULL, task);
  spate_io_set(&task->io, fd, SPATE_WRITE);
  return spate_io_start(&task->io);
}

int main(void) {
  spate_loop* loop;
  struct task one;
  struct task other;
  int ends[2];
  one.name = "one";
  one.left = 3;
  one.rival = &other;
  other.name = "other";
  other.left = 100;
  other.rival = &one;
  if (pipe(ends) != 0 || spate_loop_create(&loop, NULL) != 0) return 1;
  if (start(&one, loop, ends[1]) != 0 || start(&other, loop, ends[1]) != 0) return 1;

  while (spate_loop_has_work(loop)) {
    if (turn(loop) < 0) return 1;
  }
  spate_loop_destroy(loop);
  return one.left == 0 && other.left > 0 ? 0 : 1;
}
