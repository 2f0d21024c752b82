// spate.h: the loop and its watchers, for C and languages that call C. C11, or C++98 and later;
// <spate_net.h> has streams, listeners and datagrams.
//
// Ownership: watchers are the caller's structs. spate_..._init() initializes one. Between a start
// and the stop it must neither move nor be freed. Call spate_stop() before freeing it, which is
// always allowed. Nothing is allocated for a watcher, except that starting one may grow a table of
// the loop. A loop that is destroyed first stops its watchers; after that they may only be stopped.
// The members whose names end in an underscore are the library's.
//
// Threads: one thread at a time runs a loop, and only that thread may use it and its watchers,
// except for spate_post(), spate_wake() and spate_async_send(), which any thread may call at any
// time. While no thread is in a loop, any one thread may use it. There may be any number of loops,
// on any threads.
//
// Inside a callback: everything is allowed, spate_loop_run() included, except destroying the loop.
// A watcher may be stopped anywhere, also in its own callback. It is not called after that, even if
// an event was queued, and may be freed. A callback must return: it must not longjmp() or throw. If
// callbacks may do so, use batches (spate_loop_poll()): no frame of the library is then on the
// stack.
//
// Errors: functions that return int return 0 or more, or a negative code: an errno, negated, or one
// of SPATE_E_.... Only unrecoverable misuse is asserted (and in debug builds only): a loop that is
// used from a second thread, or destroyed inside its run.
//
// Times are nanoseconds. Callbacks get the events that occurred, as a set of bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "spate_version.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SPATE_API
#define SPATE_API __attribute__((visibility("default")))
#endif

// ---- the version

// Returns the version of the library, such as "0.1.0". SPATE_VERSION_STRING is the version of the
// header. Any thread.
SPATE_API const char* spate_version(void);
// Returns the version as a number, to compare with SPATE_VERSION: 100 for 0.1.0.
SPATE_API int spate_version_number(void);

// ---- errors

enum {
  SPATE_E_LOOP_FORKED = -10001,      // The loop was made by the parent process: call
                                     // spate_loop_after_fork().
  SPATE_E_UNKNOWN_BACKEND = -10002,  // Unknown name of a backend.
  SPATE_E_FD_OUT_OF_RANGE = -10003,  // Too high for the select backend.
  SPATE_E_NOT_POLLABLE = -10004,     // This backend has no descriptor to wait on.
  SPATE_E_IDLE_TIMEOUT = -10005,     // A stream moved no byte for the idle timeout.
  SPATE_E_READ_TIMEOUT = -10006,     // Nothing was received for the read timeout.
  SPATE_E_WRITE_TIMEOUT = -10007,    // The peer read nothing for the write timeout.
  SPATE_E_CONNECT_TIMEOUT = -10008,  // The connection was not established in time.
  SPATE_E_QUEUE_FULL = -10009,       // The queue of a stream is full.
  SPATE_E_UNREAD_FULL = -10010,      // Too much input was left unused.
  SPATE_E_DEADLINE = -10011,         // Not done before the deadline.
  SPATE_E_TLS_HANDSHAKE = -10012,    // No common parameters, or the peer does not speak TLS.
  SPATE_E_TLS_CERTIFICATE = -10013,  // A certificate was rejected, by either side.
  SPATE_E_TLS_TRUNCATED = -10014,    // EOF without close_notify.
  SPATE_E_TLS_PROTOCOL = -10015,     // Corrupted records, or a protocol violation.
  SPATE_E_ENDED = -10016,            // EOF before the next message.
  SPATE_E_TRUNCATED = -10017,        // EOF inside a message.
  SPATE_E_NO_SUCH_HOST = -11001,     // The name does not exist.
  SPATE_E_NO_ADDRESS = -11002,       // The name has no address of the requested family.
  SPATE_E_SERVER_FAILURE = -11003,   // The name servers returned a failure.
  SPATE_E_BAD_ANSWER = -11004,       // A name server's answer is malformed.
  SPATE_E_UNREACHABLE = -11005,      // No name server can be reached.
  SPATE_E_NAME_TIMEOUT = -11006,     // No name server answered in time.
  SPATE_E_BAD_NAME = -11007          // Not a valid host name.
};

// Writes a description of `error`, a negative code, into `text`, of `size` bytes, and returns
// `text`. Any thread.
SPATE_API const char* spate_strerror(int error, char* text, size_t size);

// ---- events

