// Random scripts over a few evbuffers: every seed is a script, which prints each call with its
// result, each callback with its arguments, each piece of memory released, and the contents.
//
// The layout of bytes in memory differs between the libraries: of extents only the sums are
// printed. No script frees a buffer, or removes another callback, in a callback, and none makes a
// reference of no bytes: the original does not define these. Where one buffer refers to another
// one's memory, the original keeps all of the latter, so such scripts do not print when memory is
// released; and the layout decides whether a reference is allowed, so b0 gets contents that always
// allow it. In the original, a pullup of a referenced buffer can change the contents of the
// referring one. While it moves a part of a buffer it calls callbacks that find the source half
// changed, so these do nothing then.
//
// differential: --seeds 1:800
#include <event2/buffer.h>
#include <event2/buffer_compat.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "libevent_cases.h"

enum { kBuffers = 3, kEntries = 3, kText = 3000, kFuel = 60, kDepthMost = 3 };

typedef struct Entry {
  struct evbuffer_cb_entry* handle;
  int buffer;
  int number;
} Entry;

static struct evbuffer* buffers[kBuffers];
static struct event_base* base;
static int is_deferred[kBuffers];
static Entry entries[kBuffers][kEntries];
static char text[kText];
static int pair[2];
static int fuel;
static int depth;
static int references;
static int given_back;
static int has_multicast;
static int file;

static void random_op(void);

static int number_of(const struct evbuffer* buffer) {
  int number = 0;
  while (buffers[number] != buffer) number++;
  return number;
}

static void show_contents(int number) {
  struct evbuffer* buffer = buffers[number];
  static unsigned char bytes[1 << 18];
  const size_t length = evbuffer_get_length(buffer);
  const ev_ssize_t copied = evbuffer_copyout(buffer, bytes, sizeof bytes);
  unsigned sum = 17;
  for (ev_ssize_t i = 0; i < copied; i++) sum = sum * 31 + bytes[i];
  printf("  b%d: %zu bytes, copied %ld, sum %u\n", number, length, (long)copied, sum);
}

static void on_change(struct evbuffer* buffer, const struct evbuffer_cb_info* info, void* arg) {
  Entry* entry = arg;
  printf("  callback %d of b%d: %zu + %zu - %zu, now %zu\n", entry->number, number_of(buffer),
         info->orig_size, info->n_added, info->n_deleted, evbuffer_get_length(buffer));
  if (depth < kDepthMost && fuel > 0 && random_chance(15)) {
    fuel--;
    depth++;
    random_op();
    depth--;
  }
}

static void on_old_change(struct evbuffer* buffer, size_t before, size_t now, void* arg) {
  (void)arg;
  printf("  old callback of b%d: %zu to %zu\n", number_of(buffer), before, now);
}

static void on_given_back(const void* data, size_t size, void* arg) {
  given_back++;
  if (has_multicast) return;
  printf("  given back: %ld, %zu bytes at %ld\n", (long)(intptr_t)arg, size,
         (long)((const char*)data - text));
}

static int any(void) { return random_below(kBuffers); }

static size_t some_size(void) {
  switch (random_below(6)) {
    case 0:
      return 0;
    case 1:
      return (size_t)random_below(kText);
    default:
      return (size_t)random_below(40);
  }
}

static const char* some_text(size_t size) {
  return text + random_below((int)(kText - size) > 0 ? (int)(kText - size) : 1);
}

static void op_add(void) {
  const int b = any();
  const size_t size = some_size();
  const int at_front = random_chance(30);
  printf("%s b%d %zu\n", at_front ? "prepend" : "add", b, size);
  show("result", at_front ? evbuffer_prepend(buffers[b], some_text(size), size)
                          : evbuffer_add(buffers[b], some_text(size), size));
}

