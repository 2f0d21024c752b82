/* No library: a restart is one 8-byte store of the deadline into an array of 64-byte timers. */
#define TIMERS_RESTART_ONLY
#include "timers.h"

typedef struct {
  uint64_t deadline;
  char rest[56];
} Timer;

static Timer *timers;
static uint64_t now;

static void timers_open(void) {
  timers = (Timer *)aligned_alloc(64, (size_t)timers_pending * sizeof *timers);
  memset(timers, 0, (size_t)timers_pending * sizeof *timers);
}

static void timers_version(void) { bench_version("hand-written", NULL); }
static void timers_update_now(void) { now = bench_now_ns(); }

static inline void timers_start(uint32_t i, uint64_t ns) {
  *(volatile uint64_t *)&timers[i].deadline = now + ns;
}

static inline void timers_restart(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop_start(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop(uint32_t i) { (void)i; }
static inline void timers_pass(void) {}
static void timers_inside(void (*phase)(void)) { phase(); }
