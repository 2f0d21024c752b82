// spate.h: the loop and its watchers, for C and for whatever calls C. C11, or C++98 and later;
// <spate_net.h> has streams, listeners and datagrams.
//
// Ownership: watchers are the caller's structs. spate_..._init() fills one in; between a start and
// the stop it must neither move nor be freed, and spate_stop() is always allowed before it goes.
// Nothing is allocated for a watcher, except that starting one may make a table of the loop grow.
// A loop that is destroyed first stops its watchers; after that they may be stopped, and no more.
// The members whose names end in an underscore are the library's.
//
// Threads: one thread at a time runs a loop, and only that thread may use it and its watchers, but
// for spate_post(), spate_wake() and spate_async_send(), which any thread may call at any time.
// While no thread is in a loop, any one thread may use it. Any number of loops, on any threads.
//
// Inside a callback: everything, spate_loop_run() included, except destroying the loop. A watcher
// may be stopped anywhere, in its own callback too; it is not called after that, though something
// be queued for it, and may be freed. A callback must return: it must not longjmp() or throw. A
// program in which it might takes batches: then no frame of the library is below its own.
//
// Errors: functions that return int return 0 or more, or a negative code: an errno, negated, or one
// of SPATE_E_.... Only mistakes that no program can make good are asserted (and in debug builds
// only): a loop that is used from a second thread, or destroyed inside its run.
//
// Times are nanoseconds. Callbacks get the events that have happened, as a set of bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SPATE_API
#define SPATE_API __attribute__((visibility("default")))
#endif

// ---- errors

enum {
  SPATE_E_LOOP_FORKED = -10001,      // Made by the parent process: spate_loop_after_fork() first.
  SPATE_E_UNKNOWN_BACKEND = -10002,  // There is no such backend.
  SPATE_E_FD_OUT_OF_RANGE = -10003,  // Too high for the select backend.
  SPATE_E_NOT_POLLABLE = -10004,     // This backend has no descriptor to wait on.
  SPATE_E_IDLE_TIMEOUT = -10005,     // No byte has moved on a stream for too long.
  SPATE_E_READ_TIMEOUT = -10006,     // Nothing was received for too long.
  SPATE_E_WRITE_TIMEOUT = -10007,    // The peer has read nothing for too long.
  SPATE_E_CONNECT_TIMEOUT = -10008,  // Not connected in time.
  SPATE_E_QUEUE_FULL = -10009,       // A stream holds as much unsent as it may.
  SPATE_E_UNREAD_FULL = -10010,      // More has come than may be left unused.
  SPATE_E_DEADLINE = -10011,         // Not done in time.
  SPATE_E_TLS_HANDSHAKE = -10012,    // The two do not agree, or the peer does not speak TLS.
  SPATE_E_TLS_CERTIFICATE = -10013,  // A certificate was not accepted, by either side.
  SPATE_E_TLS_TRUNCATED = -10014,    // The peer has ended without saying so.
  SPATE_E_TLS_PROTOCOL = -10015,     // What has come breaks the rules.
  SPATE_E_NO_SUCH_HOST = -11001,     // There is no host of that name.
  SPATE_E_NO_ADDRESS = -11002,       // The host has no address of that kind.
  SPATE_E_SERVER_FAILURE = -11003,   // The name servers could not find out.
  SPATE_E_BAD_ANSWER = -11004,       // A name server's answer makes no sense.
  SPATE_E_UNREACHABLE = -11005,      // No name server can be reached.
  SPATE_E_NAME_TIMEOUT = -11006,     // No name server has answered in time.
  SPATE_E_BAD_NAME = -11007          // No host can have that name.
};

// What `error`, a negative code, means, into `text`, of `size` bytes; returns `text`. Any thread.
SPATE_API const char* spate_strerror(int error, char* text, size_t size);

// ---- events