#define SPATE_READ UINT32_C(0x1)         // Reading will not block; also on an error or hang-up.
#define SPATE_WRITE UINT32_C(0x2)        // Writing will not block; also on an error or hang-up.
#define SPATE_URGENT UINT32_C(0x4)       // Out-of-band data.
#define SPATE_PEER_CLOSED UINT32_C(0x8)  // The peer shut down its sending side.
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
#define SPATE_CUSTOM UINT32_C(0x1000000)  // Never set by the loop; for spate_feed().
#define SPATE_ERROR UINT32_C(0x80000000)  // The watcher was stopped: see spate_io_error().

// ---- the loop

typedef struct spate_loop spate_loop;
typedef struct spate_watcher spate_watcher;

// Options of a loop. Zero is the default of each member. Initialized by spate_loop_options_init().
typedef struct spate_loop_options {
  size_t size;          // sizeof(spate_loop_options) when the program was compiled.
  const char* backend;  // "epoll", "io_uring", "poll" or "select"; NULL: the best one.
  uint32_t budget;      // How many events fed by callbacks are called in the same turn.
  uint32_t reserved;    // 0.
  int64_t spin;         // How long to poll for events before each sleep.
  // Called just before and just after each wait, on the loop's thread: for releasing and acquiring
  // an interpreter lock. They must not use the loop.
  void (*before_wait)(spate_loop* loop, void* data);
  void (*after_wait)(spate_loop* loop, void* data);
  void* data;  // Passed to these, and returned by spate_loop_data().
} spate_loop_options;

typedef enum spate_run_mode {
  SPATE_RUN_UNTIL_DONE,  // Until spate_loop_stop(), or until nothing keeps it alive.
  SPATE_RUN_ONCE,        // One turn, which waits if no event is due.
  SPATE_RUN_NO_WAIT      // One turn, which never blocks.
} spate_run_mode;

SPATE_API void spate_loop_options_init(spate_loop_options* options, size_t size);
// Makes a loop. `options` may be NULL. Errors: SPATE_E_UNKNOWN_BACKEND, EINVAL (options unknown to
// this version of the library), EMFILE, ENFILE, ENOMEM. Any thread.
SPATE_API int spate_loop_create(spate_loop** loop, const spate_loop_options* options);
// Destroys a loop, and stops its active watchers. Not inside a callback. NULL is allowed.
SPATE_API void spate_loop_destroy(spate_loop* loop);
SPATE_API void* spate_loop_data(const spate_loop* loop);
// Returns the loop that this thread is running, the innermost if there are several; NULL if none.
SPATE_API spate_loop* spate_loop_current(void);
SPATE_API const char* spate_loop_backend(const spate_loop* loop);

// Runs the loop and calls the callbacks. May be nested. The loop stays usable after an error, and
// no event is lost. Errors: SPATE_E_LOOP_FORKED, ENOMEM, errors of the kernel's wait.
SPATE_API int spate_loop_run(spate_loop* loop, spate_run_mode mode);
// As above, for at most `span`.
SPATE_API int spate_loop_run_for(spate_loop* loop, int64_t span);
// Makes the innermost spate_loop_run(), or all of them, return after the queued events were called.
SPATE_API void spate_loop_stop(spate_loop* loop);
SPATE_API void spate_loop_stop_all(spate_loop* loop);
// Returns 1 if something keeps the loop alive or is queued, otherwise 0.
SPATE_API int spate_loop_has_work(spate_loop* loop);
// Keeps the loop alive without a watcher; unref undoes it. See spate_set_keepalive().
SPATE_API void spate_loop_ref(spate_loop* loop);
SPATE_API void spate_loop_unref(spate_loop* loop);

// ---- batches: for programs that call their callbacks themselves, in place of spate_loop_run()

// An event of a watcher. It must be claimed before it is used.
typedef struct spate_event {
  spate_watcher* watcher;  // NULL after it was claimed, or the watcher was stopped.
  uint32_t events;
} spate_event;

// Waits for at most `timeout` (negative: for ever) until events are due, and writes up to `most` of
// them, at least 1, into `due`. Returns how many: it may return 0 before the timeout, and does so
// at once if nothing keeps the loop alive. Callbacks of watchers are not called, and may be NULL;
// those of posts and streams are called from inside. Prepare and fork hooks are returned alone,
// before the wait. Errors: as spate_loop_run().
//
// `due` must stay valid until all events were claimed or given back. If the array is left earlier,
// by longjmp() or an exception, call spate_loop_give_back() before.
SPATE_API int spate_loop_poll(spate_loop* loop, spate_event* due, int most, int64_t timeout);
// Claims an event; call it for each in order, at its place in the array. Returns the watcher, or
// NULL if it was stopped after the poll, or the event already claimed. The watcher is no longer
// pending then.
SPATE_API spate_watcher* spate_event_claim(spate_loop* loop, spate_event* event);
// Queues unclaimed events again. The next poll or run does so automatically.
SPATE_API int spate_loop_give_back(spate_loop* loop);

