// The functions of evbuffers with every argument that a program might pass: see arguments.h. A
// pointer's memory is as large as the call says, unless that is impossible.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/buffer_compat.h>
#include <sys/socket.h>

#include "arguments.h"
#include "libevent_cases.h"

enum { kRoom = 8192 };

static char room[kRoom] = "text that is there\r\n";
static struct evbuffer* subject;
static struct evbuffer* other;
static int pair[2];

// ---- the world

enum { kNoBuffer, kEmpty, kText, kPieces, kFrontFrozen, kBackFrozen };

static const Value kBufferValues[] = {
    {"NULL", kNoBuffer}, {"empty", kEmpty},        {"text", kText},
    {"pieces", kPieces}, {"frozen", kFrontFrozen}, {"frozen at the back", kBackFrozen},
};
static const Domain kBuffers = DOMAIN_OF(kBufferValues);

static const Value kFewBufferValues[] = {{"NULL", kNoBuffer}, {"empty", kEmpty}, {"text", kText}};
static const Domain kFewBuffers = DOMAIN_OF(kFewBufferValues);

static void on_given_back(const void* bytes, size_t size, void* arg) {
  (void)bytes, (void)arg;
  show("given back", (long)size);
}

static struct evbuffer* make_buffer(long kind) {
  if (kind == kNoBuffer) return NULL;
  struct evbuffer* buffer = evbuffer_new();
  if (kind != kEmpty) evbuffer_add(buffer, "first\nsecond\r\n", 14);
  if (kind == kPieces) {
    evbuffer_add_reference(buffer, "lent\r\n", 6, on_given_back, NULL);
    evbuffer_prepend(buffer, room, 18);
  }
  if (kind == kFrontFrozen) evbuffer_freeze(buffer, 1);
  if (kind == kBackFrozen) evbuffer_freeze(buffer, 0);
  return buffer;
}

static void open_buffers(long kind, long other_kind) {
  event_set_log_callback(on_log);
  signal(SIGPIPE, SIG_IGN);
  subject = make_buffer(kind);
  other = make_buffer(other_kind);
  open_pair(pair);
}

static void open_buffer(long kind) { open_buffers(kind, kNoBuffer); }

static void print_buffer(const char* name, struct evbuffer* buffer) {
  static char bytes[4 * kRoom];
  if (buffer == NULL) return;
  const ev_ssize_t copied = evbuffer_copyout(buffer, bytes, sizeof bytes);
  unsigned sum = 7;
  for (ev_ssize_t i = 0; i < copied; i++) sum = sum * 31 + (unsigned char)bytes[i];
  printf("%s: %zu bytes, copied %ld, sum %u\n", name, evbuffer_get_length(buffer), (long)copied,
         sum);
}

// Shows that both are intact: bytes can be added, moved and freed.
static void close_buffers(void) {
  print_buffer("subject", subject);
  print_buffer("other", other);
  if (subject != NULL) {
    show("add", evbuffer_add(subject, "more", 4));
    show("drain", evbuffer_drain(subject, 3));
    print_buffer("subject", subject);
  }
  if (other != NULL) evbuffer_free(other);
  if (subject != NULL) evbuffer_free(subject);
}

static const Value kSizeValues[] = {
    {"0", 0},
    {"1", 1},
    {"14", 14},
    {"15", 15},
    {"38", 38},
    {"5000", 5000},
    {"SSIZE_MAX", EV_SSIZE_MAX},
    {"-1", -1},
};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kFewSizeValues[] = {{"0", 0}, {"5", 5}, {"-1", -1}};
static const Domain kFewSizes = DOMAIN_OF(kFewSizeValues);

// Without the differences that docs/drop-in.md names: references of no bytes, impossible sizes, and
// a segment up to the end of a file.
static const Value kLengthValues[] = {{"1", 1}, {"5", 5}, {"SSIZE_MAX", EV_SSIZE_MAX - 100}};
static const Domain kLengths = DOMAIN_OF(kLengthValues);