#define SPATE_READ UINT32_C(0x1)         // Reading will not block; also on an error or hang-up.
#define SPATE_WRITE UINT32_C(0x2)        // Writing will not block; also on an error or hang-up.
#define SPATE_URGENT UINT32_C(0x4)       // Out-of-band data.
#define SPATE_PEER_CLOSED UINT32_C(0x8)  // The peer has shut down its sending side.
#define SPATE_TIMER UINT32_C(0x100)
#define SPATE_PERIODIC UINT32_C(0x200)
#define SPATE_SIGNAL UINT32_C(0x400)
#define SPATE_CHILD UINT32_C(0x800)
#define SPATE_STAT UINT32_C(0x1000)
#define SPATE_IDLE UINT32_C(0x2000)
#define SPATE_PREPARE UINT32_C(0x4000)
#define SPATE_CHECK UINT32_C(0x8000)
#define SPATE_FORK UINT32_C(0x20000)
#define SPATE_CLEANUP UINT32_C(0x40000)
#define SPATE_ASYNC UINT32_C(0x80000)
#define SPATE_CUSTOM UINT32_C(0x1000000)  // Never by the loop: for spate_feed().
#define SPATE_ERROR UINT32_C(0x80000000)  // The watcher was stopped: spate_io_error().

// ---- the loop

typedef struct spate_loop spate_loop;
typedef struct spate_watcher spate_watcher;

// Zero is the default of each member. Filled in by spate_loop_options_init().
typedef struct spate_loop_options {
  size_t size;          // Of this struct, as the program was compiled with it.
  const char* backend;  // "epoll", "io_uring", "poll" or "select"; NULL: the best there is.
  uint32_t budget;      // How many events fed by callbacks are called in the same turn.
  uint32_t reserved;    // 0.
  int64_t spin;         // Looks for events for so long before it sleeps.
  // Just before and just after each wait, on the loop's thread: to give up an interpreter's lock
  // and take it again. They must not use the loop.
  void (*before_wait)(spate_loop* loop, void* data);
  void (*after_wait)(spate_loop* loop, void* data);
  void* data;  // For these, and for spate_loop_data().
} spate_loop_options;

typedef enum spate_run_mode {
  SPATE_RUN_UNTIL_DONE,  // Until spate_loop_stop(), or until nothing is left to wait for.
  SPATE_RUN_ONCE,        // One turn, which waits for an event if none is there.
  SPATE_RUN_NO_WAIT      // One turn, which never blocks.
} spate_run_mode;

SPATE_API void spate_loop_options_init(spate_loop_options* options, size_t size);
// `options` may be NULL. Errors: SPATE_E_UNKNOWN_BACKEND, EINVAL (options that this library does
// not know), EMFILE, ENFILE, ENOMEM. Any thread.
SPATE_API int spate_loop_create(spate_loop** loop, const spate_loop_options* options);
// Stops what is active. Not inside a callback. NULL is allowed.
SPATE_API void spate_loop_destroy(spate_loop* loop);
SPATE_API void* spate_loop_data(const spate_loop* loop);
// The loop that this thread is in, the innermost if it is in several; NULL outside.
SPATE_API spate_loop* spate_loop_current(void);
SPATE_API const char* spate_loop_backend(const spate_loop* loop);

// Runs the loop and calls the callbacks. May be nested. Errors: SPATE_E_LOOP_FORKED, ENOMEM, what
// the kernel's wait reports; the loop stays usable, and nothing is lost.
SPATE_API int spate_loop_run(spate_loop* loop, spate_run_mode mode);
// For `span` at most.
SPATE_API int spate_loop_run_for(spate_loop* loop, int64_t span);
// The innermost spate_loop_run() returns when what is queued has been called; or all of them do.
SPATE_API void spate_loop_stop(spate_loop* loop);
SPATE_API void spate_loop_stop_all(spate_loop* loop);
// 1 if something keeps the loop alive or is queued, else 0.
SPATE_API int spate_loop_has_work(spate_loop* loop);
// Keeps the loop alive without a watcher; and undoes it. See spate_set_keepalive().
SPATE_API void spate_loop_ref(spate_loop* loop);
SPATE_API void spate_loop_unref(spate_loop* loop);

// ---- batches: in place of spate_loop_run(), for programs that call by themselves