static void op_reference(void) {
  const int b = any();
  const size_t size = some_size() + 1;
  const int number = ++references;
  printf("reference %d b%d %zu\n", number, b, size);
  show("result", evbuffer_add_reference(buffers[b], some_text(size), size, on_given_back,
                                        (void*)(intptr_t)number));
}

static void op_printf(void) {
  const int b = any();
  const int width = (int)some_size();
  printf("printf b%d %d\n", b, width);
  show("result", evbuffer_add_printf(buffers[b], "%*d-%s", width, 7, "tail"));
}

static void op_iovec(void) {
  const int b = any();
  struct evbuffer_iovec extents[3];
  for (int i = 0; i < 3; i++) {
    extents[i].iov_len = some_size();
    extents[i].iov_base = (void*)(uintptr_t)some_text(extents[i].iov_len);
  }
  printf("iovec b%d\n", b);
  show("result", (long)evbuffer_add_iovec(buffers[b], extents, 1 + random_below(3)));
}

static void op_take(void) {
  static char bytes[kText * 2];
  const int b = any();
  const size_t size = some_size();
  switch (random_below(3)) {
    case 0:
      printf("drain b%d %zu\n", b, size);
      show("result", evbuffer_drain(buffers[b], size));
      return;
    case 1:
      printf("remove b%d %zu\n", b, size);
      show("result", evbuffer_remove(buffers[b], bytes, size));
      return;
    default: {
      struct evbuffer_ptr start;
      if (evbuffer_ptr_set(buffers[b], &start, some_size(), EVBUFFER_PTR_SET) != 0) return;
      printf("copyout b%d %zu from %ld\n", b, size, (long)start.pos);
      show("result", evbuffer_copyout_from(buffers[b], &start, bytes, size));
    }
  }
}

static void op_move(void) {
  const int to = any();
  const int from = has_multicast && to == 0 ? 0 : any();
  const size_t size = some_size();
  switch (random_below(4)) {
    case 0:
      printf("add_buffer b%d b%d\n", to, from);
      show("result", evbuffer_add_buffer(buffers[to], buffers[from]));
      return;
    case 1:
      printf("prepend_buffer b%d b%d\n", to, from);
      show("result", evbuffer_prepend_buffer(buffers[to], buffers[from]));
      return;
    default:
      printf("remove_buffer b%d b%d %zu\n", from, to, size);
      depth += kDepthMost;
      show("result", evbuffer_remove_buffer(buffers[from], buffers[to], size));
      depth -= kDepthMost;
  }
}

static void op_pullup(void) {
  const int b = any();
  const ev_ssize_t size = random_chance(30) ? -1 : (ev_ssize_t)some_size();
  if (b == 0 && has_multicast) return;
  printf("pullup b%d %ld\n", b, (long)size);
  const unsigned char* bytes = evbuffer_pullup(buffers[b], size);
  show("is there", bytes != NULL);
  if (bytes != NULL) show("contiguous", evbuffer_get_contiguous_space(buffers[b]) >= (size_t)size);
}

static void op_peek(void) {
  const int b = any();
  struct evbuffer_iovec extents[64];
  struct evbuffer_ptr start;
  if (evbuffer_ptr_set(buffers[b], &start, some_size(), EVBUFFER_PTR_SET) != 0) return;
  const int count = evbuffer_peek(buffers[b], -1, &start, extents, 64);
  unsigned sum = 3;
  for (int i = 0; i < count; i++) {
    for (size_t at = 0; at < extents[i].iov_len; at++) {
      sum = sum * 31 + ((unsigned char*)extents[i].iov_base)[at];
    }
  }
  if (count < 64) printf("peek b%d from %ld: sum %u\n", b, (long)start.pos, sum);
}

