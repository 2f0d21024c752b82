// Spate: spate.h for Perl. watcher.h has the watchers; run.h calls the callbacks.
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <pthread.h>
#include <stddef.h>

#include "spate.h"

#include "watcher.h"
#include "run.h"

// How a new watcher is used: `..._ns` does not start it, AnyEvent's callbacks get no arguments.
enum { STARTED, NOT_STARTED, WITHOUT_ARGUMENTS };

static void start_if(pTHX_ Slot* slot, I32 use) {
  if (use != NOT_STARTED) check(aTHX_ spate_start(&slot->head));
}

static SV* argument(SV* reference, I32 use) {
  return use == WITHOUT_ARGUMENTS ? NULL : SvRV(reference);
}

static SV* new_hook(pTHX_ spate_hook_kind hook, SV* cb, I32 use) {
  SV* reference;
  Slot* slot;
  enter_loop(aTHX);
  slot = new_watcher(aTHX_ KIND_HOOK, hook, code_of(aTHX_ cb), &reference);
  spate_hook_init(&slot->hook, loop, hook, NULL, argument(reference, use));
  start_if(aTHX_ slot, use);
  return reference;
}

static void list_active(void* list, const spate_active* entry) {
  dTHX;
  HV* const one = newHV();
  hv_stores(one, "kind", newSVpv(entry->kind, 0));
  hv_stores(one, "label", newSVpv(entry->label, 0));
  hv_stores(one, "count", newSViv((IV)entry->count));
  if (entry->fd >= 0) hv_stores(one, "fd", newSViv(entry->fd));
  av_push((AV*)list, newRV_noinc((SV*)one));
}

// User data is stored as magic of the object, since few objects have any.
static MGVTBL data_magic;

static SV* data_of(pTHX_ SV* object) {
  const MAGIC* const magic = mg_findext(object, PERL_MAGIC_ext, &data_magic);
  return magic ? magic->mg_obj : &PL_sv_undef;
}

static void set_data(pTHX_ SV* object, SV* data) {
  MAGIC* const magic = mg_findext(object, PERL_MAGIC_ext, &data_magic);
  if (magic == NULL) {
    sv_magicext(object, data, PERL_MAGIC_ext, &data_magic, NULL, 0);
  } else {
    hold(aTHX_ & magic->mg_obj, data);
  }
}

typedef struct Constant {
  const char* name;
  UV value;
} Constant;

static const Constant kConstants[] = {
    {"NONE", 0},
    {"READ", SPATE_READ},
    {"WRITE", SPATE_WRITE},
    {"URGENT", SPATE_URGENT},
    {"PEER_CLOSED", SPATE_PEER_CLOSED},
    {"TIMER", SPATE_TIMER},
    {"PERIODIC", SPATE_PERIODIC},
    {"SIGNAL", SPATE_SIGNAL},
    {"CHILD", SPATE_CHILD},
    {"STAT", SPATE_STAT},
    {"IDLE", SPATE_IDLE},
    {"PREPARE", SPATE_PREPARE},
    {"CHECK", SPATE_CHECK},
    {"FORK", SPATE_FORK},
    {"ASYNC", SPATE_ASYNC},
    {"CUSTOM", SPATE_CUSTOM},
    {"ERROR", SPATE_ERROR},
    {"RUN_ONCE", SPATE_RUN_ONCE},
    {"RUN_NOWAIT", SPATE_RUN_NO_WAIT},
    {"BREAK_CANCEL", BREAK_CANCEL},
    {"BREAK_ONE", BREAK_ONE},
    {"BREAK_ALL", BREAK_ALL},
};

// Created without a name, because perl treats a sub named CHECK as a CHECK block.
static void new_constant(pTHX_ const Constant* constant) {
  CV* const code = newCONSTSUB(NULL, NULL, newSVuv(constant->value));
  GV* const glob = gv_fetchpv(Perl_form(aTHX_ "Spate::%s", constant->name), GV_ADD, SVt_PVCV);
  sv_setsv_mg((SV*)glob, sv_2mortal(newRV_noinc((SV*)code)));
}