// What has happened to a watcher. A spate_event is claimed before it is used.
typedef struct spate_event {
  spate_watcher* watcher;  // NULL once it is claimed, or the watcher was stopped.
  uint32_t events;
} spate_event;

// Waits for `timeout` at most (negative: for ever) until something is due, and puts up to `most`
// events, at least 1, into `due`. Returns how many: 0 also before the time is over, and at once if
// nothing keeps the loop alive. Callbacks of watchers are not called, and may be NULL; those of
// posts and streams are, from in here. Prepare and fork hooks are handed out by themselves, before
// the wait. Errors: as spate_loop_run().
//
// `due` has to stay until all of it has been claimed, or given back. Whoever leaves it early (by
// longjmp(), by an exception) calls spate_loop_give_back() before the array goes.
SPATE_API int spate_loop_poll(spate_loop* loop, spate_event* due, int most, int64_t timeout);
// To be called for each in its turn, where it lies: returns the watcher, or NULL if it was stopped
// after the poll, or claimed already. From here on it is no longer pending.
SPATE_API spate_watcher* spate_event_claim(spate_loop* loop, spate_event* event);
// Queues again what has not been claimed, as the next poll or run does by itself.
SPATE_API int spate_loop_give_back(spate_loop* loop);

// ---- time

// The monotonic time as read after the last wait, which timers count from. Free.
SPATE_API int64_t spate_loop_now(const spate_loop* loop);
SPATE_API void spate_loop_update_now(spate_loop* loop);
// Since 1970.
SPATE_API int64_t spate_loop_wall_now(spate_loop* loop);
// Between the two, loop time stands still.
SPATE_API void spate_loop_suspend(spate_loop* loop);
SPATE_API void spate_loop_resume(spate_loop* loop);

// ---- from other threads

// Calls `task` with `data` on the loop's thread, once; those of one thread in order. What is not
// called when the loop is destroyed never is. Any thread; not in a signal handler. Error: ENOMEM.
SPATE_API int spate_post(spate_loop* loop, void (*task)(void* data), void* data);
// Wakes the loop if it sleeps. Any thread; async-signal-safe.
SPATE_API void spate_wake(spate_loop* loop);

// ---- calls that the loop owns

// Calls `task` with `data`, `delay` from now, and keeps the loop alive until then. Errors: ENOMEM.
SPATE_API int spate_after(spate_loop* loop, int64_t delay, void (*task)(void* data), void* data);
// Calls it after what is queued.
SPATE_API int spate_defer(spate_loop* loop, void (*task)(void* data), void* data);

// ---- fork, embedding, looking in

// In the child of a fork, before the loop is used there. Fork hooks come with the next turn. Child
// watchers are stopped. Errors, after which it may be called again: EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_loop_after_fork(spate_loop* loop);
// A descriptor that is readable when there is something to do: the loop's. Errors:
// SPATE_E_NOT_POLLABLE with other backends than epoll; EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_loop_poll_fd(spate_loop* loop);
// Before another loop waits for that descriptor: for how long it may, negative for ever.
SPATE_API int64_t spate_loop_prepare_to_wait(spate_loop* loop);
// What keeps the loop alive: active watchers, and references. (One that expires without keeping it
// alive is taken off once too often until it is called, or claimed.)
SPATE_API int64_t spate_loop_active_count(const spate_loop* loop);
SPATE_API size_t spate_loop_pending_count(const spate_loop* loop);
SPATE_API int spate_loop_depth(const spate_loop* loop);
SPATE_API uint64_t spate_loop_iteration(const spate_loop* loop);
// Makes room, so that starting cannot run out of memory. Error: ENOMEM.
SPATE_API int spate_loop_reserve(spate_loop* loop, size_t descriptors, size_t timers);

// ---- what all watchers have in common

// The first member of each.
struct spate_watcher {
  uint32_t active_;
  uint32_t pending_;
  int32_t priority_;
  uint32_t extra_;
  void* data;  // Yours.
  void (*enter_)(void);
};