// Sizes of the program's memory: the largest are impossible, so that the memory is not read.
static const Value kSourceSizeValues[] = {
    {"0", 0}, {"1", 1}, {"5000", 5000}, {"SSIZE_MAX", EV_SSIZE_MAX}, {"SIZE_MAX", -1},
};
static const Domain kSourceSizes = DOMAIN_OF(kSourceSizeValues);

static const Value kPlaceValues[] = {
    {"NULL", -7}, {"0", 0}, {"5", 5}, {"14", 14}, {"none", -1},
};
static const Domain kPlaces = DOMAIN_OF(kPlaceValues);

static const struct evbuffer_ptr* place_of(long at, struct evbuffer_ptr* place) {
  if (at == -7) return NULL;
  memset(place, 0, sizeof *place);
  place->pos = -1;
  if (at >= 0 && subject != NULL) evbuffer_ptr_set(subject, place, (size_t)at, EVBUFFER_PTR_SET);
  return place;
}

static void* bytes_or_null(long is_there) { return is_there ? room : NULL; }

// ---- adding

static void call_add(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_add(subject, bytes_or_null(at[1]), (size_t)at[2]));
  close_buffers();
}

static void call_prepend(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_prepend(subject, bytes_or_null(at[1]), (size_t)at[2]));
  close_buffers();
}

static void call_add_reference(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_add_reference(subject, bytes_or_null(at[1]), (size_t)at[2],
                                        at[3] ? on_given_back : NULL, NULL));
  if (at[2] > kRoom) show("drain", evbuffer_drain(subject, (size_t)at[2]));
  close_buffers();
}

static void call_add_buffer(const long* at) {
  open_buffers(at[0], at[1]);
  show("result", evbuffer_add_buffer(subject, other));
  close_buffers();
}

static void call_prepend_buffer(const long* at) {
  open_buffers(at[0], at[1]);
  show("result", evbuffer_prepend_buffer(subject, other));
  close_buffers();
}

static void call_add_buffer_reference(const long* at) {
  open_buffers(at[0], at[1]);
  show("result", evbuffer_add_buffer_reference(subject, other));
  close_buffers();
}

static void call_to_itself(const long* at) {
  open_buffer(at[0]);
  show("add", evbuffer_add_buffer(subject, subject));
  show("prepend", evbuffer_prepend_buffer(subject, subject));
  show("reference", evbuffer_add_buffer_reference(subject, subject));
  show("remove", evbuffer_remove_buffer(subject, subject, (size_t)at[1]));
  close_buffers();
}

static void call_add_printf(const long* at) {
  open_buffer(at[0]);
  show("result", at[1] ? evbuffer_add_printf(subject, "%d-%s", 7, "x")
                       : evbuffer_add_printf(subject, "%s", ""));
  close_buffers();
}

static void call_add_iovec(const long* at) {
  struct evbuffer_iovec extents[2] = {{room, 3}, {at[3] ? room : NULL, at[3] ? 4 : 0}};
  open_buffer(at[0]);
  show("result", (long)evbuffer_add_iovec(subject, at[1] ? extents : NULL, (int)at[2]));
  close_buffers();
}

static void call_expand(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_expand(subject, (size_t)at[1]));
  close_buffers();
}

static void call_reserve(const long* at) {
  struct evbuffer_iovec extents[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  open_buffer(at[0]);
  const int count =
      evbuffer_reserve_space(subject, (ev_ssize_t)at[1], at[2] ? extents : NULL, (int)at[3]);
  show("reserved", count > 0 ? 1 : count);
  if (count > 0) {
    extents[0].iov_len = 1;
    memcpy(extents[0].iov_base, "x", 1);
    show("committed", evbuffer_commit_space(subject, extents, 1));
  }
  close_buffers();
}

static void call_commit(const long* at) {
  struct evbuffer_iovec extents[2] = {{room, (size_t)at[2]}, {NULL, 0}};
  open_buffer(at[0]);
  show("result", evbuffer_commit_space(subject, at[1] ? extents : NULL, (int)at[3]));
  close_buffers();
}

// ---- taking, and looking

static void call_remove(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_remove(subject, bytes_or_null(at[1]), (size_t)at[2]));
  close_buffers();
}

