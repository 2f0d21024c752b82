// Several threads and one base: waking a sleeping loop, waiting for a running callback, the calls
// of the program's own locks, and many threads that lose no event. Where time passes, the result
// does not depend on it: semaphores order the threads.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "libevent_cases.h"

static const long kFar = 3600L * 1000000;

// Used only where the result does not depend on it: to let a loop sleep, or a callback take time.
static void pause_millis(int millis) { usleep((useconds_t)millis * 1000); }

// ---- a loop on another thread

typedef struct Runner {
  pthread_t thread;
  struct event_base* base;
  struct event begun;
  sem_t has_begun;
  int flags;
  int result;
} Runner;

static void on_begun(evutil_socket_t fd, short what, void* arg) {
  (void)fd, (void)what;
  sem_post(arg);
}

static void* run_loop(void* arg) {
  Runner* runner = arg;
  runner->result = event_base_loop(runner->base, runner->flags);
  return NULL;
}

static void start_runner(Runner* runner, struct event_base* base, int flags) {
  *runner = (Runner){.base = base, .flags = flags};
  pthread_create(&runner->thread, NULL, run_loop, runner);
}

// Returns when the loop runs: it may ignore earlier requests to break.
static void start_turning(Runner* runner, struct event_base* base, int flags) {
  sem_init(&runner->has_begun, 0, 0);
  event_assign(&runner->begun, base, -1, 0, on_begun, &runner->has_begun);
  event_active(&runner->begun, EV_TIMEOUT, 1);
  runner->base = base;
  runner->flags = flags;
  pthread_create(&runner->thread, NULL, run_loop, runner);
  sem_wait(&runner->has_begun);
}

static void join_runner(Runner* runner) {
  pthread_join(runner->thread, NULL);
  printf("loop: %d, exit %d, break %d\n", runner->result, event_base_got_exit(runner->base),
         event_base_got_break(runner->base));
}

// ---- waking a loop that sleeps

static void say_and_break(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  event_base_loopbreak(event_get_base(self->ev));
}

static int waking_pair[2];

static void wake_active(struct event_base* base, Subject* subject) {
  (void)base;
  event_active(subject->ev, EV_WRITE, 1);
}

static void wake_add_descriptor(struct event_base* base, Subject* subject) {
  (void)base;
  put(waking_pair[1], "x");
  event_add(subject->ev, NULL);
}

static void wake_add_timer(struct event_base* base, Subject* subject) {
  (void)base;
  add_in(subject->ev, 5000);
}

static void wake_break(struct event_base* base, Subject* subject) {
  (void)subject;
  event_base_loopbreak(base);
}

static void wake_exit(struct event_base* base, Subject* subject) {
  (void)subject;
  event_base_loopexit(base, NULL);
}

static void wake_exit_soon(struct event_base* base, Subject* subject) {
  (void)subject;
  const struct timeval soon = micros(5000);
  event_base_loopexit(base, &soon);
}

static void on_once(evutil_socket_t fd, short what, void* arg) {
  printf("  once what=%#x fd=%d\n", what, fd >= 0);
  event_base_loopbreak(arg);
}

static void wake_once(struct event_base* base, Subject* subject) {
  (void)subject;
  event_base_once(base, -1, EV_TIMEOUT, on_once, base, NULL);
}

static void on_finalized(struct event* ev, void* arg) {
  Subject* subject = arg;
  printf("  finalized %s\n", subject->name);
  event_base_loopbreak(event_get_base(ev));
}

static void wake_finalize(struct event_base* base, Subject* subject) {
  (void)base;
  event_free_finalize(0, subject->ev, on_finalized);
  subject->ev = NULL;
}

