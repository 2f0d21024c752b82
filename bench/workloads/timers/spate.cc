// spate: restart() moves a pending timer; its loop time is cached.
#include <spate/timer.h>

#include "timers.h"

static std::unique_ptr<spate::Loop> loop;

struct alignas(64) Slot {
  spate::Timer timer;
};

static Slot* slots;

static inline spate::Timer& timer(uint32_t i) { return slots[i].timer; }

static void timers_open(void) {
  loop = spate::Loop::create().value();
  slots = std::allocator<Slot>().allocate(timers_pending);
  for (long i = 0; i < timers_pending; i++) std::construct_at(&slots[i].timer, *loop, timers_fired);
}

static void timers_version(void) { bench_version("0.1.0", nullptr); }
static void timers_update_now(void) { loop->update_now(); }

static inline void timers_start(uint32_t i, uint64_t ns) { timer(i).start(spate::Nanos(ns)); }
static inline void timers_restart(uint32_t i, uint64_t ns) { timer(i).restart(spate::Nanos(ns)); }
static inline void timers_stop(uint32_t i) { timer(i).stop(); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) { loop->run(spate::Run::no_wait); }
static void timers_inside(void (*phase)(void)) { phase(); }