static void boot(pTHX) {
  size_t i;
  if (loop != NULL) croak("Spate: another thread has loaded it, and it works in one only");
  for (i = 0; i < CLASSES; ++i) stashes[i] = gv_stashpv(kClasses[i], GV_ADD);
  for (i = 0; i < sizeof(kConstants) / sizeof(kConstants[0]); ++i) {
    new_constant(aTHX_ & kConstants[i]);
  }
  call_due_code = newXS("Spate::_call_due", call_due, __FILE__);
  reschedule_code = get_cv("Spate::_call_rescheduled", GV_ADD);
  check(aTHX_ spate_loop_create(&loop, NULL));
  owner = PERL_GET_THX;
  pthread_atfork(NULL, NULL, note_fork);
  watch_perl_signals(aTHX);
}

MODULE = Spate  PACKAGE = Spate

PROTOTYPES: DISABLE

BOOT:
  boot(aTHX);

 # ---- the loop

int
run(int mode = SPATE_RUN_UNTIL_DONE)
  CODE:
    enter_loop(aTHX);
    run_loop(aTHX_ (spate_run_mode)mode);
    RETVAL = spate_loop_has_work(loop);
  OUTPUT: RETVAL

void
break(int how = BREAK_ONE)
  CODE:
    break_run(how);

void
_run_until_exists(HV* hash, SV* key)
  CODE:
    enter_loop(aTHX);
    while (!hv_exists_ent(hash, key, 0)) run_loop(aTHX_ SPATE_RUN_ONCE);

unsigned
depth()
  PROTOTYPE:
  CODE:
    RETVAL = depth();
  OUTPUT: RETVAL

UV
iteration()
  PROTOTYPE:
  CODE:
    RETVAL = spate_loop_iteration(loop);
  OUTPUT: RETVAL

UV
pending_count()
  PROTOTYPE:
  CODE:
    RETVAL = spate_loop_pending_count(loop);
  OUTPUT: RETVAL

IV
active_count()
  PROTOTYPE:
  CODE:
    RETVAL = spate_loop_active_count(loop);
  OUTPUT: RETVAL

SV*
active()
  PROTOTYPE:
  PREINIT:
    AV* list = newAV();
  CODE:
    spate_loop_for_each_active(loop, list_active, list);
    RETVAL = newRV_noinc((SV*)list);
  OUTPUT: RETVAL

const char*
backend()
  PROTOTYPE:
  CODE:
    RETVAL = spate_loop_backend(loop);
  OUTPUT: RETVAL

NV
now()
  PROTOTYPE:
  CODE:
    RETVAL = wall_seconds();
  OUTPUT: RETVAL

NV
time()
  PROTOTYPE:
  CODE:
    RETVAL = spate_loop_wall_now(loop) / 1e9;
  OUTPUT: RETVAL

void
now_update()
  PROTOTYPE:
  CODE:
    spate_loop_update_now(loop);

void
suspend()
  PROTOTYPE:
  CODE:
    spate_loop_suspend(loop);

void
resume()
  PROTOTYPE:
  CODE:
    spate_loop_resume(loop);

 # ---- new watchers

