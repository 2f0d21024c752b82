// A loop of one's own, in C: events come in batches, and are called from here. So does a binding
// that has to set something up around its callbacks, once for all of a batch.
#include <spate.h>
#include <stdio.h>
#include <unistd.h>

struct task {
  spate_io io;
  const char* name;
  int left;  // How often it is still to be called.
  struct task* rival;
};

// The callback, of whatever form: the library does not know of it.
static void on_ready(struct task* task) {
  printf("%s: %d\n", task->name, task->left);
  if (--task->left > 0) return;
  spate_io_stop(&task->io);
  // One whose event is in the batch already: it is not called any more.
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