static void wake_with(const char* how, void (*wake)(struct event_base*, Subject*), int method) {
  struct event_base* base = base_with(method, 0);
  open_pair(waking_pair);
  Subject far = {"far", NULL, NULL, 0};
  Subject subject = {"subject", NULL, say_and_break, 0};
  printf("%s %s\n", kMethodNames[method], how);
  add_in(open_subject(&far, base, -1, EV_PERSIST), kFar);
  open_subject(&subject, base, waking_pair[0], EV_READ);
  Runner runner;
  start_turning(&runner, base, method == 0 ? EVLOOP_NO_EXIT_ON_EMPTY : 0);
  pause_millis(10);
  wake(base, &subject);
  join_runner(&runner);
  free_subject(&far);
  free_subject(&subject);
  event_base_free(base);
  close_pair(waking_pair);
}

static void waking(void) {
  evthread_use_pthreads();
  for (int method = 0; method < kMethods; method++) {
    wake_with("active", wake_active, method);
    wake_with("add of a descriptor", wake_add_descriptor, method);
    wake_with("add of a timer", wake_add_timer, method);
    wake_with("break", wake_break, method);
    wake_with("exit", wake_exit, method);
    wake_with("exit soon", wake_exit_soon, method);
    wake_with("once", wake_once, method);
    wake_with("finalize", wake_finalize, method);
  }
}

