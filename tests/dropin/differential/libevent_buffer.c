// evbuffers, case by case: cases that random scripts (libevent_buffer_script.c) do not reach, or
// not often enough. The layout of bytes in memory differs between the libraries; it is printed
// where a case determines it.
#include <event2/buffer.h>
#include <event2/buffer_compat.h>
#include <limits.h>
#include <sys/socket.h>

#include "libevent_cases.h"

static void on_change(struct evbuffer* buffer, const struct evbuffer_cb_info* info, void* arg) {
  printf("  %s: %zu + %zu - %zu, now %zu\n", (const char*)arg, info->orig_size, info->n_added,
         info->n_deleted, evbuffer_get_length(buffer));
}

static void on_given_back(const void* data, size_t size, void* arg) {
  printf("  given back %s: %.*s\n", (const char*)arg, (int)size, (const char*)data);
}

static void lend(struct evbuffer* buffer, const char* text) {
  show("lend", evbuffer_add_reference(buffer, text, strlen(text), on_given_back, (void*)"it"));
}

static struct evbuffer* filled(const char* text) {
  struct evbuffer* buffer = evbuffer_new();
  evbuffer_add(buffer, text, strlen(text));
  return buffer;
}

static void show_buffer(const char* name, struct evbuffer* buffer) {
  char text[256];
  const ev_ssize_t size = evbuffer_copyout(buffer, text, sizeof text);
  printf("%s: %zu, %.*s\n", name, evbuffer_get_length(buffer), (int)(size > 0 ? size : 0), text);
}

static void run_empty(void) {
  struct evbuffer* empty = evbuffer_new();
  struct evbuffer* other = evbuffer_new();
  char bytes[8];
  show("length", (long)evbuffer_get_length(empty));
  show("contiguous", (long)evbuffer_get_contiguous_space(empty));
  show("drain", evbuffer_drain(empty, 5));
  show("remove", evbuffer_remove(empty, bytes, 5));
  show("copyout", evbuffer_copyout(empty, bytes, 5));
  show("pullup", evbuffer_pullup(empty, -1) != NULL);
  show("pullup 1", evbuffer_pullup(empty, 1) != NULL);
  show("write", evbuffer_write(empty, 1));
  show("add", evbuffer_add(empty, NULL, 0));
  show("prepend", evbuffer_prepend(empty, NULL, 0));
  show("add_buffer", evbuffer_add_buffer(empty, other));
  show("prepend_buffer", evbuffer_prepend_buffer(empty, other));
  show("remove_buffer", evbuffer_remove_buffer(empty, other, 5));
  show("add_buffer_reference", evbuffer_add_buffer_reference(empty, other));
  show("readln", evbuffer_readln(empty, NULL, EVBUFFER_EOL_ANY) != NULL);
  show("search", evbuffer_search(empty, "x", 1, NULL).pos);
  show("search nothing", evbuffer_search(empty, "", 0, NULL).pos);
  show("find", evbuffer_find(empty, (const unsigned char*)"x", 1) != NULL);
  show("printf", evbuffer_add_printf(empty, "%s", ""));
  show("iovec", (long)evbuffer_add_iovec(empty, NULL, 0));
  show("expand", evbuffer_expand(empty, 0));
  show("peek", evbuffer_peek(empty, -1, NULL, NULL, 0));
  evbuffer_free(empty);
  evbuffer_free(other);
}

