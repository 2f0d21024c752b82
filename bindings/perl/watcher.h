// A watcher in Perl: a blessed, read-only integer, the address of a slot. Its lowest bits say which
// kind it is.
//
// The slots of the common kinds come from slabs, as a call of malloc() for each costs time and 16
// bytes. Nothing is copied: of a file handle, the glob is held; of a callback, the code.
#pragma once

typedef enum Kind {
  KIND_IO,
  KIND_TIMER,
  KIND_SIGNAL,
  KIND_ASYNC,
  KIND_PERIODIC,
  KIND_CHILD,
  KIND_STAT,
  KIND_HOOK,
  KIND_MASK = 7
} Kind;

// By kind; a hook adds its own number to KIND_HOOK.
enum { CLASSES = 11 };
static const char* const kClasses[CLASSES] = {"Spate::IO",    "Spate::Timer",    "Spate::Signal",
                                              "Spate::Async", "Spate::Periodic", "Spate::Child",
                                              "Spate::Stat",  "Spate::Prepare",  "Spate::Check",
                                              "Spate::Idle",  "Spate::Fork"};

// The watcher's `data` is the object, which is passed to the callback. NULL: no argument is passed.
typedef struct Slot {
  SV* code;
  union {
    spate_watcher head;
    spate_timer timer;
    spate_signal signal;
    spate_async async;
    spate_hook hook;
    spate_child child;
    struct {
      spate_periodic periodic;
      SV* next;  // Code that says when.
    };
    struct {
      spate_io io;
      SV* glob;
    };
    struct {
      spate_stat stat;
      SV* path;
    };
  };
} Slot;

enum {
  SMALL_SLOT = offsetof(Slot, timer) + sizeof(spate_timer),
  IO_SLOT = offsetof(Slot, glob) + sizeof(SV*),
  SLOTS_PER_SLAB = 256
};

static spate_loop* loop;
static HV* stashes[CLASSES];

// ---- slots

typedef struct FreeSlot {
  struct FreeSlot* next;
} FreeSlot;

typedef struct Slab {
  FreeSlot* free;
  size_t size;
} Slab;

static Slab io_slab = {NULL, IO_SLOT};
static Slab small_slab = {NULL, SMALL_SLOT};

// Returns the slab for slots of this kind. NULL: the slot is allocated separately.
static Slab* slab_of(Kind kind) {
  if (kind == KIND_IO) return &io_slab;
  return kind < KIND_PERIODIC || kind == KIND_HOOK ? &small_slab : NULL;
}

static void put_into(Slab* slab, void* slot) {
  FreeSlot* const added = (FreeSlot*)slot;
  added->next = slab->free;
  slab->free = added;
}

static void grow_slab(pTHX_ Slab* slab) {
  char* slots;
  int i;
  Newx(slots, SLOTS_PER_SLAB * slab->size, char);
  for (i = SLOTS_PER_SLAB; i > 0; --i) put_into(slab, slots + (i - 1) * slab->size);
}

static Slot* new_slot(pTHX_ Kind kind) {
  Slab* const slab = slab_of(kind);
  void* slot;
  if (slab == NULL) {
    Newx(slot, sizeof(Slot), char);
    return (Slot*)slot;
  }
  if (slab->free == NULL) grow_slab(aTHX_ slab);
  slot = slab->free;
  slab->free = slab->free->next;
  return (Slot*)slot;
}

static void free_slot(Kind kind, Slot* slot) {
  Slab* const slab = slab_of(kind);
  if (slab == NULL) {
    Safefree(slot);
  } else {
    put_into(slab, slot);
  }
}

static Slot* slot_of_watcher(spate_watcher* watcher) {
  return (Slot*)((char*)watcher - offsetof(Slot, head));
}

// Returns the place of the value that must outlive the watcher. NULL: the kind has none.
static SV** held_by(Kind kind, Slot* slot) {
  if (kind == KIND_IO) return &slot->glob;
  if (kind == KIND_PERIODIC) return &slot->next;
  return kind == KIND_STAT ? &slot->path : NULL;
}

// ---- objects

static Kind kind_of_object(SV* object) { return (Kind)(SvUVX(object) & KIND_MASK); }
static Slot* slot_of_object(SV* object) { return INT2PTR(Slot*, SvUVX(object) & ~(UV)KIND_MASK); }

// `hook`: 0 of other kinds. The caller initializes the rest of the slot.
static Slot* new_watcher(pTHX_ Kind kind, int hook, SV* code, SV** reference) {
  Slot* const slot = new_slot(aTHX_ kind);
  SV** const held = held_by(kind, slot);
  SV* const object = newSV_type(SVt_PVMG);
  SvUV_set(object, PTR2UV(slot) | kind);
  SvIOK_only(object);
  SvOBJECT_on(object);
  SvSTASH_set(object, (HV*)SvREFCNT_inc_simple_NN((SV*)stashes[kind + hook]));
  SvREADONLY_on(object);
  slot->code = SvREFCNT_inc_simple_NN(code);
  if (held != NULL) *held = NULL;
  *reference = sv_2mortal(newRV_noinc(object));
  return slot;
}

// References are released last, because their destructors may run any code.
static void forget_watcher(pTHX_ SV* object) {
  const Kind kind = kind_of_object(object);
  Slot* const slot = slot_of_object(object);
  SV** const held_at = held_by(kind, slot);
  SV* const held = held_at != NULL ? *held_at : NULL;
  SV* const code = slot->code;
  spate_stop(&slot->head);
  free_slot(kind, slot);
  SvUV_set(object, 0);
  SvREFCNT_dec_NN(code);
  SvREFCNT_dec(held);
}