// ---- time

// Returns the monotonic time that was read after the last wait. Timers count from it. Makes no
// system call.
SPATE_API int64_t spate_loop_now(const spate_loop* loop);
SPATE_API void spate_loop_update_now(spate_loop* loop);
// Returns the time since 1970.
SPATE_API int64_t spate_loop_wall_now(spate_loop* loop);
// Stop and restart the loop time.
SPATE_API void spate_loop_suspend(spate_loop* loop);
SPATE_API void spate_loop_resume(spate_loop* loop);

// ---- from other threads

// Calls `task` with `data` on the loop's thread, once; the tasks of one thread are called in order.
// Tasks that were not called when the loop is destroyed are dropped. Any thread; not in a signal
// handler. Error: ENOMEM.
SPATE_API int spate_post(spate_loop* loop, void (*task)(void* data), void* data);
// Wakes the loop if it sleeps. Any thread; async-signal-safe.
SPATE_API void spate_wake(spate_loop* loop);

// ---- one-shot calls that the loop owns

// Calls `task` with `data`, `delay` from now, and keeps the loop alive until then. Errors: ENOMEM.
SPATE_API int spate_after(spate_loop* loop, int64_t delay, void (*task)(void* data), void* data);
// Calls `task` after the events that are already queued.
SPATE_API int spate_defer(spate_loop* loop, void (*task)(void* data), void* data);

// ---- fork, embedding, statistics

// Makes the loop usable in the child of a fork; call it there before any other use. Fork hooks are
// called in the next turn. Child watchers are stopped. It may be called again after an error.
// Errors: EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_loop_after_fork(spate_loop* loop);
// Returns a descriptor, owned by the loop, that is readable when there is something to do. Errors:
// SPATE_E_NOT_POLLABLE with poll and select; EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_loop_poll_fd(spate_loop* loop);
// Call before another loop waits for that descriptor. Returns for how long it may wait; negative:
// for ever.
SPATE_API int64_t spate_loop_prepare_to_wait(spate_loop* loop);
// Returns how many active watchers and references keep the loop alive. (While the expiry of a timer
// without keepalive is queued and not yet called or claimed, the number is one too low.)
SPATE_API int64_t spate_loop_active_count(const spate_loop* loop);
// An entry of spate_loop_for_each_active(). Later versions may append members.
typedef struct spate_active {
  const char* kind;   // "io", "timer", "listener", ...: name_of(ActiveKind) in spate/active.h.
  const char* label;  // An address, a path, a process or signal number, ...; may be empty.
  int64_t due;        // Its next deadline, as spate_loop_now(); negative: none.
  // Its part of spate_loop_active_count(). An entry "reference" has that of spate_loop_ref(); it is
  // negative for spate_loop_unref().
  int64_t count;
  const void* id;  // Unique among those of a kind: the spate_watcher of a watcher of C.
  int fd;          // -1: none.
} spate_active;
// Calls `visit` with each thing that keeps the loop alive. The entry is valid until it returns;
// inside everything is allowed, except destroying the loop.
SPATE_API void spate_loop_for_each_active(spate_loop* loop,
                                          void (*visit)(void* data, const spate_active* entry),
                                          void* data);
SPATE_API size_t spate_loop_pending_count(const spate_loop* loop);
SPATE_API int spate_loop_depth(const spate_loop* loop);
SPATE_API uint64_t spate_loop_iteration(const spate_loop* loop);
// Allocates room, so that starting cannot run out of memory. Error: ENOMEM.
SPATE_API int spate_loop_reserve(spate_loop* loop, size_t descriptors, size_t timers);

// ---- all watchers

// The first member of each watcher.
struct spate_watcher {
  uint32_t active_;
  uint32_t pending_;
  int32_t priority_;
  uint32_t extra_;
  void* data;  // The program's.
  void (*enter_)(void);
};