static void run_frozen_front(void) {
  struct evbuffer* frozen = filled("abc\n");
  struct evbuffer* other = filled("other");
  struct evbuffer* empty = evbuffer_new();
  char bytes[8];
  size_t length = 9;
  show("freeze", evbuffer_freeze(frozen, 1));
  show("drain", evbuffer_drain(frozen, 1));
  show("drain 0", evbuffer_drain(frozen, 0));
  show("remove", evbuffer_remove(frozen, bytes, 1));
  show("remove 0", evbuffer_remove(frozen, bytes, 0));
  show("copyout", evbuffer_copyout(frozen, bytes, 1));
  show("copyout 0", evbuffer_copyout(frozen, bytes, 0));
  show("prepend", evbuffer_prepend(frozen, "x", 1));
  show("prepend 0", evbuffer_prepend(frozen, "x", 0));
  show("pullup", evbuffer_pullup(frozen, -1) != NULL);
  show("add_buffer", evbuffer_add_buffer(other, frozen));
  show("remove_buffer", evbuffer_remove_buffer(frozen, other, 1));
  show("prepend_buffer from it", evbuffer_prepend_buffer(other, frozen));
  show("prepend_buffer to it", evbuffer_prepend_buffer(frozen, other));
  show("prepend_buffer of nothing", evbuffer_prepend_buffer(frozen, empty));
  show("readln", evbuffer_readln(frozen, &length, EVBUFFER_EOL_LF) != NULL);
  show("its length", (long)length);
  show("write", evbuffer_write(frozen, 1));
  show("search", evbuffer_search(frozen, "b", 1, NULL).pos);
  show("add", evbuffer_add(frozen, "x", 1));
  show("add_buffer_reference", evbuffer_add_buffer_reference(other, frozen));
  show_buffer("other", other);
  show("unfreeze", evbuffer_unfreeze(frozen, 1));
  show_buffer("frozen", frozen);
  evbuffer_freeze(empty, 1);
  show("drain of an empty one", evbuffer_drain(empty, 3));
  show("remove of an empty one", evbuffer_remove(empty, bytes, 3));
}

static void run_frozen_back(void) {
  struct evbuffer* frozen = filled("abc");
  struct evbuffer* other = filled("other");
  struct evbuffer* empty = evbuffer_new();
  struct evbuffer_iovec extents[2] = {{(void*)"x", 1}};
  show("freeze", evbuffer_freeze(frozen, 0));
  show("add", evbuffer_add(frozen, "x", 1));
  show("add 0", evbuffer_add(frozen, "", 0));
  show("add_buffer", evbuffer_add_buffer(frozen, other));
  show("add_buffer of nothing", evbuffer_add_buffer(frozen, empty));
  show("remove_buffer", evbuffer_remove_buffer(other, frozen, 1));
  show("remove_buffer 0", evbuffer_remove_buffer(other, frozen, 0));
  show("remove_buffer of nothing", evbuffer_remove_buffer(empty, frozen, 5));
  lend(frozen, "x");
  show("printf", evbuffer_add_printf(frozen, "%d", 1));
  show("iovec", (long)evbuffer_add_iovec(frozen, extents, 1));
  show("expand", evbuffer_expand(frozen, 10000));
  show("reserve", evbuffer_reserve_space(frozen, 10, extents, 2));
  show("commit", evbuffer_commit_space(frozen, extents, 0));
  show("read", evbuffer_read(frozen, 0, 10));
  show("add_buffer_reference", evbuffer_add_buffer_reference(frozen, other));
  show("prepend", evbuffer_prepend(frozen, "pp", 2));
  show("drain", evbuffer_drain(frozen, 1));
  show_buffer("frozen", frozen);
}

static void run_itself(void) {
  struct evbuffer* buffer = filled("abc");
  evbuffer_add_cb(buffer, on_change, (void*)"change");
  show("add_buffer", evbuffer_add_buffer(buffer, buffer));
  show("remove_buffer", evbuffer_remove_buffer(buffer, buffer, 2));
  show("prepend_buffer", evbuffer_prepend_buffer(buffer, buffer));
  show("add_buffer_reference", evbuffer_add_buffer_reference(buffer, buffer));
  show_buffer("buffer", buffer);
}

static void on_change_drain(struct evbuffer* buffer, const struct evbuffer_cb_info* info,
                            void* arg) {
  on_change(buffer, info, arg);
  if (evbuffer_get_length(buffer) > 2) evbuffer_drain(buffer, 2);
  printf("  end of %s\n", (const char*)arg);
}

static void on_change_leave(struct evbuffer* buffer, const struct evbuffer_cb_info* info,
                            void* arg) {
  on_change(buffer, info, arg);
  show("  leaves", evbuffer_remove_cb(buffer, on_change_leave, arg));
}

static void run_callbacks_change_it(void) {
  struct evbuffer* buffer = evbuffer_new();
  evbuffer_add_cb(buffer, on_change, (void*)"one");
  evbuffer_add_cb(buffer, on_change_drain, (void*)"two");
  evbuffer_add_cb(buffer, on_change_leave, (void*)"three");
  evbuffer_add_cb(buffer, on_change, (void*)"four");
  evbuffer_add(buffer, "abcdef", 6);
  evbuffer_add(buffer, "gh", 2);
}