static bool is_watcher(pTHX_ SV* self) {
  HV* stash;
  int i;
  if (!SvROK(self) || !SvOBJECT(SvRV(self)) || SvTYPE(SvRV(self)) != SVt_PVMG) return FALSE;
  stash = SvSTASH(SvRV(self));
  for (i = 0; i < CLASSES; ++i) {
    if (stashes[i] == stash) return TRUE;
  }
  return sv_derived_from(self, "Spate::Watcher");
}

static Slot* slot_of(pTHX_ SV* self) {
  if (!is_watcher(aTHX_ self)) croak("Spate: this is no watcher");
  if (slot_of_object(SvRV(self)) == NULL) croak("Spate: this watcher was destroyed");
  return slot_of_object(SvRV(self));
}

static Slot* slot_of_kind(pTHX_ SV* self, Kind kind) {
  Slot* const slot = slot_of(aTHX_ self);
  if (kind_of_object(SvRV(self)) != kind) croak("Spate: this is no %s", kClasses[kind]);
  return slot;
}

// ---- from Perl's values

static void check(pTHX_ int code) {
  char text[128];
  if (code < 0) croak("Spate: %s", spate_strerror(code, text, sizeof(text)));
}

static int64_t nanos_of(pTHX_ SV* seconds) {
  const NV nanos = SvNV(seconds) * 1e9;
  if (nanos != nanos) croak("Spate: a time that is not a number");
  if (nanos >= 9.2e18) return INT64_MAX;
  return nanos <= -9.2e18 ? -INT64_MAX : (int64_t)nanos;
}

static SV* code_of(pTHX_ SV* callback) {
  HV* stash;
  GV* glob;
  CV* code;
  if (SvROK(callback) && SvTYPE(SvRV(callback)) == SVt_PVCV) return SvRV(callback);
  code = SvOK(callback) ? sv_2cv(callback, &stash, &glob, 0) : NULL;
  if (code == NULL) croak("Spate: a callback is code, or what can be called as if it were");
  return (SV*)code;
}

// Returns the file handle that a reference refers to; `handle` itself if it is not a reference.
static SV* behind_handle(SV* handle) { return SvROK(handle) ? SvRV(handle) : handle; }

static bool is_handle(SV* behind) { return isGV_with_GP(behind) || SvTYPE(behind) == SVt_PVIO; }

static int descriptor_of(pTHX_ SV* handle, uint32_t events) {
  SV* behind;
  SvGETMAGIC(handle);
  behind = behind_handle(handle);
  if (is_handle(behind)) {
    IO* const io = sv_2io(behind);
    PerlIO* const file = (events & SPATE_WRITE) && IoOFP(io) ? IoOFP(io) : IoIFP(io);
    return file ? PerlIO_fileno(file) : -1;
  }
  if (SvROK(handle)) croak("Spate: neither a file handle nor a descriptor");
  return SvOK(handle) && looks_like_number(handle) ? (int)SvIV(handle) : -1;
}

static int fd_of(pTHX_ SV* handle, uint32_t events) {
  const int fd = descriptor_of(aTHX_ handle, events);
  if (fd < 0) croak("Spate: this file handle is not open, or has no descriptor");
  return fd;
}

static int signum_of(pTHX_ SV* signal) {
  const char* name;
  int signum;
  if (looks_like_number(signal)) return (int)SvIV(signal);
  name = SvPV_nolen(signal);
  if (strncmp(name, "SIG", 3) == 0) name += 3;
  for (signum = 1; signum < SIG_SIZE; ++signum) {
    if (strcmp(name, PL_sig_name[signum]) == 0) return PL_sig_num[signum];
  }
  croak("Spate: there is no signal %s", name);
}

// Replaces the held value.
static void hold(pTHX_ SV** held, SV* what) {
  SV* const before = *held;
  *held = SvREFCNT_inc(what);
  SvREFCNT_dec(before);
}

// `fd` is the handle's descriptor. It is determined before the slot, since a tied handle may forget
// the watcher; so may each argument of a method.
static void set_io(pTHX_ Slot* slot, SV* handle, int fd, uint32_t events) {
  SV* const behind = behind_handle(handle);
  const int code = spate_io_set(&slot->io, fd, events);
  // Even if its start fails, set() has changed the descriptor.
  if (spate_io_fd(&slot->io) == fd) hold(aTHX_ & slot->glob, is_handle(behind) ? behind : NULL);
  check(aTHX_ code);
}

// `path`: a copy.
static void set_stat(pTHX_ Slot* slot, SV* path, int64_t interval) {
  const char* const text = SvPVbyte_nolen(path);
  const int code = spate_stat_set(&slot->stat, text, interval);
  // Even if its start fails, set() has changed the path.
  if (spate_stat_path(&slot->stat) == text) hold(aTHX_ & slot->path, path);
  check(aTHX_ code);
}

static bool exists_by(const spate_file_status* status) { return status->links != 0; }

enum { STATUS_FIELDS = 13 };

// In the order of Perl's stat(); the last two, of blocks, are not known.
static void put_status(pTHX_ SV** at, const spate_file_status* status) {
  const NV numbers[STATUS_FIELDS - 2] = {
      status->device,         status->inode,        status->mode,
      status->links,          status->uid,          status->gid,
      status->special_device, status->size,         status->accessed / 1e9,
      status->modified / 1e9, status->changed / 1e9};
  int i;
  for (i = 0; i < STATUS_FIELDS - 2; ++i) at[i] = sv_2mortal(newSVnv(numbers[i]));
  at[STATUS_FIELDS - 2] = at[STATUS_FIELDS - 1] = &PL_sv_undef;
}