// spate_start() and spate_stop() are those of the watcher's kind, below.
SPATE_API int spate_start(spate_watcher* watcher);
SPATE_API void spate_stop(spate_watcher* watcher);
SPATE_API spate_loop* spate_watcher_loop(const spate_watcher* watcher);
// Started and not stopped. A one-shot timer is inactive when it is called.
SPATE_API int spate_is_active(const spate_watcher* watcher);
// Something has happened that has not been called, or claimed.
SPATE_API int spate_is_pending(spate_watcher* watcher);
// Queues it as if `events` had happened; it need not be active. Error: ENOMEM.
SPATE_API int spate_feed(spate_watcher* watcher, uint32_t events);
// Drops what is queued, and returns it.
SPATE_API uint32_t spate_clear_pending(spate_watcher* watcher);
// Calls the callback now.
SPATE_API void spate_invoke(spate_watcher* watcher, uint32_t events);
// -2 ... 2, initially 0, and clamped: those that are due together are called highest first. What is
// pending is dropped; an active one is started anew. Error: ENOMEM; it is stopped then.
SPATE_API int spate_set_priority(spate_watcher* watcher, int priority);
SPATE_API int spate_priority(const spate_watcher* watcher);
// Whether the loop goes on while it is active: yes (1), unless set to 0.
SPATE_API void spate_set_keepalive(spate_watcher* watcher, int keepalive);
SPATE_API int spate_keepalive(const spate_watcher* watcher);

// Of all kinds: init() makes an inactive watcher of any memory, which is not active; `callback` may
// be NULL. start() does nothing to an active one, stop() nothing to an inactive one, and neither
// enters the kernel, where nothing else is said. A set() of an active one starts it anew.

// ---- io: a descriptor is ready. Level-triggered

typedef struct spate_io spate_io;
typedef void spate_io_fn(spate_loop* loop, spate_io* io, uint32_t events);
struct spate_io {
  spate_watcher watcher;
  void* next_;
  int fd_;
  uint32_t events_;
  spate_io_fn* callback;
  uintptr_t loop_;
};

SPATE_API void spate_io_init(spate_io* io, spate_loop* loop, spate_io_fn* callback, void* data);
// To be called also when the same number is another file now. The descriptor stays the caller's.
// `events`: of SPATE_READ, WRITE, URGENT and PEER_CLOSED. Error: EINVAL.
SPATE_API int spate_io_set(spate_io* io, int fd, uint32_t events);
// Other events of the same file; 0 is a pause. One that is paused may be stopped and started.
SPATE_API int spate_io_modify(spate_io* io, uint32_t events);
// Errors: EINVAL if it was not set; ENOMEM. What the kernel does not take, it refuses later: the
// watcher is stopped, and called with SPATE_ERROR.
SPATE_API int spate_io_start(spate_io* io);
// The same, but the kernel is asked at once. Errors: EBADF, EPERM, ENOMEM, ENOSPC.
SPATE_API int spate_io_start_now(spate_io* io);
SPATE_API void spate_io_stop(spate_io* io);
// Stops; the descriptor will be closed before the loop waits again, which saves a system call.
SPATE_API void spate_io_stop_before_close(spate_io* io);
// Stops, and tells the kernel at once: the descriptor goes to another loop or process.
SPATE_API void spate_io_stop_now(spate_io* io);
SPATE_API int spate_io_fd(const spate_io* io);
SPATE_API uint32_t spate_io_events(const spate_io* io);
// After SPATE_ERROR: a negative code.
SPATE_API int spate_io_error(const spate_io* io);

// ---- timer: after a time, once or repeatedly

typedef struct spate_timer spate_timer;
typedef void spate_timer_fn(spate_loop* loop, spate_timer* timer, uint32_t events);
struct spate_timer {
  spate_watcher watcher;
  int64_t deadline_;
  int64_t repeat_;
  spate_timer_fn* callback;
  uintptr_t loop_;
};

SPATE_API void spate_timer_init(spate_timer* timer, spate_loop* loop, spate_timer_fn* callback,
                                void* data);