static void op_search(void) {
  const int b = any();
  struct evbuffer_ptr start;
  struct evbuffer_ptr end;
  evbuffer_ptr_set(buffers[b], &start, some_size(), EVBUFFER_PTR_SET);
  if (random_chance(30)) evbuffer_ptr_set(buffers[b], &start, some_size(), EVBUFFER_PTR_ADD);
  const int has_end = evbuffer_ptr_set(buffers[b], &end, some_size(), EVBUFFER_PTR_SET) == 0;
  const size_t size = (size_t)random_below(6);
  const char* what = some_text(size);
  printf("search b%d %zu from %ld\n", b, size, (long)start.pos);
  show("found", evbuffer_search(buffers[b], what, size, &start).pos);
  if (has_end) {
    printf("until %ld\n", (long)end.pos);
    show("found", evbuffer_search_range(buffers[b], what, size, &start, &end).pos);
  }
}

static void op_line(void) {
  const int b = any();
  const enum evbuffer_eol_style style = (enum evbuffer_eol_style)random_below(5);
  size_t length = 0;
  struct evbuffer_ptr start;
  if (random_chance(50)) {
    if (evbuffer_ptr_set(buffers[b], &start, some_size(), EVBUFFER_PTR_SET) != 0) return;
    const struct evbuffer_ptr found = evbuffer_search_eol(buffers[b], &start, &length, style);
    printf("eol b%d style %d from %ld: %ld", b, style, (long)start.pos, (long)found.pos);
    printf(" of %zu\n", found.pos < 0 ? 0 : length);
    return;
  }
  printf("readln b%d style %d\n", b, style);
  char* line = evbuffer_readln(buffers[b], &length, style);
  printf("  line of %zu: %s\n", length, line ? line : "(none)");
  free(line);
}

static void op_reserve(void) {
  const int b = any();
  const size_t size = some_size() + 1;
  const int extents_most = 1 + random_below(2);
  struct evbuffer_iovec extents[2];
  const int count = evbuffer_reserve_space(buffers[b], (ev_ssize_t)size, extents, extents_most);
  printf("reserve b%d %zu: %d\n", b, size, count > 0);
  if (count < 1) return;
  const char* from = some_text(size);
  size_t left = size;
  for (int i = 0; i < count; i++) {
    const size_t here = left < extents[i].iov_len ? left : extents[i].iov_len;
    memcpy(extents[i].iov_base, from + (size - left), here);
    extents[i].iov_len = here;
    left -= here;
  }
  show("left", (long)left);
  show("commit", evbuffer_commit_space(buffers[b], extents, count));
}

static void op_expand(void) {
  const int b = any();
  show("expand", evbuffer_expand(buffers[b], some_size()));
}

static void op_freeze(void) {
  const int b = any();
  const int at_front = random_below(2);
  const int on = random_chance(30);
  printf("%s b%d %d\n", on ? "freeze" : "unfreeze", b, at_front);
  show("result",
       on ? evbuffer_freeze(buffers[b], at_front) : evbuffer_unfreeze(buffers[b], at_front));
}

static void op_transfer(void) {
  const int b = any();
  const int size = random_below(4000);
  if (random_chance(50)) {
    printf("write b%d %d\n", b, size);
    const long written = evbuffer_write_atmost(buffers[b], pair[1], size);
    show("result", written);
  } else {
    printf("read b%d %d\n", b, size);
    show("result", evbuffer_read(buffers[b], pair[0], size));
  }
}

static void op_multicast(void) {
  if (!has_multicast) return;
  const int to = any();
  const int from = 0;
  printf("add_buffer_reference b%d b%d\n", to, from);
  show("result", evbuffer_add_buffer_reference(buffers[to], buffers[from]));
}

static void op_file(void) {
  const int b = has_multicast ? 1 : any();
  const int offset = random_below(kText);
  const int length = 1 + random_below(kText - offset);
  printf("file b%d %d %d\n", b, offset, length);
  const int result = evbuffer_add_file(buffers[b], dup(file), offset, length);
  show("result", result);
}