static void call_copyout_from(const long* at) {
  struct evbuffer_ptr place;
  open_buffer(at[0]);
  show("result", (long)evbuffer_copyout_from(subject, place_of(at[3], &place), bytes_or_null(at[1]),
                                             (size_t)at[2]));
  close_buffers();
}

static void call_drain(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_drain(subject, (size_t)at[1]));
  close_buffers();
}

static void call_remove_buffer(const long* at) {
  open_buffers(at[0], at[1]);
  show("result", evbuffer_remove_buffer(subject, other, (size_t)at[2]));
  close_buffers();
}

static void call_pullup(const long* at) {
  open_buffer(at[0]);
  show("is there", evbuffer_pullup(subject, (ev_ssize_t)at[1]) != NULL);
  close_buffers();
}

static void call_readln(const long* at) {
  size_t length = 77;
  open_buffer(at[0]);
  char* line = evbuffer_readln(subject, at[1] ? &length : NULL, (enum evbuffer_eol_style)at[2]);
  show_text("line", line);
  if (line != NULL) show("length", (long)length);
  free(line);
  close_buffers();
}

static void call_search(const long* at) {
  struct evbuffer_ptr place;
  open_buffer(at[0]);
  show("found", (long)evbuffer_search(subject, at[1] ? "second" : NULL, (size_t)at[2],
                                      place_of(at[3], &place))
                    .pos);
  close_buffers();
}

static void call_search_range(const long* at) {
  struct evbuffer_ptr start;
  struct evbuffer_ptr end;
  open_buffer(at[0]);
  show("found", (long)evbuffer_search_range(subject, "st", (size_t)at[1], place_of(at[2], &start),
                                            place_of(at[3], &end))
                    .pos);
  close_buffers();
}

static void call_search_eol(const long* at) {
  struct evbuffer_ptr place;
  size_t length = 0;
  open_buffer(at[0]);
  show("found", (long)evbuffer_search_eol(subject, (void*)(uintptr_t)place_of(at[1], &place),
                                          at[2] ? &length : NULL, (enum evbuffer_eol_style)at[3])
                    .pos);
  close_buffers();
}

static void call_ptr_set(const long* at) {
  struct evbuffer_ptr place;
  open_buffer(at[0]);
  place_of(at[1], &place);
  show("result", evbuffer_ptr_set(subject, at[1] == -7 ? NULL : &place, (size_t)at[2],
                                  (enum evbuffer_ptr_how)at[3]));
  if (at[1] != -7) show("place", (long)place.pos);
  close_buffers();
}

static void call_peek(const long* at) {
  struct evbuffer_iovec extents[4];
  struct evbuffer_ptr place;
  open_buffer(at[0]);
  const int count =
      evbuffer_peek(subject, (ev_ssize_t)at[1], (void*)(uintptr_t)place_of(at[2], &place),
                    at[3] ? extents : NULL, at[3] ? 4 : 0);
  show("some", count > 0);
  close_buffers();
}

// ---- descriptors and files

static const Value kFdValues[] = {{"-1", -1}, {"open", 0}, {"9999", 9999}};
static const Domain kFds = DOMAIN_OF(kFdValues);

static void call_write_atmost(const long* at) {
  open_buffer(at[0]);
  show("result",
       evbuffer_write_atmost(subject, at[1] == 0 ? pair[0] : (int)at[1], (ev_ssize_t)at[2]));
  close_buffers();
}

static void call_read(const long* at) {
  open_buffer(at[0]);
  put(pair[1], "what is read");
  show("result", evbuffer_read(subject, at[1] == 0 ? pair[0] : (int)at[1], (int)at[2]));
  close_buffers();
}

static int open_file(void) {
  char name[] = "/tmp/spate-arguments-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  if (write(file, room, 20) != 20) printf("no file\n");
  return file;
}