SV*
io(SV* handle, U32 events, SV* cb)
  PROTOTYPE: $$$
  ALIAS:
    io_ns = NOT_STARTED
    _ae_io = WITHOUT_ARGUMENTS
  PREINIT:
    Slot* slot;
    int fd;
  CODE:
    enter_loop(aTHX);
    if (ix == WITHOUT_ARGUMENTS) events = events ? SPATE_WRITE : SPATE_READ;
    fd = fd_of(aTHX_ handle, events);
    slot = new_watcher(aTHX_ KIND_IO, 0, code_of(aTHX_ cb), &RETVAL);
    spate_io_init(&slot->io, loop, NULL, argument(RETVAL, ix));
    set_io(aTHX_ slot, handle, fd, events);
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
timer(SV* after, SV* repeat, SV* cb)
  PROTOTYPE: $$$
  ALIAS:
    timer_ns = NOT_STARTED
    _ae_timer = WITHOUT_ARGUMENTS
  PREINIT:
    Slot* slot;
    int64_t first, next;
  CODE:
    enter_loop(aTHX);
    first = nanos_of(aTHX_ after);
    next = SvOK(repeat) ? nanos_of(aTHX_ repeat) : 0;
    slot = new_watcher(aTHX_ KIND_TIMER, 0, code_of(aTHX_ cb), &RETVAL);
    spate_timer_init(&slot->timer, loop, NULL, argument(RETVAL, ix));
    spate_timer_set(&slot->timer, first, next);
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
_periodic_ns(SV* at, SV* interval, SV* next, SV* cb)
  PREINIT:
    Slot* slot;
    int64_t offset, every;
  CODE:
    enter_loop(aTHX);
    offset = nanos_of(aTHX_ at);
    every = nanos_of(aTHX_ interval);
    slot = new_watcher(aTHX_ KIND_PERIODIC, 0, code_of(aTHX_ cb), &RETVAL);
    spate_periodic_init(&slot->periodic, loop, NULL, argument(RETVAL, NOT_STARTED));
    check(aTHX_ spate_periodic_set(&slot->periodic, offset, every, NULL));
    if (SvTRUE(next)) slot->next = SvREFCNT_inc_simple_NN(code_of(aTHX_ next));
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
signal(SV* signal, SV* cb)
  PROTOTYPE: $$
  ALIAS:
    signal_ns = NOT_STARTED
    _ae_signal = WITHOUT_ARGUMENTS
  PREINIT:
    Slot* slot;
    int signum;
  CODE:
    enter_loop(aTHX);
    signum = signum_of(aTHX_ signal);
    slot = new_watcher(aTHX_ KIND_SIGNAL, 0, code_of(aTHX_ cb), &RETVAL);
    spate_signal_init(&slot->signal, loop, NULL, argument(RETVAL, ix));
    check(aTHX_ spate_signal_set(&slot->signal, signum));
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
child(int pid, int trace, SV* cb)
  PROTOTYPE: $$$
  ALIAS:
    child_ns = NOT_STARTED
  PREINIT:
    Slot* slot;
  CODE:
    enter_loop(aTHX);
    slot = new_watcher(aTHX_ KIND_CHILD, 0, code_of(aTHX_ cb), &RETVAL);
    spate_child_init(&slot->child, loop, NULL, argument(RETVAL, ix));
    check(aTHX_ spate_child_set(&slot->child, pid, trace != 0));
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
stat(SV* path, SV* interval, SV* cb)
  PROTOTYPE: $$$
  ALIAS:
    stat_ns = NOT_STARTED
  PREINIT:
    Slot* slot;
    SV* copy;
    int64_t every;
  CODE:
    enter_loop(aTHX);
    copy = sv_mortalcopy(path);
    every = nanos_of(aTHX_ interval);
    slot = new_watcher(aTHX_ KIND_STAT, 0, code_of(aTHX_ cb), &RETVAL);
    spate_stat_init(&slot->stat, loop, NULL, argument(RETVAL, ix));
    spate_stat_set_follow_links(&slot->stat, 1);
    set_stat(aTHX_ slot, copy, every);
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

SV*
idle(SV* cb)
  PROTOTYPE: $
  ALIAS:
    idle_ns = NOT_STARTED
    _ae_idle = WITHOUT_ARGUMENTS
  CODE:
    RETVAL = SvREFCNT_inc(new_hook(aTHX_ SPATE_HOOK_IDLE, cb, ix));
  OUTPUT: RETVAL

