// Timers, in C: one that ticks, and one that ends it.
#include <spate.h>
#include <stdio.h>

static const int64_t kMillisecond = 1000000;

static void on_tick(spate_loop* loop, spate_timer* timer, uint32_t events) {
  int* const ticks = (int*)timer->watcher.data;
  (void)loop;
  (void)events;
  printf("tick %d\n", ++*ticks);
}

static void on_end(spate_loop* loop, spate_timer* timer, uint32_t events) {
  (void)timer;
  (void)events;
  spate_loop_stop(loop);
}

int main(void) {
  int ticks = 0;
  spate_loop* loop;
  spate_timer tick;
  spate_timer end;
  if (spate_loop_create(&loop, NULL) != 0) return 1;

  spate_timer_init(&tick, loop, on_tick, &ticks);
  spate_timer_set(&tick, 0, 10 * kMillisecond);
  spate_timer_start(&tick);
  spate_timer_init(&end, loop, on_end, NULL);
  spate_timer_set(&end, 55 * kMillisecond, 0);
  spate_timer_start(&end);

  spate_loop_run(loop, SPATE_RUN_UNTIL_DONE);
  spate_loop_destroy(loop);
  return ticks > 0 ? 0 : 1;
}