static void call_add_file(const long* at) {
  open_buffer(at[0]);
  show("result", evbuffer_add_file(subject, at[1] == 0 ? open_file() : (int)at[1], (ev_off_t)at[2],
                                   (ev_off_t)at[3]));
  close_buffers();
}

// ---- callbacks and settings

static void on_change(struct evbuffer* buffer, const struct evbuffer_cb_info* info, void* arg) {
  (void)arg;
  printf("  changed: %d, %zu + %zu - %zu\n", buffer == subject, info->orig_size, info->n_added,
         info->n_deleted);
}

static void call_callbacks(const long* at) {
  open_buffer(at[0]);
  struct evbuffer_cb_entry* entry = evbuffer_add_cb(subject, at[1] ? on_change : NULL, NULL);
  show("entry", entry != NULL);
  show("flags", evbuffer_cb_set_flags(subject, entry, (ev_uint32_t)at[2]));
  evbuffer_add(subject, "x", 1);
  show("flags", evbuffer_cb_clear_flags(subject, entry, (ev_uint32_t)at[2]));
  evbuffer_add(subject, "x", 1);
  show("remove", evbuffer_remove_cb(subject, at[3] ? on_change : NULL, NULL));
  close_buffers();
}

static void call_remove_entry(const long* at) {
  open_buffer(at[0]);
  show("remove", evbuffer_remove_cb_entry(subject, NULL));
  close_buffers();
}

static void call_setcb(const long* at) {
  open_buffer(at[0]);
  evbuffer_add_cb(subject, on_change, NULL);
  show("result", evbuffer_setcb(subject, NULL, NULL));
  close_buffers();
}

static void call_settings(const long* at) {
  open_buffer(at[0]);
  show("set", evbuffer_set_flags(subject, (ev_uint64_t)at[1]));
  show("clear", evbuffer_clear_flags(subject, (ev_uint64_t)at[1]));
  show("freeze", evbuffer_freeze(subject, (int)at[1]));
  show("again", evbuffer_freeze(subject, (int)at[1]));
  show("unfreeze", evbuffer_unfreeze(subject, (int)at[1]));
  close_buffers();
}

static void call_locking(const long* at) {
  if (at[1]) evthread_use_pthreads();
  open_buffer(at[0]);
  show("locking", evbuffer_enable_locking(subject, NULL));
  show("twice", evbuffer_enable_locking(subject, NULL));
  evbuffer_lock(subject);
  evbuffer_unlock(subject);
  close_buffers();
}

static void call_defer(const long* at) {
  struct event_base* base = at[1] ? event_base_new() : NULL;
  open_buffer(at[0]);
  show("defer", evbuffer_defer_callbacks(subject, base));
  evbuffer_add_cb(subject, on_change, NULL);
  if (base == NULL) return;
  evbuffer_add(subject, "x", 1);
  event_base_loop(base, EVLOOP_NONBLOCK);
  close_buffers();
}

static void call_length(const long* at) {
  open_buffer(at[0]);
  show("length", (long)evbuffer_get_length(subject));
  if (at[0] == kText) show("contiguous", (long)evbuffer_get_contiguous_space(subject));
  close_buffers();
}

static void call_free(const long* at) {
  open_buffer(at[0]);
  evbuffer_free(subject);
}

// ---- the table

static const Value kStyleValues[] = {
    {"ANY", EVBUFFER_EOL_ANY},
    {"CRLF", EVBUFFER_EOL_CRLF},
    {"CRLF_STRICT", EVBUFFER_EOL_CRLF_STRICT},
    {"LF", EVBUFFER_EOL_LF},
    {"NUL", EVBUFFER_EOL_NUL},
    {"99", 99},
};
static const Domain kStyles = DOMAIN_OF(kStyleValues);

static const Value kCountValues[] = {{"-1", -1}, {"0", 0}, {"1", 1}, {"2", 2}};
static const Domain kCounts = DOMAIN_OF(kCountValues);

