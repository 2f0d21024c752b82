// Loops and threads. ev(3): "THREADS", ev_async, ev_feed_signal, ev_set_loop_release_cb,
// ev_set_invoke_pending_cb.
//
// Only totals are printed: the order depends on the scheduler.

#include <pthread.h>
#include <stdatomic.h>

#include "libev_turns.h"

enum { kThreads = 4, kSends = 20000, kRounds = 300 };

static void* on_a_thread(void* (*run)(void*), void* argument) {
  pthread_t* const thread = malloc(sizeof *thread);
  if (pthread_create(thread, NULL, run, argument) != 0) {
    abort();
  }
  return thread;
}

static void join(void* handle) {
  pthread_join(*(pthread_t*)handle, NULL);
  free(handle);
}

// --- A loop per thread. ---

typedef struct Worker {
  struct ev_loop* loop;
  ev_io reader;
  ev_timer ticker;
  ev_async stopper;
  int pair[2];
  int reads;
  int ticks;
} Worker;

static void on_worker_read(struct ev_loop* of, ev_io* watcher, int revents) {
  Worker* const worker = watcher->data;
  (void)of;
  (void)revents;
  char byte;
  while (read(watcher->fd, &byte, 1) == 1) {
    worker->reads++;
  }
}

static void on_worker_tick(struct ev_loop* of, ev_timer* watcher, int revents) {
  Worker* const worker = watcher->data;
  (void)revents;
  if (++worker->ticks == 5) {
    ev_timer_stop(of, watcher);
  }
}

// Bytes sent before the stop are read in the turn before or in this one.
static void on_worker_stop(struct ev_loop* of, ev_async* watcher, int revents) {
  Worker* const worker = watcher->data;
  (void)revents;
  on_worker_read(of, &worker->reader, EV_READ);
  ev_io_stop(of, &worker->reader);
  ev_async_stop(of, watcher);
}

static void* run_worker(void* argument) {
  Worker* const worker = argument;
  printf("%d\n", ev_run(worker->loop, 0));
  return NULL;
}

static void start_worker(Worker* worker) {
  worker->loop = ev_loop_new(EVFLAG_NOENV);
  make_pair(worker->pair);
  ev_io_init(&worker->reader, on_worker_read, worker->pair[0], EV_READ);
  ev_timer_init(&worker->ticker, on_worker_tick, 0.002, 0.002);
  ev_async_init(&worker->stopper, on_worker_stop);
  worker->reader.data = worker;
  worker->ticker.data = worker;
  worker->stopper.data = worker;
  ev_io_start(worker->loop, &worker->reader);
  ev_timer_start(worker->loop, &worker->ticker);
  ev_async_start(worker->loop, &worker->stopper);
}

static void a_loop_for_each(void) {
  static Worker workers[kThreads];
  void* threads[kThreads];
  for (int i = 0; i < kThreads; i++) {
    start_worker(&workers[i]);
    threads[i] = on_a_thread(run_worker, &workers[i]);
  }
  for (int round = 0; round < 1000; round++) {
    Worker* const worker = &workers[round % kThreads];
    while (write(worker->pair[1], "x", 1) != 1) {
      usleep(100);
    }
  }
  for (int i = 0; i < kThreads; i++) {
    ev_async_send(workers[i].loop, &workers[i].stopper);
    join(threads[i]);
    printf("reads %d ticks %d\n", workers[i].reads, workers[i].ticks);
    ev_loop_destroy(workers[i].loop);
  }
}

static void* make_and_destroy(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; i++) {
    Worker worker = {0};
    start_worker(&worker);
    ev_async_send(worker.loop, &worker.stopper);
    ev_timer_stop(worker.loop, &worker.ticker);
    ev_run(worker.loop, 0);
    ev_loop_destroy(worker.loop);
    close(worker.pair[0]);
    close(worker.pair[1]);
  }
  return NULL;
}

static void made_and_destroyed(void) {
  void* threads[kThreads];
  for (int i = 0; i < kThreads; i++) {
    threads[i] = on_a_thread(make_and_destroy, NULL);
  }
  for (int i = 0; i < kThreads; i++) {
    join(threads[i]);
  }
  printf("done\n");
}

// --- Storms of ev_async_send(). ---

static ev_async asyncs[kThreads];
static atomic_int sent[kThreads];
static int taken[kThreads];

// Whatever was counted before a send is visible to the callback that follows it.
static void on_storm(struct ev_loop* of, ev_async* watcher, int revents) {
  const int number = (int)(watcher - asyncs);
  (void)revents;
  taken[number] += atomic_exchange(&sent[number], 0);
  int total = 0;
  for (int i = 0; i < kThreads; i++) {
    total += taken[i];
  }
  if (total == kThreads * kSends) {
    ev_break(of, EVBREAK_ALL);
  }
}

