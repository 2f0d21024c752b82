// A part of a shared object that carries its own copy of the library: counts ten turns of a timer.
#include <spate.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int extension_count(void);
EXPORTED const void* extension_copy(void);

static void on_tick(spate_loop* loop, spate_timer* timer, uint32_t events) {
  int* const count = (int*)timer->watcher.data;
  (void)loop;
  (void)events;
  if (++*count == 10) spate_timer_stop(timer);
}

int extension_count(void) {
  int count = 0;
  spate_loop* loop;
  spate_timer timer;
  if (spate_loop_create(&loop, NULL) != 0) return -1;
  spate_timer_init(&timer, loop, on_tick, &count);
  spate_timer_set(&timer, 0, 1000);
  spate_timer_start(&timer);
  spate_loop_run(loop, SPATE_RUN_UNTIL_DONE);
  spate_loop_destroy(loop);
  return count;
}

// Returns the address of this copy's spate_loop_run().
const void* extension_copy(void) {
  union {
    int (*function)(spate_loop*, spate_run_mode);
    const void* address;
  } run;
  run.function = spate_loop_run;
  return run.address;
}