static const Value kHowValues[] = {{"SET", EVBUFFER_PTR_SET}, {"ADD", EVBUFFER_PTR_ADD}};
static const Domain kHows = DOMAIN_OF(kHowValues);

static const Value kFlagValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"-1", -1}};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evbuffer_add", call_add, {&kBuffers, &kBooleans, &kSourceSizes}},
      {"evbuffer_prepend", call_prepend, {&kBuffers, &kBooleans, &kSourceSizes}},
      {"evbuffer_add_reference",
       call_add_reference,
       {&kFewBuffers, &kBooleans, &kLengths, &kBooleans}},
      {"evbuffer_add_buffer", call_add_buffer, {&kBuffers, &kBuffers}},
      {"evbuffer_prepend_buffer", call_prepend_buffer, {&kBuffers, &kBuffers}},
      {"evbuffer_add_buffer_reference", call_add_buffer_reference, {&kBuffers, &kBuffers}},
      {"one buffer twice", call_to_itself, {&kBuffers, &kFewSizes}},
      {"evbuffer_add_printf", call_add_printf, {&kBuffers, &kBooleans}},
      {"evbuffer_add_iovec", call_add_iovec, {&kFewBuffers, &kBooleans, &kCounts, &kBooleans}},
      {"evbuffer_expand", call_expand, {&kBuffers, &kSizes}},
      {"evbuffer_reserve_space", call_reserve, {&kBuffers, &kFewSizes, &kBooleans, &kCounts}},
      {"evbuffer_commit_space", call_commit, {&kBuffers, &kBooleans, &kFewSizes, &kBooleans}},
      {"evbuffer_remove", call_remove, {&kBuffers, &kBooleans, &kSizes}},
      {"evbuffer_copyout_from",
       call_copyout_from,
       {&kFewBuffers, &kBooleans, &kFewSizes, &kPlaces}},
      {"evbuffer_drain", call_drain, {&kBuffers, &kSizes}},
      {"evbuffer_remove_buffer", call_remove_buffer, {&kBuffers, &kFewBuffers, &kSizes}},
      {"evbuffer_pullup", call_pullup, {&kBuffers, &kSizes}},
      {"evbuffer_readln", call_readln, {&kBuffers, &kBooleans, &kStyles}},
      {"evbuffer_search", call_search, {&kFewBuffers, &kBooleans, &kFewSizes, &kPlaces}},
      {"evbuffer_search_range", call_search_range, {&kFewBuffers, &kFewSizes, &kPlaces, &kPlaces}},
      {"evbuffer_search_eol", call_search_eol, {&kFewBuffers, &kPlaces, &kBooleans, &kStyles}},
      {"evbuffer_ptr_set", call_ptr_set, {&kFewBuffers, &kPlaces, &kSizes, &kHows}},
      {"evbuffer_peek", call_peek, {&kFewBuffers, &kFewSizes, &kPlaces, &kBooleans}},
      {"evbuffer_write_atmost", call_write_atmost, {&kBuffers, &kFds, &kFewSizes}},
      {"evbuffer_read", call_read, {&kBuffers, &kFds, &kFewSizes}},
      {"evbuffer_add_file", call_add_file, {&kFewBuffers, &kFds, &kFewSizes, &kLengths}},
      {"callbacks", call_callbacks, {&kFewBuffers, &kBooleans, &kFlags, &kBooleans}},
      {"evbuffer_remove_cb_entry", call_remove_entry, {&kFewBuffers}},
      {"evbuffer_setcb", call_setcb, {&kFewBuffers}},
      {"settings", call_settings, {&kBuffers, &kFlags}},
      {"evbuffer_enable_locking", call_locking, {&kBuffers, &kBooleans}},
      {"evbuffer_defer_callbacks", call_defer, {&kBuffers, &kBooleans}},
      {"evbuffer_get_length", call_length, {&kBuffers}},
      {"evbuffer_free", call_free, {&kBuffers}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
