// Running: takes due events in batches, and calls each batch under one eval. An exception leaves
// the eval; the rest of the batch is called under a new one.
#pragma once

enum { BATCH = 64 };

typedef struct Run {
  spate_event due[BATCH];
  int count;
  int next;
  SV* code;  // The callback in progress; NULL: none.
  SV* self;  // The arguments, reused unless the callback kept them.
  SV* events;
  int depth;
  struct Run* outer;
} Run;

enum { BREAK_CANCEL, BREAK_ONE, BREAK_ALL };

static Run* innermost;
static int leave_from = INT_MAX;  // Runs of this depth or deeper are to return.
static Run* calling;              // The run whose batch call_due() calls.
static CV* call_due_code;         // call_due(), which an eval needs as code.
static CV* reschedule_code;       // Spate::_call_rescheduled.
static volatile int forked;

// ---- the process and its threads

static void* owner;

static void note_fork(void) { forked = 1; }

// Returns a negative code, or not.
static int notice_fork(void) {
  const int code = forked ? spate_loop_after_fork(loop) : 0;
  if (code >= 0) forked = 0;
  return code;
}

// Before anything that enters the kernel.
static void enter_loop(pTHX) {
  if (PERL_GET_THX != owner) croak("Spate: only the thread that has loaded it may use it");
  check(aTHX_ notice_fork());
}

// ---- the handlers of %SIG

// Perl calls them between two operations: if the loop waits, it has to return. The watcher has no
// code to be called.
static Slot signalled;
static Sighandler_t perl_handler;
static Sighandler1_t perl_handler_1;
static Sighandler3_t perl_handler_3;

static void wake(void) {
  const int saved = errno;
  spate_async_send(&signalled.async);
  errno = saved;
}

static Signal_t on_signal(int signum) {
  perl_handler(signum);
  wake();
}
static Signal_t on_signal_1(int signum) {
  perl_handler_1(signum);
  wake();
}
static Signal_t on_signal_3(int signum, Siginfo_t* info, void* context) {
  perl_handler_3(signum, info, context);
  wake();
}

static void watch_perl_signals(pTHX) {
  int signum;
  spate_async_init(&signalled.async, loop, NULL, NULL);
  spate_set_keepalive(&signalled.head, 0);
  check(aTHX_ spate_async_start(&signalled.async));
  perl_handler = PL_csighandlerp;
  perl_handler_1 = PL_csighandler1p;
  perl_handler_3 = PL_csighandler3p;
  PL_csighandlerp = on_signal;
  PL_csighandler1p = on_signal_1;
  PL_csighandler3p = on_signal_3;
  for (signum = 1; signum < NSIG; ++signum) {
    if (rsignal_state(signum) == perl_handler) rsignal(signum, on_signal);
  }
}

// ---- calling

// Returns the reference of the last call, changed to refer to `object`, unless a callback kept it.
static SV* self_argument(pTHX_ Run* run, SV* object) {
  SV* const self = run->self;
  if (self != NULL && SvREFCNT(self) == 1 && SvTYPE(self) == SVt_IV && !SvOK(self)) {
    SvRV_set(self, SvREFCNT_inc_simple_NN(object));
    SvROK_on(self);
    return self;
  }
  SvREFCNT_dec(self);
  return run->self = newRV_inc(object);
}

static SV* events_argument(pTHX_ Run* run, uint32_t events) {
  SV* const before = run->events;
  if (before != NULL && SvREFCNT(before) == 1 && SvTYPE(before) == SVt_IV && SvIOK(before) &&
      !SvROK(before)) {
    SvUV_set(before, events);
    return before;
  }
  SvREFCNT_dec(before);
  return run->events = newSVuv(events);
}

// Lets go of the watcher, which may go with it.
static void release_self(pTHX_ Run* run) {
  SV* const self = run->self;
  if (self == NULL || !SvROK(self)) return;
  if (SvREFCNT(self) == 1 && !SvWEAKREF(self)) {
    SV* const object = SvRV(self);
    SvRV_set(self, NULL);
    SvROK_off(self);
    SvREFCNT_dec(object);
  } else {
    run->self = NULL;
    SvREFCNT_dec(self);
  }
}

// The code comes last: its destructors may run the loop, where a watcher that was forgotten is not
// called.
static void end_call(pTHX_ Run* run) {
  SV* const code = run->code;
  release_self(aTHX_ run);
  run->code = NULL;
  SvREFCNT_dec(code);
}

static bool is_rescheduled(const Slot* slot, uint32_t events) {
  return (events & SPATE_PERIODIC) != 0 && slot->head.data != NULL &&
         kind_of_object((SV*)slot->head.data) == KIND_PERIODIC && slot->next != NULL;
}