// Call the start and stop functions of the watcher's kind, below.
SPATE_API int spate_start(spate_watcher* watcher);
SPATE_API void spate_stop(spate_watcher* watcher);
SPATE_API spate_loop* spate_watcher_loop(const spate_watcher* watcher);
// Returns 1 if started and not stopped. A one-shot timer is inactive when it is called.
SPATE_API int spate_is_active(const spate_watcher* watcher);
// Returns 1 if an event is queued that was not called or claimed.
SPATE_API int spate_is_pending(spate_watcher* watcher);
// Queues a call as if `events` had happened; the watcher need not be active. Error: ENOMEM.
SPATE_API int spate_feed(spate_watcher* watcher, uint32_t events);
// Drops the queued events, and returns them.
SPATE_API uint32_t spate_clear_pending(spate_watcher* watcher);
// Calls the callback now.
SPATE_API void spate_invoke(spate_watcher* watcher, uint32_t events);
// Sets the priority, -2 ... 2, initially 0, clamped: events that are due together are called
// highest first. Drops queued events; an active watcher is restarted. Error: ENOMEM; the watcher is
// stopped then.
SPATE_API int spate_set_priority(spate_watcher* watcher, int priority);
SPATE_API int spate_priority(const spate_watcher* watcher);
// Sets whether the watcher keeps the loop alive while it is active. Initially 1.
SPATE_API void spate_set_keepalive(spate_watcher* watcher, int keepalive);
SPATE_API int spate_keepalive(const spate_watcher* watcher);

// Rules for all kinds: init() makes an inactive watcher of any memory that is not an active
// watcher; `callback` may be NULL. start() has no effect on an active watcher, and stop() none on
// an inactive one. Neither makes a system call, unless stated otherwise. set() restarts an active
// watcher. If that fails, the watcher is inactive and has the new values. Values that set() itself
// refuses, with the errors listed there, change nothing.

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
// Sets the descriptor and the events. Must also be called when the same number now refers to
// another file. The descriptor stays the caller's. `events` is a set of SPATE_READ, WRITE, URGENT
// and PEER_CLOSED. Error: EINVAL.
SPATE_API int spate_io_set(spate_io* io, int fd, uint32_t events);
// Changes the events for the same file; 0 pauses. A paused watcher may be stopped and started.
SPATE_API int spate_io_modify(spate_io* io, uint32_t events);
// Starts. If the kernel refuses the descriptor, the watcher is later stopped, and called with
// SPATE_ERROR. Errors: EINVAL without spate_io_set(); ENOMEM.
SPATE_API int spate_io_start(spate_io* io);
// Starts and updates the kernel at once. Errors: as above; EBADF, EPERM, ENOSPC.
SPATE_API int spate_io_start_now(spate_io* io);
SPATE_API void spate_io_stop(spate_io* io);
// Stops without a system call. The caller must close the descriptor before the loop waits again.
SPATE_API void spate_io_stop_before_close(spate_io* io);
// Stops and updates the kernel at once: for a descriptor that moves to another loop or process.
SPATE_API void spate_io_stop_now(spate_io* io);
SPATE_API int spate_io_fd(const spate_io* io);
SPATE_API uint32_t spate_io_events(const spate_io* io);
// Returns the negative code after SPATE_ERROR.
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
// Sets the timer to expire first `after` the start, then every `repeat` (0: once). Negative counts
// as 0.
SPATE_API int spate_timer_set(spate_timer* timer, int64_t after, int64_t repeat);
// Starts. A stopped timer continues with the remaining time; an expired one has none left. Error of
// this and the next two: ENOMEM; the timer is inactive then.
SPATE_API int spate_timer_start(spate_timer* timer);
SPATE_API void spate_timer_stop(spate_timer* timer);
// Starts or restarts the timer to expire `after` from now. Postponing is a store. Drops a queued
// expiry.
SPATE_API int spate_timer_restart(spate_timer* timer, int64_t after);
// As above with its own repeat; stops it if it does not repeat.
SPATE_API int spate_timer_again(spate_timer* timer);
SPATE_API void spate_timer_set_repeat(spate_timer* timer, int64_t repeat);
SPATE_API int64_t spate_timer_repeat(const spate_timer* timer);
// Returns the time to the expiry of an active timer; 0 if overdue.
SPATE_API int64_t spate_timer_remaining(const spate_timer* timer);

// ---- async: another thread, or a signal handler, sent

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
// Error: ENOMEM.
SPATE_API int spate_async_start(spate_async* async);
SPATE_API void spate_async_stop(spate_async* async);
// Schedules a call. Sends before the call are merged into one. Any thread; async-signal-safe.
SPATE_API void spate_async_send(spate_async* async);
// Returns 1 after a send until the loop notices it; from then on spate_is_pending() returns 1. Any
// thread.
SPATE_API int spate_async_is_sent(const spate_async* async);