static void run_callbacks_are_deferred(void) {
  struct event_base* base = event_base_new();
  struct evbuffer* buffer = evbuffer_new();
  show("defer", evbuffer_defer_callbacks(buffer, base));
  evbuffer_add(buffer, "nobody hears", 12);
  show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  struct evbuffer_cb_entry* entry = evbuffer_add_cb(buffer, on_change, (void*)"change");
  evbuffer_add(buffer, "abc", 3);
  evbuffer_drain(buffer, 1);
  show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_add(buffer, "abc", 3);
  evbuffer_cb_clear_flags(buffer, entry, EVBUFFER_CB_ENABLED);
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_cb_set_flags(buffer, entry, EVBUFFER_CB_ENABLED);
  evbuffer_add_cb(buffer, on_change_drain, (void*)"drain");
  evbuffer_add(buffer, "abc", 3);
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_add(buffer, "abc", 3);
  evbuffer_setcb(buffer, NULL, NULL);
  evbuffer_add(buffer, "nobody is left", 14);
  evbuffer_add_cb(buffer, on_change, (void*)"too late");
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  evbuffer_add(buffer, "abc", 3);
  evbuffer_free(buffer);
  printf("freed\n");
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_free(base);
}

static void run_eol(void) {
  static const char bytes[] = "a\r\nb\nc\r\r\nd\0e\r";
  for (int style = 0; style < 6; style++) {
    struct evbuffer* buffer = evbuffer_new();
    for (size_t at = 0; at < sizeof bytes - 1; at++) {
      evbuffer_add_reference(buffer, bytes + at, 1, NULL, NULL);
    }
    char* line;
    size_t length = 0;
    while ((line = evbuffer_readln(buffer, &length, (enum evbuffer_eol_style)style)) != NULL) {
      printf("style %d: %zu, %s\n", style, length, line);
      free(line);
    }
    show("left", (long)evbuffer_get_length(buffer));
    evbuffer_free(buffer);
  }
  char* line = evbuffer_readline(filled("\r\n\r\nx\n"));
  show_text("readline", line);
}

static void run_eol_from(void) {
  struct evbuffer* buffer = filled("a\r\nb\r\r\nc");
  for (int style = 0; style < 5; style++) {
    for (size_t at = 0; at < 9; at++) {
      struct evbuffer_ptr start;
      size_t length = 0;
      evbuffer_ptr_set(buffer, &start, at, EVBUFFER_PTR_SET);
      const struct evbuffer_ptr found =
          evbuffer_search_eol(buffer, &start, &length, (enum evbuffer_eol_style)style);
      printf(" %d from %zu: %ld, %zu\n", style, at, (long)found.pos, length);
    }
  }
}

static struct evbuffer* in_three(void) {
  struct evbuffer* buffer = evbuffer_new();
  evbuffer_add_reference(buffer, "hello", 5, NULL, NULL);
  evbuffer_add_reference(buffer, " wor", 4, NULL, NULL);
  evbuffer_add_reference(buffer, "ld hello", 8, NULL, NULL);
  return buffer;
}

static void run_search(void) {
  static const char* const words[] = {"hello", "lo wo", "world hello", "world hellox", "", "l"};
  struct evbuffer* buffer = in_three();
  for (size_t word = 0; word < 6; word++) {
    for (size_t from = 0; from < 18; from++) {
      struct evbuffer_ptr start;
      struct evbuffer_ptr end;
      evbuffer_ptr_set(buffer, &start, from, EVBUFFER_PTR_SET);
      printf("%s from %zu:", words[word], from);
      for (size_t until = 0; until < 18; until++) {
        evbuffer_ptr_set(buffer, &end, until, EVBUFFER_PTR_SET);
        printf(" %ld",
               (long)evbuffer_search_range(buffer, words[word], strlen(words[word]), &start, &end)
                   .pos);
      }
      printf(" %ld\n", (long)evbuffer_search(buffer, words[word], strlen(words[word]), &start).pos);
    }
  }
}

static void show_set(struct evbuffer* buffer, struct evbuffer_ptr* pointer, size_t position,
                     enum evbuffer_ptr_how how) {
  const int result = evbuffer_ptr_set(buffer, pointer, position, how);
  printf("%s %zu: %d, at %ld\n", how == EVBUFFER_PTR_SET ? "set" : "add", position, result,
         (long)pointer->pos);
}