static void op_callback(void) {
  if (depth > 0) return;
  const int b = any();
  Entry* entry = &entries[b][random_below(kEntries)];
  const int number = entry->number;
  if (entry->handle == NULL) {
    printf("add_cb %d b%d\n", number, b);
    entry->handle = evbuffer_add_cb(buffers[b], on_change, entry);
    return;
  }
  switch (random_below(4)) {
    case 0:
      printf("remove_cb %d b%d\n", number, b);
      show("result", evbuffer_remove_cb(buffers[b], on_change, entry));
      entry->handle = NULL;
      return;
    case 1:
      printf("remove_cb_entry %d b%d\n", number, b);
      show("result", evbuffer_remove_cb_entry(buffers[b], entry->handle));
      entry->handle = NULL;
      return;
    case 2:
      printf("disable %d b%d\n", number, b);
      show("result", evbuffer_cb_clear_flags(buffers[b], entry->handle, EVBUFFER_CB_ENABLED));
      return;
    default:
      printf("enable %d b%d\n", number, b);
      show("result", evbuffer_cb_set_flags(buffers[b], entry->handle, EVBUFFER_CB_ENABLED));
  }
}

static void op_setcb(void) {
  if (depth > 0) return;
  const int b = any();
  printf("setcb b%d\n", b);
  show("result", evbuffer_setcb(buffers[b], random_chance(50) ? on_old_change : NULL, NULL));
  for (int i = 0; i < kEntries; i++) entries[b][i].handle = NULL;
}

static void op_defer(void) {
  const int b = any();
  if (is_deferred[b] || random_chance(70)) return;
  is_deferred[b] = 1;
  printf("defer b%d\n", b);
  show("result", evbuffer_defer_callbacks(buffers[b], base));
}

static void op_loop(void) {
  if (depth > 0) return;
  printf("loop\n");
  event_base_loop(base, EVLOOP_NONBLOCK);
}

typedef struct Op {
  int weight;
  void (*run)(void);
} Op;

static const Op ops[] = {
    {10, op_add},    {6, op_reference}, {3, op_printf}, {2, op_iovec},    {12, op_take},
    {10, op_move},   {5, op_pullup},    {4, op_peek},   {5, op_search},   {5, op_line},
    {6, op_reserve}, {2, op_expand},    {4, op_freeze}, {6, op_transfer}, {4, op_multicast},
    {2, op_file},    {6, op_callback},  {1, op_setcb},  {1, op_defer},    {4, op_loop},
};

static void random_op(void) { RANDOM_ROW(ops)->run(); }

static void make_text(void) {
  static const char letters[] = "abab\r\nabc\n\rxa\r\n";
  for (int i = 0; i < kText; i++) {
    text[i] = random_chance(1) ? '\0' : letters[random_below((int)sizeof letters - 1)];
  }
  char name[] = "/tmp/spate-buffer-XXXXXX";
  file = mkstemp(name);
  unlink(name);
  if (write(file, text, kText) != kText) printf("no file\n");
}

static void run_script(void) {
  event_set_log_callback(on_log);
  make_text();
  has_multicast = random_chance(30);
  base = event_base_new();
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
  for (int b = 0; b < kBuffers; b++) {
    buffers[b] = evbuffer_new();
    for (int i = 0; i < kEntries; i++) entries[b][i] = (Entry){NULL, b, i};
  }
  const int steps = 20 + random_below(60);
  for (int step = 0; step < steps; step++) {
    fuel = kFuel;
    random_op();
    show_contents(any());
  }
  for (int b = 0; b < kBuffers; b++) show_contents(b);
  for (int b = 0; b < kBuffers; b++) evbuffer_setcb(buffers[b], NULL, NULL);
  event_base_loop(base, EVLOOP_NONBLOCK);
  for (int b = 0; b < kBuffers; b++) {
    printf("free b%d\n", b);
    evbuffer_free(buffers[b]);
  }
  if (!has_multicast) show("references left", references - given_back);
  event_base_free(base);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