SV*
prepare(SV* cb)
  PROTOTYPE: $
  ALIAS:
    prepare_ns = NOT_STARTED
  CODE:
    RETVAL = SvREFCNT_inc(new_hook(aTHX_ SPATE_HOOK_PREPARE, cb, ix));
  OUTPUT: RETVAL

SV*
check(SV* cb)
  PROTOTYPE: $
  ALIAS:
    check_ns = NOT_STARTED
  CODE:
    RETVAL = SvREFCNT_inc(new_hook(aTHX_ SPATE_HOOK_CHECK, cb, ix));
  OUTPUT: RETVAL

SV*
fork(SV* cb)
  PROTOTYPE: $
  ALIAS:
    fork_ns = NOT_STARTED
  CODE:
    RETVAL = SvREFCNT_inc(new_hook(aTHX_ SPATE_HOOK_FORK, cb, ix));
  OUTPUT: RETVAL

SV*
async(SV* cb)
  PROTOTYPE: $
  ALIAS:
    async_ns = NOT_STARTED
  PREINIT:
    Slot* slot;
  CODE:
    enter_loop(aTHX);
    slot = new_watcher(aTHX_ KIND_ASYNC, 0, code_of(aTHX_ cb), &RETVAL);
    spate_async_init(&slot->async, loop, NULL, argument(RETVAL, ix));
    start_if(aTHX_ slot, ix);
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT: RETVAL

 # ---- functions of all watchers

MODULE = Spate  PACKAGE = Spate::Watcher

void
DESTROY(SV* self)
  CODE:
    if (is_watcher(aTHX_ self) && slot_of_object(SvRV(self)) != NULL) {
      dSAVE_ERRNO;
      forget_watcher(aTHX_ SvRV(self));
      RESTORE_ERRNO;
    }

void
start(SV* self)
  CODE:
    enter_loop(aTHX);
    check(aTHX_ spate_start(&slot_of(aTHX_ self)->head));

void
stop(SV* self)
  CODE:
    spate_stop(&slot_of(aTHX_ self)->head);

int
is_active(SV* self)
  CODE:
    RETVAL = spate_is_active(&slot_of(aTHX_ self)->head);
  OUTPUT: RETVAL

int
is_pending(SV* self)
  CODE:
    RETVAL = spate_is_pending(&slot_of(aTHX_ self)->head);
  OUTPUT: RETVAL

U32
clear_pending(SV* self)
  CODE:
    RETVAL = spate_clear_pending(&slot_of(aTHX_ self)->head);
  OUTPUT: RETVAL

void
feed_event(SV* self, U32 events = SPATE_CUSTOM)
  CODE:
    check(aTHX_ spate_feed(&slot_of(aTHX_ self)->head, events));

SV*
cb(SV* self, SV* cb = NULL)
  PREINIT:
    Slot* slot;
    SV* code;
  CODE:
    code = cb != NULL ? code_of(aTHX_ cb) : NULL;
    slot = slot_of(aTHX_ self);
    RETVAL = newRV_inc(slot->code);
    if (code != NULL) hold(aTHX_ & slot->code, code);
  OUTPUT: RETVAL

SV*
data(SV* self, SV* data = NULL)
  PREINIT:
    SV* copy;
  CODE:
    copy = data != NULL ? sv_mortalcopy(data) : NULL;
    slot_of(aTHX_ self);
    RETVAL = newSVsv(data_of(aTHX_ SvRV(self)));
    if (copy != NULL) set_data(aTHX_ SvRV(self), copy);
  OUTPUT: RETVAL

int
priority(SV* self, SV* priority = NULL)
  PREINIT:
    Slot* slot;
    IV level;
  CODE:
    level = priority != NULL ? SvIV(priority) : 0;
    slot = slot_of(aTHX_ self);
    RETVAL = spate_priority(&slot->head);
    level = level < -2 ? -2 : (level > 2 ? 2 : level);
    if (priority != NULL) check(aTHX_ spate_set_priority(&slot->head, (int)level));
  OUTPUT: RETVAL