static void two_loops_of_one_base(void) {
  evthread_use_pthreads();
  event_set_log_callback(on_log);
  struct event_base* base = event_base_new();
  Runner runner;
  start_turning(&runner, base, EVLOOP_NO_EXIT_ON_EMPTY);
  show("second loop", event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_loopbreak(base);
  join_runner(&runner);
  start_runner(&runner, base, 0);
  join_runner(&runner);
  show("afterwards", event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_free(base);
}

// ---- waiting for a running callback

static sem_t entered;
static sem_t may_leave;
static atomic_int left;

static void hold(Subject* self, evutil_socket_t fd, short what) {
  (void)self, (void)fd, (void)what;
  sem_post(&entered);
  sem_wait(&may_leave);
  atomic_store(&left, 1);
}

static void hold_a_while(Subject* self, evutil_socket_t fd, short what) {
  (void)self, (void)fd, (void)what;
  sem_post(&entered);
  pause_millis(30);
  atomic_store(&left, 1);
}

typedef int (*Del)(struct event*);

static void del_while_running(const char* how, Del del, short events, int waits) {
  struct event_base* base = event_base_new();
  Subject subject = {"subject", NULL, waits ? hold_a_while : hold, 0};
  int pair[2];
  open_pair(pair);
  atomic_store(&left, 0);
  const int fd = events & EV_SIGNAL ? SIGUSR1 : pair[0];
  event_add(open_subject(&subject, base, fd, events), NULL);
  event_active(subject.ev, EV_READ, 1);
  Runner runner;
  start_runner(&runner, base, EVLOOP_ONCE);
  sem_wait(&entered);
  show(how, del(subject.ev));
  show("callback has returned", atomic_load(&left));
  if (!waits) sem_post(&may_leave);
  join_runner(&runner);
  show_hex("pending", event_pending(subject.ev, 0xff, NULL));
  free_subject(&subject);
  event_base_free(base);
  close_pair(pair);
}

static void deleting_what_runs(void) {
  evthread_use_pthreads();
  sem_init(&entered, 0, 0);
  sem_init(&may_leave, 0, 0);
  del_while_running("del", event_del, EV_READ, 1);
  del_while_running("del of a persistent one", event_del, EV_READ | EV_PERSIST, 1);
  del_while_running("del of a signal", event_del, EV_SIGNAL | EV_PERSIST, 1);
  del_while_running("del_block", event_del_block, EV_READ | EV_FINALIZE, 1);
  del_while_running("del with EV_FINALIZE", event_del, EV_READ | EV_FINALIZE, 0);
  del_while_running("del_noblock", event_del_noblock, EV_READ, 0);
}

static void free_while_running(void) {
  evthread_use_pthreads();
  sem_init(&entered, 0, 0);
  struct event_base* base = event_base_new();
  Subject subject = {"subject", NULL, hold_a_while, 0};
  event_active(open_subject(&subject, base, -1, 0), EV_READ, 1);
  Runner runner;
  start_runner(&runner, base, EVLOOP_ONCE);
  sem_wait(&entered);
  event_free(subject.ev);
  show("callback has returned", atomic_load(&left));
  join_runner(&runner);
  event_base_free(base);
}

static void del_self(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  show("  del", event_del(self->ev));
  show("  del_block", event_del_block(self->ev));
}

static void deleting_oneself_waits_for_nobody(void) {
  evthread_use_pthreads();
  struct event_base* base = event_base_new();
  Subject subject = {"subject", NULL, del_self, 0};
  event_active(open_subject(&subject, base, -1, EV_PERSIST), EV_READ, 1);
  show("loop", event_base_loop(base, EVLOOP_ONCE));
  free_subject(&subject);
  event_base_free(base);
}

static void on_held_finalized(struct event* ev, void* arg) {
  (void)arg;
  printf("  finalized, callback has returned %d\n", atomic_load(&left));
  event_base_loopbreak(event_get_base(ev));
}

static void finalizing_what_runs(void) {
  evthread_use_pthreads();
  sem_init(&entered, 0, 0);
  sem_init(&may_leave, 0, 0);
  struct event_base* base = event_base_new();
  Subject subject = {"subject", NULL, hold, 0};
  open_subject(&subject, base, -1, EV_PERSIST | EV_FINALIZE);
  event_active(subject.ev, EV_READ, 1);
  Runner runner;
  start_runner(&runner, base, EVLOOP_NO_EXIT_ON_EMPTY);
  sem_wait(&entered);
  show("finalize", event_free_finalize(0, subject.ev, on_held_finalized));
  show("add", add_in(subject.ev, 1));
  event_active(subject.ev, EV_WRITE, 1);
  show("callback has returned", atomic_load(&left));
  sem_post(&may_leave);
  join_runner(&runner);
  event_base_free(base);
}

// ---- a crowd

enum { kThreads = 6, kRounds = 400 };

typedef struct Member {
  pthread_t thread;
  struct event_base* base;
  struct event* ev;
  int pair[2];
  sem_t called;
  atomic_int calls;
  int expected;
} Member;

static void on_member(evutil_socket_t fd, short what, void* arg) {
  Member* member = arg;
  if (what & EV_READ && fd == member->pair[0]) drain(fd);
  atomic_fetch_add(&member->calls, 1);
  sem_post(&member->called);
}

// Each activation is called once, a cancelled one not at all.
static void* act_in_crowd(void* arg) {
  Member* member = arg;
  for (int round = 0; round < kRounds; round++) {
    switch (round % 4) {
      case 0:
        event_active(member->ev, EV_WRITE, 1);
        break;
      case 1:
        add_in(member->ev, round % 3 * 100);
        break;
      case 2:
        event_add(member->ev, NULL);
        put(member->pair[1], "x");
        break;
      default:
        add_in(member->ev, kFar);
        event_del(member->ev);
        continue;
    }
    member->expected++;
    sem_wait(&member->called);
  }
  return NULL;
}

static void run_crowd(struct event_base* base) {
  static Member members[kThreads];
  Runner runner;
  start_turning(&runner, base, EVLOOP_NO_EXIT_ON_EMPTY);
  for (int i = 0; i < kThreads; i++) {
    Member* member = &members[i];
    memset(member, 0, sizeof *member);
    sem_init(&member->called, 0, 0);
    open_pair(member->pair);
    member->ev = event_new(base, member->pair[0], EV_READ, on_member, member);
    pthread_create(&member->thread, NULL, act_in_crowd, member);
  }
  for (int i = 0; i < kThreads; i++) {
    pthread_join(members[i].thread, NULL);
    printf("calls %d of %d\n", atomic_load(&members[i].calls), members[i].expected);
    event_free(members[i].ev);
    close_pair(members[i].pair);
  }
  event_base_loopbreak(base);
  join_runner(&runner);
}

static void crowd(void) {
  evthread_use_pthreads();
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, 0);
    run_crowd(base);
    event_base_free(base);
  }
}