static void run_pointers(void) {
  struct evbuffer* buffer = in_three();
  struct evbuffer_ptr pointer;
  show_set(buffer, &pointer, 17, EVBUFFER_PTR_SET);
  show_set(buffer, &pointer, 0, EVBUFFER_PTR_ADD);
  show_set(buffer, &pointer, 1, EVBUFFER_PTR_ADD);
  show_set(buffer, &pointer, 1, EVBUFFER_PTR_ADD);
  show_set(buffer, &pointer, 18, EVBUFFER_PTR_SET);
  show_set(buffer, &pointer, 3, EVBUFFER_PTR_SET);
  show_set(buffer, &pointer, 5, EVBUFFER_PTR_ADD);
  show_set(buffer, &pointer, SIZE_MAX - 2, EVBUFFER_PTR_ADD);
  pointer = evbuffer_search(buffer, "x", 1, NULL);
  show("search from nowhere", evbuffer_search(buffer, "h", 1, &pointer).pos);
  show("eol from nowhere", evbuffer_search_eol(buffer, &pointer, NULL, EVBUFFER_EOL_LF).pos);
  show("peek from nowhere", evbuffer_peek(buffer, -1, &pointer, NULL, 0));
}

static void run_peek(void) {
  struct evbuffer* buffer = in_three();
  struct evbuffer_iovec extents[5];
  for (long length = -1; length < 20; length++) {
    for (int count = 0; count < 5; count++) {
      for (size_t at = 0; at < 18; at += 4) {
        struct evbuffer_ptr start;
        evbuffer_ptr_set(buffer, &start, at, EVBUFFER_PTR_SET);
        memset(extents, 0, sizeof extents);
        printf("%ld %d %zu: %d", length, count, at,
               evbuffer_peek(buffer, length, &start, count ? extents : NULL, count));
        for (int i = 0; i < 5; i++) printf(" %zu", extents[i].iov_len);
        printf("\n");
      }
    }
  }
}

static void run_reserve(void) {
  struct evbuffer* buffer = evbuffer_new();
  struct evbuffer_iovec extents[3];
  evbuffer_add_cb(buffer, on_change, (void*)"change");
  show("of none", evbuffer_reserve_space(buffer, 0, extents, 1));
  show("of less", evbuffer_reserve_space(buffer, -1, extents, 1));
  show("without extents", evbuffer_reserve_space(buffer, 10, extents, 0));
  show("of too much", evbuffer_reserve_space(buffer, EV_SSIZE_MAX, extents, 2));
  show("of ten", evbuffer_reserve_space(buffer, 10, extents, 1));
  extents[0].iov_len = 0;
  show("commit of nothing", evbuffer_commit_space(buffer, extents, 1));
  show("again", evbuffer_reserve_space(buffer, 10, extents, 1));
  memcpy(extents[0].iov_base, "0123456789", 10);
  extents[0].iov_len = 10;
  show("commit", evbuffer_commit_space(buffer, extents, 1));
  show("once more", evbuffer_commit_space(buffer, extents, 1));
  show("no extents", evbuffer_commit_space(buffer, extents, 0));
  evbuffer_reserve_space(buffer, 10, extents, 1);
  evbuffer_add(buffer, "x", 1);
  show("after an addition", evbuffer_commit_space(buffer, extents, 1));
  evbuffer_reserve_space(buffer, 10, extents, 1);
  extents[0].iov_len += 1;
  show("more than reserved", evbuffer_commit_space(buffer, extents, 1));
  extents[0].iov_len = 1;
  extents[1] = extents[2] = extents[0];
  show("one twice", evbuffer_commit_space(buffer, extents, 2));
  show("three", evbuffer_commit_space(buffer, extents, 3));
  show_buffer("buffer", buffer);
}