int
keepalive(SV* self, SV* keepalive = NULL)
  PREINIT:
    Slot* slot;
    bool keeps;
  CODE:
    keeps = keepalive != NULL && SvTRUE(keepalive);
    slot = slot_of(aTHX_ self);
    RETVAL = spate_keepalive(&slot->head);
    if (keepalive != NULL) spate_set_keepalive(&slot->head, keeps);
  OUTPUT: RETVAL

 # ---- functions of each kind of watcher

MODULE = Spate  PACKAGE = Spate::IO

void
set(SV* self, SV* handle, U32 events)
  PREINIT:
    int fd;
  CODE:
    fd = fd_of(aTHX_ handle, events);
    set_io(aTHX_ slot_of_kind(aTHX_ self, KIND_IO), handle, fd, events);

SV*
fh(SV* self, SV* handle = NULL)
  PREINIT:
    Slot* slot;
    uint32_t events;
    int fd;
  CODE:
    events = spate_io_events(&slot_of_kind(aTHX_ self, KIND_IO)->io);
    fd = handle != NULL ? fd_of(aTHX_ handle, events) : -1;
    slot = slot_of_kind(aTHX_ self, KIND_IO);
    RETVAL = slot->glob ? newRV_inc(slot->glob) : newSViv(spate_io_fd(&slot->io));
    if (handle != NULL) {
      sv_2mortal(RETVAL);
      set_io(aTHX_ slot, handle, fd, events);
      SvREFCNT_inc_simple_void_NN(RETVAL);
    }
  OUTPUT: RETVAL

U32
events(SV* self, SV* events = NULL)
  PREINIT:
    Slot* slot;
    UV wanted;
  CODE:
    wanted = events != NULL ? SvUV(events) : 0;
    slot = slot_of_kind(aTHX_ self, KIND_IO);
    RETVAL = spate_io_events(&slot->io);
    if (events != NULL) check(aTHX_ spate_io_modify(&slot->io, (uint32_t)wanted));
  OUTPUT: RETVAL

MODULE = Spate  PACKAGE = Spate::Timer

void
set(SV* self, SV* after, SV* repeat = &PL_sv_undef)
  PREINIT:
    Slot* slot;
    int64_t first, next;
  CODE:
    first = nanos_of(aTHX_ after);
    next = SvOK(repeat) ? nanos_of(aTHX_ repeat) : 0;
    slot = slot_of_kind(aTHX_ self, KIND_TIMER);
    check(aTHX_ spate_timer_set(&slot->timer, first, next));

void
again(SV* self, SV* repeat = NULL)
  PREINIT:
    Slot* slot;
    int64_t every;
  CODE:
    every = repeat != NULL ? nanos_of(aTHX_ repeat) : 0;
    slot = slot_of_kind(aTHX_ self, KIND_TIMER);
    if (repeat != NULL) spate_timer_set_repeat(&slot->timer, every);
    check(aTHX_ spate_timer_again(&slot->timer));

NV
remaining(SV* self)
  CODE:
    RETVAL = spate_timer_remaining(&slot_of_kind(aTHX_ self, KIND_TIMER)->timer) / 1e9;
  OUTPUT: RETVAL

NV
repeat(SV* self)
  CODE:
    RETVAL = spate_timer_repeat(&slot_of_kind(aTHX_ self, KIND_TIMER)->timer) / 1e9;
  OUTPUT: RETVAL

MODULE = Spate  PACKAGE = Spate::Periodic

void
set(SV* self, SV* at, SV* interval = &PL_sv_undef)
  PREINIT:
    Slot* slot;
    int64_t offset, every;
  CODE:
    offset = nanos_of(aTHX_ at);
    every = SvOK(interval) ? nanos_of(aTHX_ interval) : 0;
    slot = slot_of_kind(aTHX_ self, KIND_PERIODIC);
    check(aTHX_ spate_periodic_set(&slot->periodic, offset, every, NULL));