static void* send_storm(void* argument) {
  ev_async* const watcher = argument;
  for (int i = 0; i < kSends; i++) {
    atomic_fetch_add(&sent[watcher - asyncs], 1);
    ev_async_send(loop, watcher);
    if (i % 64 == 0) {
      usleep(1);
    }
  }
  return NULL;
}

static void storm(void) {
  void* threads[kThreads];
  ev_timer patience;
  new_loop();
  for (int i = 0; i < kThreads; i++) {
    ev_async_init(&asyncs[i], on_storm);
    ev_async_start(loop, &asyncs[i]);
    threads[i] = on_a_thread(send_storm, &asyncs[i]);
  }
  ev_timer_init(&patience, on_patience, 20., 0.);
  ev_timer_start(loop, &patience);
  ev_run(loop, 0);
  for (int i = 0; i < kThreads; i++) {
    join(threads[i]);
    printf("%d of %d\n", taken[i], kSends);
  }
}

// Ping and pong: each waits for the other, so one lost wake-up would block both.
static ev_async ping;
static ev_async pong;
static struct ev_loop* other_loop;
static int pings;
static int pongs;

enum { kExchanges = 2000 };

static void on_ping(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)watcher;
  (void)revents;
  ev_async_send(loop, &pong);
  if (++pings == kExchanges) {
    ev_break(of, EVBREAK_ALL);
  }
}

static void on_pong(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)watcher;
  (void)revents;
  if (++pongs == kExchanges) {
    ev_break(of, EVBREAK_ALL);
  } else {
    ev_async_send(other_loop, &ping);
  }
}

static void* run_other(void* argument) {
  (void)argument;
  ev_run(other_loop, 0);
  return NULL;
}

static void there_and_back(void) {
  new_loop();
  other_loop = ev_loop_new(EVFLAG_NOENV);
  ev_async_init(&ping, on_ping);
  ev_async_start(other_loop, &ping);
  ev_async_init(&pong, on_pong);
  ev_async_start(loop, &pong);
  void* const thread = on_a_thread(run_other, NULL);
  ev_async_send(other_loop, &ping);
  ev_run(loop, 0);
  join(thread);
  printf("%d pings %d pongs\n", pings, pongs);
}

// --- Signals for a loop in another thread. ---

static ev_signal signals[2];
static atomic_int signals_seen;

static void on_signal(struct ev_loop* of, ev_signal* watcher, int revents) {
  (void)of;
  (void)watcher;
  (void)revents;
  atomic_fetch_add(&signals_seen, 1);
}

static void on_stop(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)watcher;
  (void)revents;
  ev_break(of, EVBREAK_ALL);
}

static int wait_for_signals(int wanted) {
  for (int i = 0; i < 5000 && atomic_load(&signals_seen) < wanted; i++) {
    usleep(1000);
  }
  return atomic_load(&signals_seen);
}

static void signals_for_another(void) {
  ev_async stopper;
  other_loop = ev_loop_new(EVFLAG_NOENV);
  for (int i = 0; i < 2; i++) {
    ev_signal_init(&signals[i], on_signal, i == 0 ? SIGUSR1 : SIGUSR2);
    ev_signal_start(other_loop, &signals[i]);
  }
  ev_async_init(&stopper, on_stop);
  ev_async_start(other_loop, &stopper);
  void* const thread = on_a_thread(run_other, NULL);
  for (int i = 1; i <= 20; i++) {
    if (i % 3 == 0) {
      ev_feed_signal(SIGUSR2);
    } else {
      kill(getpid(), i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    }
    const int count = wait_for_signals(i);
    if (count != i) {
      printf("%d of %d\n", count, i);
    }
  }
  ev_async_send(other_loop, &stopper);
  join(thread);
  printf("%d signals\n", atomic_load(&signals_seen));
}

// --- One loop, protected by the program's mutex. ---

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int releases;
static int is_released;
static ev_async nudge;
static ev_io guarded_io[kThreads];
static ev_timer guarded_timers[kThreads];
static int guarded_pairs[kThreads][2];

static void release(struct ev_loop* of) {
  (void)of;
  is_released++;
  releases++;
  pthread_mutex_unlock(&mutex);
}

static void acquire(struct ev_loop* of) {
  (void)of;
  pthread_mutex_lock(&mutex);
  is_released--;
}

static void on_nudge(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)of;
  (void)watcher;
  (void)revents;
}