static void run_references(void) {
  struct evbuffer* one = evbuffer_new();
  struct evbuffer* other = evbuffer_new();
  evbuffer_add_cb(one, on_change, (void*)"one");
  lend(one, "abcdef");
  lend(one, "ghi");
  show("pullup", evbuffer_pullup(one, 7) != NULL);
  show("drain", evbuffer_drain(one, 6));
  show("pullup", evbuffer_pullup(one, -1) != NULL);
  lend(one, "lmn");
  show("add_buffer_reference", evbuffer_add_buffer_reference(other, one));
  show("drain", evbuffer_drain(one, 100));
  show_buffer("other", other);
  show("of a view", evbuffer_add_buffer_reference(one, other));
  show("drain", evbuffer_drain(other, 100));
  evbuffer_free(one);
  evbuffer_free(other);
}

static void run_views_do_not_change(void) {
  struct evbuffer* source = filled("base");
  struct evbuffer* view = evbuffer_new();
  struct evbuffer* second = evbuffer_new();
  show("view", evbuffer_add_buffer_reference(view, source));
  evbuffer_add(source, "more", 4);
  evbuffer_prepend(source, "pre", 3);
  evbuffer_add(view, "cc", 2);
  evbuffer_prepend(view, "pc", 2);
  evbuffer_drain(source, 5);
  evbuffer_prepend(source, "XX", 2);
  show("second", evbuffer_add_buffer_reference(second, source));
  show_buffer("source", source);
  show_buffer("view", view);
  evbuffer_free(source);
  show_buffer("view", view);
  show_buffer("second", second);
  show("pullup", evbuffer_pullup(view, -1) != NULL);
  show("of a view no more", evbuffer_add_buffer_reference(second, view));
  show_buffer("second", second);
}

static int open_file(void) {
  char name[] = "/tmp/spate-buffer-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  put(file, "0123456789abcdefghij");
  return file;
}

static void on_segment_end(const struct evbuffer_file_segment* segment, int flags, void* arg) {
  (void)segment;
  printf("  segment ends: %d, %s\n", flags, (const char*)arg);
}

static void run_segment(unsigned flags) {
  const int file = open_file();
  struct evbuffer* one = evbuffer_new();
  struct evbuffer* other = evbuffer_new();
  printf("flags %u\n", flags);
  struct evbuffer_file_segment* segment = evbuffer_file_segment_new(file, 2, 10, flags);
  evbuffer_file_segment_add_cleanup_cb(segment, on_segment_end, (void*)"argument");
  show("all of it", evbuffer_add_file_segment(one, segment, 0, -1));
  show("a part", evbuffer_add_file_segment(one, segment, 3, 2));
  show("its end", evbuffer_add_file_segment(other, segment, 8, 2));
  show_buffer("one", one);
  show_buffer("other", other);
  show("views of files", evbuffer_add_buffer_reference(other, one));
  evbuffer_file_segment_free(segment);
  evbuffer_free(one);
  evbuffer_drain(other, 1);
  show("open", fcntl(file, F_GETFD) >= 0);
  evbuffer_free(other);
  show("open", fcntl(file, F_GETFD) >= 0);
}

static void run_segments(void) {
  for (unsigned flags = 0; flags < 16; flags++) run_segment(flags);
}

static void run_bad_segments(void) {
  event_set_log_callback(on_log);
  const int file = open_file();
  show("length -2", evbuffer_file_segment_new(file, 0, -2, 0) != NULL);
  show("offset -1", evbuffer_file_segment_new(file, -1, 2, 0) != NULL);
  show("no file", evbuffer_file_segment_new(-1, 0, -1, 0) != NULL);
  show("too far", evbuffer_file_segment_new(file, LONG_MAX, 2, 0) != NULL);
  show("too long", evbuffer_file_segment_new(file, 2, LONG_MAX, 0) != NULL);
  show("short", evbuffer_file_segment_new(file, 15, 10, 6) != NULL);
  struct evbuffer* buffer = evbuffer_new();
  show("nothing", evbuffer_add_file(buffer, file, 0, 0));
  show("open", fcntl(file, F_GETFD) >= 0);
  int ends[2];
  if (pipe(ends) != 0) return;
  show("a pipe", evbuffer_add_file(buffer, ends[0], 0, -1));
  show("a pipe", evbuffer_add_file(buffer, ends[0], 0, 5));
  show("open", fcntl(ends[0], F_GETFD) >= 0);
  evbuffer_freeze(buffer, 0);
  show("frozen", evbuffer_add_file(buffer, file, 0, -1));
  show("open", fcntl(file, F_GETFD) >= 0);
}