// ---- signal: the process received one

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
// Sets the signal. Error: EINVAL for a signal that cannot be caught.
SPATE_API int spate_signal_set(spate_signal* signal, int signum);
// Starts. Installs a handler if it is the first watcher of the signal. Errors: EINVAL without a
// signal, or for one that the C library uses; ENOSPC when more than 16 loops watch it; ENOMEM,
// EMFILE.
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
  SPATE_HOOK_PREPARE,  // Called before each wait.
  SPATE_HOOK_CHECK,    // Called after each wait.
  SPATE_HOOK_IDLE,     // Called if nothing of its priority is pending; prevents sleeping.
  SPATE_HOOK_FORK,     // Called in the child, after spate_loop_after_fork(). Keeps no loop alive.
  SPATE_HOOK_CLEANUP   // Called while the loop is destroyed, always. Keeps no loop alive.
} spate_hook_kind;

SPATE_API void spate_hook_init(spate_hook* hook, spate_loop* loop, spate_hook_kind kind,
                               spate_hook_fn* callback, void* data);
// Error: ENOMEM.
SPATE_API int spate_hook_start(spate_hook* hook);
SPATE_API void spate_hook_stop(spate_hook* hook);

// ---- periodic: the wall clock shows a time

typedef struct spate_periodic spate_periodic;
typedef void spate_periodic_fn(spate_loop* loop, spate_periodic* periodic, uint32_t events);
// Returns the next time, which should be later than `now`; an earlier one is due at once and is the
// last. It must not start or stop anything.
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
// Sets the times, which are counted from 1970, UTC. With a function, that alone decides. Otherwise,
// with an interval, the times are those for which (time - offset) is a multiple of it; with
// interval 0 the only time is `offset`. Error: EINVAL for a negative interval.
SPATE_API int spate_periodic_set(spate_periodic* periodic, int64_t offset, int64_t interval,
                                 spate_reschedule_fn* reschedule);
// Error: ENOMEM.
SPATE_API int spate_periodic_start(spate_periodic* periodic);
SPATE_API void spate_periodic_stop(spate_periodic* periodic);
// Returns the next time; meaningful while active.
SPATE_API int64_t spate_periodic_at(const spate_periodic* periodic);

// ---- child: a process ended

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
// Sets the process. `trace` is 1 for calls also when it is stopped or continued, otherwise 0.
// Error: EINVAL for a pid below 1.
SPATE_API int spate_child_set(spate_child* child, int pid, int trace);
// Starts. The process must be a child that no other code waits for. Errors: ECHILD, EMFILE, ENOMEM;
// EINVAL without a process.
SPATE_API int spate_child_start(spate_child* child);
SPATE_API void spate_child_stop(spate_child* child);
SPATE_API int spate_child_pid(const spate_child* child);
// Returns the status, in the callback, as waitpid() does. If other code took it, it is -1, and the
// events have SPATE_ERROR.
SPATE_API int spate_child_status(const spate_child* child);

// ---- stat: a path, or the file it names, changed

typedef struct spate_stat spate_stat;
typedef void spate_stat_fn(spate_loop* loop, spate_stat* stat, uint32_t events);
struct spate_stat {
  spate_watcher watcher;
  uint64_t core_[30];
  spate_stat_fn* callback;
  uintptr_t loop_;
};

// The status of a file. If the path does not exist, all members are 0.
typedef struct spate_file_status {
  uint64_t device, inode, links, special_device;
  int64_t size;
  uint32_t mode, uid, gid, reserved;
  int64_t accessed, modified, changed;
} spate_file_status;

SPATE_API void spate_stat_init(spate_stat* stat, spate_loop* loop, spate_stat_fn* callback,
                               void* data);
// Sets the path, which stays the caller's, and must not change while active. `interval` is for
// polling where the kernel does not report changes; 0: 5 s. Errors: EINVAL for NULL and an empty
// path, ENAMETOOLONG.
SPATE_API int spate_stat_set(spate_stat* stat, const char* path, int64_t interval);
// Sets whether the target of a symbolic link at the end of the path is watched (1); initially 0.
// Not while active.
SPATE_API void spate_stat_set_follow_links(spate_stat* stat, int follow);
// Starts, and checks the path at once. Errors: EINVAL without a path, ENOMEM, SPATE_E_LOOP_FORKED.
SPATE_API int spate_stat_start(spate_stat* stat);
SPATE_API void spate_stat_stop(spate_stat* stat);
// Checks the path now, without calling back.
SPATE_API void spate_stat_refresh(spate_stat* stat);
SPATE_API const char* spate_stat_path(const spate_stat* stat);
SPATE_API int64_t spate_stat_interval(const spate_stat* stat);
SPATE_API const spate_file_status* spate_stat_current(const spate_stat* stat);
SPATE_API const spate_file_status* spate_stat_previous(const spate_stat* stat);

#ifdef __cplusplus
}
#endif