// First `after` from the start, then every `repeat` (0: once). Negative counts as 0.
SPATE_API int spate_timer_set(spate_timer* timer, int64_t after, int64_t repeat);
// A timer that was stopped goes on with what was left; one that has expired has nothing left. Error
// of this and the next two: ENOMEM; it is inactive then.
SPATE_API int spate_timer_start(spate_timer* timer);
SPATE_API void spate_timer_stop(spate_timer* timer);
// Starts or restarts, to expire `after` from now; to postpone it is a store. What is pending is
// dropped.
SPATE_API int spate_timer_restart(spate_timer* timer, int64_t after);
// The same with its own repeat; stops it if it does not repeat.
SPATE_API int spate_timer_again(spate_timer* timer);
SPATE_API void spate_timer_set_repeat(spate_timer* timer, int64_t repeat);
SPATE_API int64_t spate_timer_repeat(const spate_timer* timer);
// The time left, of an active one until it expires; 0 if it is overdue.
SPATE_API int64_t spate_timer_remaining(const spate_timer* timer);

// ---- async: another thread, or a signal handler, has sent

typedef struct spate_async spate_async;
typedef void spate_async_fn(spate_loop* loop, spate_async* async, uint32_t events);
struct spate_async {
  spate_watcher watcher;
  void* next_;
  uint32_t sent_;
  uint32_t reserved_;
  spate_async_fn* callback;
  uintptr_t loop_;
};

SPATE_API void spate_async_init(spate_async* async, spate_loop* loop, spate_async_fn* callback,
                                void* data);
SPATE_API int spate_async_start(spate_async* async);
SPATE_API void spate_async_stop(spate_async* async);
// Any thread; async-signal-safe. Sends before the call are merged into one.
SPATE_API void spate_async_send(spate_async* async);
// 1 if it was sent and the loop has not noticed yet; from then on spate_is_pending() says it. Any
// thread.
SPATE_API int spate_async_is_sent(const spate_async* async);

// ---- signal: the process has received one

typedef struct spate_signal spate_signal;
typedef void spate_signal_fn(spate_loop* loop, spate_signal* signal, uint32_t events);
struct spate_signal {
  spate_watcher watcher;
  void* next_;
  int signum_;
  uint32_t reserved_;
  spate_signal_fn* callback;
  uintptr_t loop_;
};

SPATE_API void spate_signal_init(spate_signal* signal, spate_loop* loop, spate_signal_fn* callback,
                                 void* data);
SPATE_API int spate_signal_set(spate_signal* signal, int signum);
// Installs a handler if it is the first for the signal. Errors: EINVAL for a signal that cannot be
// caught; ENOSPC when more than 16 loops watch it; ENOMEM, EMFILE.
SPATE_API int spate_signal_start(spate_signal* signal);
SPATE_API void spate_signal_stop(spate_signal* signal);
SPATE_API int spate_signal_signum(const spate_signal* signal);

// ---- hooks of a turn

typedef struct spate_hook spate_hook;
typedef void spate_hook_fn(spate_loop* loop, spate_hook* hook, uint32_t events);
struct spate_hook {
  spate_watcher watcher;
  spate_hook_fn* callback;
  uintptr_t loop_;
  int kind_;
  uint32_t reserved_;
};

typedef enum spate_hook_kind {
  SPATE_HOOK_PREPARE,  // Before each wait.
  SPATE_HOOK_CHECK,    // After each wait.
  SPATE_HOOK_IDLE,     // When nothing of its priority is pending; keeps the loop from sleeping.
  SPATE_HOOK_FORK,     // In the child, after spate_loop_after_fork(). Keeps no loop alive.
  SPATE_HOOK_CLEANUP   // While the loop is destroyed; called in any case. Keeps no loop alive.
} spate_hook_kind;

SPATE_API void spate_hook_init(spate_hook* hook, spate_loop* loop, spate_hook_kind kind,
                               spate_hook_fn* callback, void* data);
SPATE_API int spate_hook_start(spate_hook* hook);
SPATE_API void spate_hook_stop(spate_hook* hook);

// ---- periodic: the wall clock shows a time