static void run_sendfile(void) {
  struct evbuffer* buffer = evbuffer_new();
  int ends[2];
  open_pair(ends);
  show("flags", evbuffer_set_flags(buffer, EVBUFFER_FLAG_DRAINS_TO_FD));
  show("file", evbuffer_add_file(buffer, open_file(), 3, 8));
  evbuffer_add(buffer, "own", 3);
  evbuffer_drain(buffer, 2);
  show("length", (long)evbuffer_get_length(buffer));
  show("write", evbuffer_write(buffer, ends[1]));
  show("write", evbuffer_write(buffer, ends[1]));
  show("write", evbuffer_write(buffer, ends[1]));
  char text[32] = "";
  show("got", (long)read(ends[0], text, sizeof text - 1));
  show_text("it", text);
  const int file = open_file();
  show("file", evbuffer_add_file(buffer, file, 3, 8));
  show("cut", ftruncate(file, 5));
  show("write", evbuffer_write(buffer, ends[1]));
  show("write", evbuffer_write(buffer, ends[1]));
  show("length", (long)evbuffer_get_length(buffer));
}

static void run_limits(void) {
  struct evbuffer* buffer = filled("x");
  char bytes[8] = "";
  show("expand", evbuffer_expand(buffer, SIZE_MAX));
  show("expand", evbuffer_expand(buffer, SIZE_MAX / 2 + 1));
  show("add", evbuffer_add(buffer, bytes, SIZE_MAX / 2));
  show("prepend", evbuffer_prepend(buffer, bytes, SIZE_MAX));
  show("drain", evbuffer_drain(buffer, SIZE_MAX));
  show("length", (long)evbuffer_get_length(buffer));
  show("large reference", evbuffer_add_reference(buffer, bytes, SIZE_MAX / 2, NULL, NULL));
  show("add", evbuffer_add(buffer, "x", 1));
}

static void run_transfer(void) {
  struct evbuffer* buffer = filled("some bytes");
  int ends[2];
  open_pair(ends);
  show("write 4", evbuffer_write_atmost(buffer, ends[1], 4));
  show("write 0", evbuffer_write_atmost(buffer, ends[1], 0));
  show("write -5", evbuffer_write_atmost(buffer, ends[1], -5));
  show("read 0", evbuffer_read(buffer, ends[0], 0));
  show("read 3", evbuffer_read(buffer, ends[0], 3));
  show("read -1", evbuffer_read(buffer, ends[0], -1));
  show("read nothing", evbuffer_read(buffer, ends[0], -1));
  show_text("why", strerror(errno));
  show_buffer("buffer", buffer);
  show("write nowhere", evbuffer_write(buffer, 999));
  show_text("why", strerror(errno));
  show("read nowhere", evbuffer_read(buffer, 999, -1));
  show_text("why", strerror(errno));
  close(ends[1]);
  show("read the end", evbuffer_read(buffer, ends[0], -1));
  show_buffer("buffer", buffer);
}

static void run_locks(void) {
  struct evbuffer* buffer = evbuffer_new();
  show("without threads", evbuffer_enable_locking(buffer, NULL));
  evbuffer_lock(buffer);
  evbuffer_unlock(buffer);
  evthread_use_pthreads();
  show("with", evbuffer_enable_locking(buffer, NULL));
  show("twice", evbuffer_enable_locking(buffer, NULL));
  evbuffer_lock(buffer);
  evbuffer_add(buffer, "x", 1);
  evbuffer_unlock(buffer);
  show("length", (long)evbuffer_get_length(buffer));
  evbuffer_free(buffer);
}

static const Case cases[] = {
    {"empty", run_empty},
    {"frozen front", run_frozen_front},
    {"frozen back", run_frozen_back},
    {"itself", run_itself},
    {"callbacks change it", run_callbacks_change_it},
    {"callbacks are deferred", run_callbacks_are_deferred},
    {"eol", run_eol},
    {"eol from", run_eol_from},
    {"search", run_search},
    {"pointers", run_pointers},
    {"peek", run_peek},
    {"reserve", run_reserve},
    {"references", run_references},
    {"views do not change", run_views_do_not_change},
    {"segments", run_segments},
    {"bad segments", run_bad_segments},
    {"sendfile", run_sendfile},
    {"limits", run_limits},
    {"transfer", run_transfer},
    {"locks", run_locks},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