static void call_watcher(pTHX_ Run* run, Slot* slot, uint32_t events) {
  dSP;
  if (slot->code == NULL) return;
  run->code = is_rescheduled(slot, events) ? (SV*)reschedule_code : slot->code;
  SvREFCNT_inc_simple_void_NN(run->code);
  PUSHMARK(SP);
  if (slot->head.data != NULL) {
    EXTEND(SP, 2);
    PUSHs(self_argument(aTHX_ run, (SV*)slot->head.data));
    PUSHs(events_argument(aTHX_ run, events));
    PUTBACK;
  }
  call_sv(run->code, G_VOID | G_DISCARD);
  end_call(aTHX_ run);
}

static void call_due(pTHX_ CV* code) {
  dXSARGS;
  Run* const run = calling;
  PERL_UNUSED_VAR(code);
  PERL_UNUSED_VAR(items);
  while (run->next < run->count) {
    spate_event* const event = &run->due[run->next++];
    spate_watcher* watcher;
    (void)notice_fork();  // A due event may be of the parent's child. Errors: the next turn.
    watcher = spate_event_claim(loop, event);
    if (watcher != NULL) call_watcher(aTHX_ run, slot_of_watcher(watcher), event->events);
  }
  XSRETURN_EMPTY;
}

// $@ is the callback's exception.
static void report_death(pTHX) {
  dSP;
  PUSHMARK(SP);
  call_sv(get_sv("Spate::DIED", GV_ADD), G_VOID | G_DISCARD | G_EVAL | G_KEEPERR);
}

// Releases the callback and its arguments. Their destructors may change $@, so it is saved.
static void end_dead_call(pTHX_ Run* run) {
  ENTER;
  save_scalar(PL_errgv);
  end_call(aTHX_ run);
  LEAVE;
}

static void call_batch(pTHX_ Run* run) {
  while (run->next < run->count) {
    dSP;
    PUSHMARK(SP);
    calling = run;
    call_sv((SV*)call_due_code, G_VOID | G_DISCARD | G_EVAL);
    if (run->code == NULL) continue;
    end_dead_call(aTHX_ run);
    report_death(aTHX);
  }
}

// ---- turns

static bool is_leaving(const Run* run) { return leave_from <= run->depth; }

// Returns whether all that came were hooks of before the wait, if any.
static bool take_batch(pTHX_ Run* run, int64_t timeout) {
  const int count = spate_loop_poll(loop, run->due, BATCH, timeout);
  bool are_hooks;
  check(aTHX_ count);
  are_hooks = count == 0 || (run->due[0].events & (SPATE_PREPARE | SPATE_FORK)) != 0;
  run->count = count;
  run->next = 0;
  PERL_ASYNC_CHECK();
  call_batch(aTHX_ run);
  return are_hooks;
}

// One turn, after the rest of the last one. A break before the wait only makes the wait return at
// once: without this loop the next run would continue the interrupted turn.
static void turn(pTHX_ Run* run, int64_t timeout) {
  const uint64_t before = spate_loop_iteration(loop);
  uint64_t turns;
  do {
    enter_loop(aTHX);
    if (!take_batch(aTHX_ run, timeout) || is_leaving(run)) timeout = 0;
    turns = spate_loop_iteration(loop) - before;
  } while (turns == 0 || (turns == 1 && run->count == BATCH && !is_leaving(run)));
}

// With coroutines, it need not be the innermost.
static void unlink_run(Run* run) {
  Run** at = &innermost;
  while (*at != run) at = &(*at)->outer;
  *at = run->outer;
}

// Called on return, and when an exception outside of the evals unwinds the run.
static void leave_run(pTHX_ void* data) {
  Run* const run = (Run*)data;
  unlink_run(run);
  if (leave_from == run->depth) leave_from = INT_MAX;
  spate_loop_give_back(loop);
  end_call(aTHX_ run);
  SvREFCNT_dec(run->self);
  SvREFCNT_dec(run->events);
}

static int depth(void) { return innermost == NULL ? 0 : innermost->depth; }

static void run_loop(pTHX_ spate_run_mode mode) {
  Run run;
  run.count = run.next = 0;
  run.code = run.self = run.events = NULL;
  run.depth = depth() + 1;
  run.outer = innermost;
  ENTER;
  SAVEDESTRUCTOR_X(leave_run, &run);
  innermost = &run;
  do {
    turn(aTHX_ & run, mode == SPATE_RUN_NO_WAIT ? 0 : -1);
  } while (mode == SPATE_RUN_UNTIL_DONE && !is_leaving(&run) && spate_loop_has_work(loop));
  LEAVE;
}

static void break_run(int how) {
  if (how == BREAK_CANCEL) leave_from = INT_MAX;
  if (depth() == 0 || how == BREAK_CANCEL) return;
  leave_from = how == BREAK_ALL ? 1 : (leave_from < depth() ? leave_from : depth());
}

// ---- time

// The wall clock, as read once a turn.
static NV wall_seconds(void) {
  static int64_t turn_time = -1;
  static NV seconds;
  if (turn_time != spate_loop_now(loop)) {
    turn_time = spate_loop_now(loop);
    seconds = spate_loop_wall_now(loop) / 1e9;
  }
  return seconds;
}