typedef struct spate_periodic spate_periodic;
typedef void spate_periodic_fn(spate_loop* loop, spate_periodic* periodic, uint32_t events);
// Returns the next time, later than `now`; an earlier one is due at once and the last. It must not
// start or stop anything.
typedef int64_t spate_reschedule_fn(spate_periodic* periodic, int64_t now);
struct spate_periodic {
  spate_watcher watcher;
  uint64_t core_[11];
  spate_periodic_fn* callback;
  uintptr_t loop_;
  spate_reschedule_fn* reschedule_;
};

SPATE_API void spate_periodic_init(spate_periodic* periodic, spate_loop* loop,
                                   spate_periodic_fn* callback, void* data);
// Times are counted from 1970, UTC. With a function, that alone decides; else with an interval,
// whenever (time - offset) is a multiple of it; else once, at `offset`. Error: EINVAL for an
// interval below 0.
SPATE_API int spate_periodic_set(spate_periodic* periodic, int64_t offset, int64_t interval,
                                 spate_reschedule_fn* reschedule);
// Error: ENOMEM.
SPATE_API int spate_periodic_start(spate_periodic* periodic);
SPATE_API void spate_periodic_stop(spate_periodic* periodic);
// The next time; meaningful while active.
SPATE_API int64_t spate_periodic_at(const spate_periodic* periodic);

// ---- child: a process has ended

typedef struct spate_child spate_child;
typedef void spate_child_fn(spate_loop* loop, spate_child* child, uint32_t events);
struct spate_child {
  spate_watcher watcher;
  uint64_t core_[9];
  spate_child_fn* callback;
  uintptr_t loop_;
};

SPATE_API void spate_child_init(spate_child* child, spate_loop* loop, spate_child_fn* callback,
                                void* data);
// `trace`: 1 to be called when it is stopped and continued, too; else 0.
SPATE_API int spate_child_set(spate_child* child, int pid, int trace);
// Of a child that no other code waits for. Errors: ECHILD, EINVAL for a pid below 1, EMFILE,
// ENOMEM.
SPATE_API int spate_child_start(spate_child* child);
SPATE_API void spate_child_stop(spate_child* child);
SPATE_API int spate_child_pid(const spate_child* child);
// In the callback: as waitpid() gives it; -1, and SPATE_ERROR in the events, if other code has
// taken it.
SPATE_API int spate_child_status(const spate_child* child);

// ---- stat: a path, or the file it names, has changed

typedef struct spate_stat spate_stat;
typedef void spate_stat_fn(spate_loop* loop, spate_stat* stat, uint32_t events);
struct spate_stat {
  spate_watcher watcher;
  uint64_t core_[30];
  spate_stat_fn* callback;
  uintptr_t loop_;
};

// Of a path that does not exist, all is 0.
typedef struct spate_file_status {
  uint64_t device, inode, links, special_device;
  int64_t size;
  uint32_t mode, uid, gid, reserved;
  int64_t accessed, modified, changed;
} spate_file_status;

SPATE_API void spate_stat_init(spate_stat* stat, spate_loop* loop, spate_stat_fn* callback,
                               void* data);
// `path` stays the caller's, unchanged as long as it is active. `interval`: how often it is looked
// at where the kernel does not tell; 0: 5 s.
SPATE_API int spate_stat_set(spate_stat* stat, const char* path, int64_t interval);
// 1: of a symbolic link at the end of the path, watch its target; initially 0. Not while active.
SPATE_API void spate_stat_set_follow_links(spate_stat* stat, int follow);
// Looks at the path at once. Errors: EINVAL for none, ENAMETOOLONG, ENOMEM, SPATE_E_LOOP_FORKED.
SPATE_API int spate_stat_start(spate_stat* stat);
SPATE_API void spate_stat_stop(spate_stat* stat);
// Looks now, without calling back.
SPATE_API void spate_stat_refresh(spate_stat* stat);
SPATE_API const char* spate_stat_path(const spate_stat* stat);
SPATE_API int64_t spate_stat_interval(const spate_stat* stat);
SPATE_API const spate_file_status* spate_stat_current(const spate_stat* stat);
SPATE_API const spate_file_status* spate_stat_previous(const spate_stat* stat);

#ifdef __cplusplus
}
#endif