// ---- the program's own locks

static atomic_long locks_made, locks_freed, locked, unlocked, odd_requests;
static atomic_long conditions_made, conditions_freed, ids_asked;

static void* make_lock(unsigned type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type & EVTHREAD_LOCKTYPE_RECURSIVE
                                             ? PTHREAD_MUTEX_RECURSIVE
                                             : PTHREAD_MUTEX_NORMAL);
  pthread_mutex_t* lock = malloc(sizeof *lock);
  pthread_mutex_init(lock, &attributes);
  atomic_fetch_add(&locks_made, 1);
  return lock;
}

static void free_lock(void* lock, unsigned type) {
  (void)type;
  pthread_mutex_destroy(lock);
  free(lock);
  atomic_fetch_add(&locks_freed, 1);
}

static int lock_it(unsigned mode, void* lock) {
  if (mode & (EVTHREAD_READ | EVTHREAD_WRITE)) atomic_fetch_add(&odd_requests, 1);
  const int failed = mode & EVTHREAD_TRY ? pthread_mutex_trylock(lock) : pthread_mutex_lock(lock);
  if (!failed) atomic_fetch_add(&locked, 1);
  return failed;
}

static int unlock_it(unsigned mode, void* lock) {
  (void)mode;
  atomic_fetch_add(&unlocked, 1);
  return pthread_mutex_unlock(lock);
}

static void* make_condition(unsigned type) {
  (void)type;
  pthread_cond_t* condition = malloc(sizeof *condition);
  pthread_cond_init(condition, NULL);
  atomic_fetch_add(&conditions_made, 1);
  return condition;
}

static void free_condition(void* condition) {
  pthread_cond_destroy(condition);
  free(condition);
  atomic_fetch_add(&conditions_freed, 1);
}

static int signal_condition(void* condition, int all) {
  return all ? pthread_cond_broadcast(condition) : pthread_cond_signal(condition);
}

static int wait_condition(void* condition, void* lock, const struct timeval* timeout) {
  if (timeout) atomic_fetch_add(&odd_requests, 1);
  return pthread_cond_wait(condition, lock);
}

static unsigned long ask_id(void) {
  atomic_fetch_add(&ids_asked, 1);
  return (unsigned long)pthread_self();
}

static const struct evthread_lock_callbacks own_locks = {EVTHREAD_LOCK_API_VERSION,
                                                         EVTHREAD_LOCKTYPE_RECURSIVE,
                                                         make_lock,
                                                         free_lock,
                                                         lock_it,
                                                         unlock_it};
static const struct evthread_condition_callbacks own_conditions = {
    EVTHREAD_CONDITION_API_VERSION, make_condition, free_condition, signal_condition,
    wait_condition};

static void use_own(void) {
  show("locks", evthread_set_lock_callbacks(&own_locks));
  show("conditions", evthread_set_condition_callbacks(&own_conditions));
  evthread_set_id_callback(ask_id);
}

static void print_balance(void) {
  show("locks were used", locks_made > 0 && locked > 0);
  show("conditions were made", conditions_made > 0);
  show("ids were asked for", ids_asked > 0);
  show("locks left", locks_made - locks_freed);
  show("conditions left", conditions_made - conditions_freed);
  show("still locked", locked - unlocked);
  show("odd requests", odd_requests);
}

static void own_locks_are_balanced(void) {
  use_own();
  sem_init(&entered, 0, 0);
  sem_init(&may_leave, 0, 0);
  struct event_base* base = event_base_new();
  run_crowd(base);
  event_base_free(base);
  del_while_running("del", event_del, EV_READ, 1);
  libevent_global_shutdown();
  print_balance();
}