SV*
_next(SV* self)
  CODE:
    RETVAL = newRV_inc(slot_of_kind(aTHX_ self, KIND_PERIODIC)->next);
  OUTPUT: RETVAL

NV
at(SV* self)
  CODE:
    RETVAL = spate_periodic_at(&slot_of_kind(aTHX_ self, KIND_PERIODIC)->periodic) / 1e9;
  OUTPUT: RETVAL

MODULE = Spate  PACKAGE = Spate::Signal

void
set(SV* self, SV* signal)
  PREINIT:
    Slot* slot;
    int signum;
  CODE:
    enter_loop(aTHX);
    signum = signum_of(aTHX_ signal);
    slot = slot_of_kind(aTHX_ self, KIND_SIGNAL);
    check(aTHX_ spate_signal_set(&slot->signal, signum));

int
signal(SV* self)
  CODE:
    RETVAL = spate_signal_signum(&slot_of_kind(aTHX_ self, KIND_SIGNAL)->signal);
  OUTPUT: RETVAL

MODULE = Spate  PACKAGE = Spate::Child

void
set(SV* self, int pid, int trace = 0)
  CODE:
    enter_loop(aTHX);
    check(aTHX_ spate_child_set(&slot_of_kind(aTHX_ self, KIND_CHILD)->child, pid, trace != 0));

int
pid(SV* self)
  ALIAS:
    rpid = 1
  CODE:
    PERL_UNUSED_VAR(ix);
    RETVAL = spate_child_pid(&slot_of_kind(aTHX_ self, KIND_CHILD)->child);
  OUTPUT: RETVAL

int
rstatus(SV* self)
  CODE:
    RETVAL = spate_child_status(&slot_of_kind(aTHX_ self, KIND_CHILD)->child);
  OUTPUT: RETVAL

MODULE = Spate  PACKAGE = Spate::Stat

void
set(SV* self, SV* path, SV* interval)
  PREINIT:
    SV* copy;
    int64_t every;
  CODE:
    enter_loop(aTHX);
    copy = sv_mortalcopy(path);
    every = nanos_of(aTHX_ interval);
    set_stat(aTHX_ slot_of_kind(aTHX_ self, KIND_STAT), copy, every);

SV*
path(SV* self)
  CODE:
    RETVAL = newSVsv(slot_of_kind(aTHX_ self, KIND_STAT)->path);
  OUTPUT: RETVAL

NV
interval(SV* self)
  CODE:
    RETVAL = spate_stat_interval(&slot_of_kind(aTHX_ self, KIND_STAT)->stat) / 1e9;
  OUTPUT: RETVAL

void
attr(SV* self)
  ALIAS:
    prev = 1
    stat = 2
  PREINIT:
    spate_stat* stat;
    const spate_file_status* status;
  PPCODE:
    stat = &slot_of_kind(aTHX_ self, KIND_STAT)->stat;
    if (ix == 2) spate_stat_refresh(stat);
    status = ix == 1 ? spate_stat_previous(stat) : spate_stat_current(stat);
    if (GIMME_V != G_LIST) {
      XPUSHs(boolSV(exists_by(status)));
    } else if (exists_by(status)) {
      EXTEND(SP, STATUS_FIELDS);
      put_status(aTHX_ SP + 1, status);
      SP += STATUS_FIELDS;
    }

MODULE = Spate  PACKAGE = Spate::Async

void
send(SV* self)
  CODE:
    spate_async_send(&slot_of_kind(aTHX_ self, KIND_ASYNC)->async);

bool
is_sent(SV* self)
  CODE:
    RETVAL = spate_async_is_sent(&slot_of_kind(aTHX_ self, KIND_ASYNC)->async);
  OUTPUT:
    RETVAL
