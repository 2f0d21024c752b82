/* Many pending timers: start them, restart random ones to a later time, stop and start random
   ones, expire them all. The choices are drawn beforehand and are the same for every contestant.
   A contestant includes this file, defines the functions declared below, and its callback calls
   timers_fired(). With TIMERS_RESTART_ONLY there is only restart (the floor). */
#ifndef BENCH_WORKLOADS_TIMERS_H
#define BENCH_WORKLOADS_TIMERS_H

#include "harness/contestant.h"

static long timers_pending;
static uint64_t timers_calls;

/* A contestant defines these functions. */
static void timers_open(void); /* make the loop and the timers' memory, timers_pending of them */
static void timers_version(void);                         /* call bench_version() */
static void timers_update_now(void);                      /* let a cached clock catch up */
static inline void timers_start(uint32_t i, uint64_t ns); /* ns from now; timer i is not pending */
static inline void timers_restart(uint32_t i, uint64_t ns);    /* pending, to a later time */
static inline void timers_stop_start(uint32_t i, uint64_t ns); /* pending; stop it and start it */
static inline void timers_stop(uint32_t i);
static inline void timers_pass(void); /* one pass of the loop that does not block */
/* Calls phase() where the library is used in earnest: from a callback, if its clock is cached only
   there; else directly. */
static void timers_inside(void (*phase)(void));

static inline void timers_fired(void) { timers_calls++; }

typedef struct {
  uint32_t timer;
  uint64_t after_ns;
} TimersChoice;

static uint64_t *timers_after; /* by timer: the timeout it was started with */
static TimersChoice *timers_restarts, *timers_stop_starts;
static long timers_restart_count, timers_stop_start_count, timers_rounds;
static long timers_draws; /* at least so many are drawn: the same preparation whatever is run */

/* 10 to 60 seconds: none is due while the phases run. */
static uint64_t timers_random_after(void) {
  return 10000000000u + bench_random_below(50000) * 1000000 + bench_random_below(1000000);
}

/* Draws random pending timers; each choice is later than the timer's last one, if `later`. */
static TimersChoice *timers_draw(long count, int later) {
  if (count < timers_draws) count = timers_draws;
  TimersChoice *choices = (TimersChoice *)malloc((size_t)(count + 1) * sizeof *choices);
  for (long k = 0; k < count; k++) {
    const uint32_t i = (uint32_t)bench_random_below((uint64_t)timers_pending);
    const uint64_t after =
        later ? timers_after[i] + 1000000 + bench_random_below(4000000000u) : timers_random_after();
    timers_after[i] = after;
    choices[k].timer = i;
    choices[k].after_ns = after;
  }
  return choices;
}

static void timers_phase_start(void) {
  for (long i = 0; i < timers_pending; i++) timers_start((uint32_t)i, timers_after[i]);
}

static void timers_phase_restart(void) {
  for (long k = 0; k < timers_restart_count; k++)
    timers_restart(timers_restarts[k].timer, timers_restarts[k].after_ns);
}

static void timers_phase_stop_start(void) {
  for (long k = 0; k < timers_stop_start_count; k++)
    timers_stop_start(timers_stop_starts[k].timer, timers_stop_starts[k].after_ns);
}

static void timers_phase_stop(void) {
  for (long i = timers_pending; i-- > 0;) timers_stop((uint32_t)i);
}

/* A phase ends with a pass of the loop, so that work put off until then is counted. */
static double timers_timed(void (*phase)(void)) {
  timers_update_now();
  const uint64_t begin = bench_now_ns();
  timers_inside(phase);
  timers_pass();
  return (double)(bench_now_ns() - begin);
}

static double timers_expire(void) {
  for (long i = 0; i < timers_pending; i++) timers_after[i] = bench_random_below(50000000);
  timers_update_now();
  timers_inside(timers_phase_start);
  bench_sleep_ms(80);
  const uint64_t expected = timers_calls + (uint64_t)timers_pending;
  const uint64_t begin = bench_now_ns();
  while (timers_calls < expected) timers_pass();
  return (double)(bench_now_ns() - begin);
}

static void timers_measure_restart(void) {
  if (timers_restart_count == 0) return;
  bench_metric("restart_ns", "ns",
               timers_timed(timers_phase_restart) / (double)timers_restart_count);
}

static void timers_measure_rest(void) {
  double start = 0, expire = 0;
  for (long round = 0; round < timers_rounds; round++) {
    start += timers_timed(timers_phase_start);
    if (round + 1 < timers_rounds) timers_timed(timers_phase_stop);
  }
  bench_metric("start_ns", "ns", start / (double)(timers_rounds * timers_pending));
  timers_measure_restart();
  if (timers_stop_start_count > 0)
    bench_metric("stop_start_ns", "ns",
                 timers_timed(timers_phase_stop_start) / (double)timers_stop_start_count);
  timers_timed(timers_phase_stop);
  bench_work("fired_early", timers_calls);
  const long rounds = timers_rounds < 5 ? timers_rounds : 5;
  for (long round = 0; round < rounds; round++) expire += timers_expire();
  bench_metric("expire_ns", "ns", expire / (double)(rounds * timers_pending));
  bench_work("fired", timers_calls);
  bench_ops("expiry", timers_calls);
  bench_ops("stop_start", (uint64_t)timers_stop_start_count);
}

int main(int argc, char **argv) {
  timers_pending = bench_number(argc, argv, "pending", 1000);
  timers_restart_count = bench_number(argc, argv, "restarts", 200000);
  timers_stop_start_count = bench_number(argc, argv, "stop_starts", 200000);
  timers_rounds = bench_number(argc, argv, "rounds", 1);
  timers_draws = bench_number(argc, argv, "draws", 0);
  timers_after = (uint64_t *)malloc((size_t)timers_pending * sizeof *timers_after);
  for (long i = 0; i < timers_pending; i++) timers_after[i] = timers_random_after();
  uint64_t *first = (uint64_t *)malloc((size_t)timers_pending * sizeof *first);
  memcpy(first, timers_after, (size_t)timers_pending * sizeof *first);
  timers_restarts = timers_draw(timers_restart_count, 1);
  timers_stop_starts = timers_draw(timers_stop_start_count, 0);
  memcpy(timers_after, first, (size_t)timers_pending * sizeof *first);
  free(first);
  timers_open();
  timers_version();
#ifdef TIMERS_RESTART_ONLY
  timers_phase_start();
  timers_measure_restart();
  bench_work("fired_early", timers_calls);
  (void)timers_measure_rest;
#else
  timers_measure_rest();
#endif
  bench_ops("restart", (uint64_t)timers_restart_count);
  fflush(stdout);
  _exit(0);
}

#endif