// A base gets no lock if it was created without, or before locks were set.
static void bases_without_locks(void) {
  struct event_base* early = event_base_new();
  use_own();
  struct event_base* unlocked_base = base_with(0, EVENT_BASE_FLAG_NOLOCK);
  struct event_base* const bases[] = {early, unlocked_base};
  for (int i = 0; i < 2; i++) {
    const long before = locked;
    Subject subject = {"subject", NULL, NULL, 0};
    add_in(open_subject(&subject, bases[i], -1, 0), 1000);
    event_base_loop(bases[i], EVLOOP_ONCE);
    event_active(subject.ev, EV_READ, 1);
    event_base_loop(bases[i], EVLOOP_NONBLOCK);
    event_del(subject.ev);
    show("locked", locked - before);
    free_subject(&subject);
    event_base_free(bases[i]);
  }
}

static void callbacks_cannot_be_changed(void) {
  event_set_log_callback(on_log);
  use_own();
  show("the same locks", evthread_set_lock_callbacks(&own_locks));
  show("the same conditions", evthread_set_condition_callbacks(&own_conditions));
  struct evthread_lock_callbacks locks = own_locks;
  struct evthread_condition_callbacks conditions = own_conditions;
  locks.lock = unlock_it;
  conditions.free_condition = free;
  show("other locks", evthread_set_lock_callbacks(&locks));
  show("other conditions", evthread_set_condition_callbacks(&conditions));
  show("pthreads", evthread_use_pthreads());
}

static void incomplete_callbacks(void) {
  event_set_log_callback(on_log);
  struct evthread_lock_callbacks locks = own_locks;
  locks.alloc = NULL;
  show("without alloc", evthread_set_lock_callbacks(&locks));
  struct evthread_condition_callbacks conditions = own_conditions;
  conditions.wait_condition = NULL;
  show("without wait", evthread_set_condition_callbacks(&conditions));
  struct event_base* base = event_base_new();
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_free(base);
  show("locks were made", locks_made);
}

static void lock_debugging(void) {
  evthread_enable_lock_debugging();
  use_own();
  struct event_base* base = event_base_new();
  run_crowd(base);
  event_base_free(base);
  libevent_global_shutdown();
  show("locks left", locks_made - locks_freed);
  show("still locked", locked - unlocked);
}

static void lock_debugging_after_pthreads(void) {
  evthread_use_pthreads();
  evthread_enable_lock_debugging();
  evthread_enable_lock_debuging();
  struct event_base* base = event_base_new();
  run_crowd(base);
  event_base_free(base);
}

// The base already has a lock.
static void locks_taken_away(void) {
  evthread_use_pthreads();
  evthread_enable_lock_debugging();
  struct event_base* base = event_base_new();
  Subject subject = {"subject", NULL, NULL, 0};
  struct event* ev = event_new(base, -1, 0, on_subject, &subject);
  show("take away", evthread_set_lock_callbacks(NULL));
  show("add", add_in(ev, 1000));
  event_active(ev, EV_TIMEOUT, 1);
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  event_free(ev);
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"waking", waking},
      {"two loops of one base", two_loops_of_one_base},
      {"del: waits for a running callback", deleting_what_runs},
      {"del: so does free", free_while_running},
      {"del: oneself", deleting_oneself_waits_for_nobody},
      {"finalizing what runs", finalizing_what_runs},
      {"crowd", crowd},
      {"locks: balanced", own_locks_are_balanced},
      {"locks: bases without", bases_without_locks},
      {"locks: cannot be changed", callbacks_cannot_be_changed},
      {"locks: incomplete", incomplete_callbacks},
      {"locks: debugging", lock_debugging},
      {"locks: debugging after pthreads", lock_debugging_after_pthreads},
      {"locks: taken away", locks_taken_away},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