static void count_guarded(struct ev_loop* of) {
  if (is_released != 0) {
    printf("called without the mutex\n");
  }
  if (++seen == kThreads * 100) {
    ev_break(of, EVBREAK_ALL);
  }
}

static void on_guarded_io(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)revents;
  ev_io_stop(of, watcher);
  drain(watcher->fd);
  count_guarded(of);
}

static void on_guarded_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)watcher;
  (void)revents;
  count_guarded(of);
}

// Starts a watcher from another thread, wakes the loop, and waits until the watcher was called.
static void* start_from_outside(void* argument) {
  const int number = (int)(intptr_t)argument;
  for (int round = 0; round < 100; round++) {
    ev_watcher* const watcher =
        round % 2 == 0 ? (ev_watcher*)&guarded_io[number] : (ev_watcher*)&guarded_timers[number];
    pthread_mutex_lock(&mutex);
    if (round % 2 == 0) {
      ev_io_start(loop, &guarded_io[number]);
      put(guarded_pairs[number][1]);
    } else {
      ev_timer_set(&guarded_timers[number], 0.0005, 0.);
      ev_timer_start(loop, &guarded_timers[number]);
    }
    ev_async_send(loop, &nudge);
    int is_active = 1;
    for (int i = 0; i < 20000 && is_active; i++) {
      pthread_mutex_unlock(&mutex);
      usleep(100);
      pthread_mutex_lock(&mutex);
      is_active = ev_is_active(watcher);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void guarded_by_a_mutex(void) {
  void* threads[kThreads];
  ev_timer patience;
  new_loop();
  ev_set_loop_release_cb(loop, release, acquire);
  ev_async_init(&nudge, on_nudge);
  ev_async_start(loop, &nudge);
  ev_timer_init(&patience, on_patience, 25., 0.);
  ev_timer_start(loop, &patience);
  for (int i = 0; i < kThreads; i++) {
    make_pair(guarded_pairs[i]);
    ev_io_init(&guarded_io[i], on_guarded_io, guarded_pairs[i][0], EV_READ);
    ev_init(&guarded_timers[i], on_guarded_timer);
  }
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kThreads; i++) {
    threads[i] = on_a_thread(start_from_outside, (void*)(intptr_t)i);
  }
  ev_run(loop, 0);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kThreads; i++) {
    join(threads[i]);
  }
  printf("%d calls, released %d\n", seen, releases > 0);
}

// --- Callbacks in another thread than the loop's, as in ev(3). ---

static pthread_cond_t invoke_condition = PTHREAD_COND_INITIALIZER;
static int invoke_wanted;
static pthread_t invoker;

static void on_elsewhere(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)revents;
  printf("on the invoker's thread %d\n", pthread_equal(pthread_self(), invoker) != 0);
  if (++seen == 5) {
    ev_timer_stop(of, watcher);
  }
}

static void hand_over(struct ev_loop* of) {
  while (ev_pending_count(of) > 0) {
    invoke_wanted = 1;
    pthread_cond_broadcast(&invoke_condition);
    pthread_cond_wait(&invoke_condition, &mutex);
  }
}

static void* run_handing_over(void* argument) {
  (void)argument;
  pthread_mutex_lock(&mutex);
  ev_run(loop, 0);
  invoke_wanted = 2;
  pthread_cond_broadcast(&invoke_condition);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void handed_over(void) {
  ev_timer watcher;
  new_loop();
  invoker = pthread_self();
  ev_set_loop_release_cb(loop, release, acquire);
  ev_set_invoke_pending_cb(loop, hand_over);
  ev_timer_init(&watcher, on_elsewhere, 0.002, 0.002);
  ev_timer_start(loop, &watcher);
  void* const thread = on_a_thread(run_handing_over, NULL);
  pthread_mutex_lock(&mutex);
  while (invoke_wanted != 2) {
    while (invoke_wanted == 0) {
      pthread_cond_wait(&invoke_condition, &mutex);
    }
    if (invoke_wanted == 1) {
      invoke_wanted = 0;
      ev_invoke_pending(loop);
      pthread_cond_broadcast(&invoke_condition);
    }
  }
  pthread_mutex_unlock(&mutex);
  join(thread);
  printf("%d calls\n", seen);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"a loop for each", a_loop_for_each},
      {"made and destroyed", made_and_destroyed},
      {"storm", storm},
      {"there and back", there_and_back},
      {"signals for another", signals_for_another},
      {"guarded by a mutex", guarded_by_a_mutex},
      {"handed over", handed_over},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
