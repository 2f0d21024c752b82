// Parts of files, and the functions of evbuffers that libevent_arguments_buffer.c does not have,
// with every argument that a program might pass: see arguments.h.
//
// Left out are the differences that docs/drop-in.md names: parts up to the end of a file, beyond
// its end, and outside of their segment.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/buffer_compat.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "arguments.h"
#include "libevent_cases.h"

enum { kFileSize = 20 };

static struct evbuffer* subject;
static struct evbuffer_file_segment* segment;
static int pair[2];

// ---- domains

typedef enum Kind { kNoBuffer, kEmpty, kText, kNul, kLong, kFrontFrozen, kBackFrozen, kToFd } Kind;

static const Value kBufferValues[] = {
    {"NULL", kNoBuffer},
    {"empty", kEmpty},
    {"text", kText},
    {"with a NUL", kNul},
    {"long", kLong},
    {"frozen", kFrontFrozen},
    {"frozen at the back", kBackFrozen},
    {"drains to fd", kToFd},
};
static const Domain kBuffers = DOMAIN_OF(kBufferValues);

static const Value kFileValues[] = {{"file", 0},     {"read only", 1}, {"pipe", 2},     {"-1", -1},
                                    {"closed", 400}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kFiles = DOMAIN_OF(kFileValues);

static const Value kOffsetValues[] = {
    {"0", 0}, {"5", 5}, {"15", 15}, {"-1", -1}, {"min", LONG_MIN}};
static const Domain kOffsets = DOMAIN_OF(kOffsetValues);

static const Value kLengthValues[] = {{"1", 1}, {"5", 5}, {"-2", -2}, {"min", LONG_MIN}};
static const Domain kLengths = DOMAIN_OF(kLengthValues);

static const Value kFlagValues[] = {
    {"0", 0},
    {"CLOSE_ON_FREE", EVBUF_FS_CLOSE_ON_FREE},
    {"DISABLE_MMAP", EVBUF_FS_DISABLE_MMAP},
    {"DISABLE_SENDFILE", EVBUF_FS_DISABLE_SENDFILE},
    {"DISABLE_LOCKING", EVBUF_FS_DISABLE_LOCKING},
    {"all", 15},
    {"0x1000", 0x1000},
    {"2^32-1", UINT_MAX},
};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

// ---- the world

static struct evbuffer* make_buffer(long kind) {
  if (kind == kNoBuffer) return NULL;
  struct evbuffer* buffer = evbuffer_new();
  if (kind == kNul) evbuffer_add(buffer, "a\0b\n\n", 5);
  if (kind == kToFd) evbuffer_set_flags(buffer, EVBUFFER_FLAG_DRAINS_TO_FD);
  if (kind == kLong) {
    for (int i = 0; i < 3000; i++) evbuffer_add(buffer, "abcdefg", 7);
    evbuffer_add(buffer, "\r\n.", 3);
  }
  if (kind == kText || kind == kFrontFrozen || kind == kBackFrozen) {
    evbuffer_add(buffer, "first\nsecond\r\n", 14);
  }
  if (kind == kFrontFrozen) evbuffer_freeze(buffer, 1);
  if (kind == kBackFrozen) evbuffer_freeze(buffer, 0);
  return buffer;
}

static void open_buffer(long kind) {
  event_set_log_callback(on_log);
  signal(SIGPIPE, SIG_IGN);
  subject = make_buffer(kind);
  open_pair(pair);
  errno = 0;
}

static int open_file(long kind) {
  char name[] = "/tmp/spate-arguments-XXXXXX";
  int ends[2];
  if (kind == 2) return pipe(ends) == 0 ? ends[0] : -1;
  if (kind < 0 || kind > 2) return (int)kind;
  int file = mkstemp(name);
  if (write(file, "text that is there\r\n", kFileSize) != kFileSize) printf("no file\n");
  if (kind == 1) file = open(name, O_RDONLY);
  unlink(name);
  return file;
}

static void print_bytes(const char* bytes, long size) {
  printf("%ld bytes:", size);
  for (long i = 0; i < size && i < 40; i++) printf(" %02x", (unsigned char)bytes[i]);
  printf("\n");
}

static void print_buffer(void) {
  char bytes[64];
  if (subject == NULL) return;
  show("length", (long)evbuffer_get_length(subject));
  if (evbuffer_get_length(subject) < sizeof bytes) {
    print_bytes(bytes, (long)evbuffer_copyout(subject, bytes, sizeof bytes));
  }
}

static void close_buffer(void) {
  print_buffer();
  if (subject == NULL) return;
  show("add", evbuffer_add(subject, "more", 4));
  show("drain", evbuffer_drain(subject, 3));
  evbuffer_free(subject);
}

// Sends the buffer's file, and prints it.
static void send_buffer(void) {
  char bytes[64];
  if (subject == NULL) return;
  for (int i = 0; i < 3 && evbuffer_get_length(subject) > 0; i++) {
    show("sent", evbuffer_write(subject, pair[0]));
    const long got = (long)read(pair[1], bytes, sizeof bytes);
    if (got > 0) print_bytes(bytes, got);
  }
}

static void on_cleanup(const struct evbuffer_file_segment* of, int flags, void* argument) {
  printf("  cleanup %d flags %#x argument %d\n", of == segment, (unsigned)flags, argument == NULL);
}

// ---- parts of files

static void call_segment_new(const long* at) {
  open_buffer(kEmpty);
  const int fd = open_file(at[0]);
  segment = evbuffer_file_segment_new(fd, at[1], at[2], (unsigned)at[3]);
  show("made", segment != NULL);
  if (segment == NULL) return;
  evbuffer_file_segment_add_cleanup_cb(segment, on_cleanup, NULL);
  show("added", evbuffer_add_file_segment(subject, segment, 0, at[2]));
  evbuffer_file_segment_free(segment);
  show("length", (long)evbuffer_get_length(subject));
  send_buffer();
  evbuffer_free(subject);
  show("open", fcntl(fd, F_GETFD) >= 0);
}

static void call_add_segment(const long* at) {
  open_buffer(at[0]);
  segment = at[1] ? evbuffer_file_segment_new(open_file(0), 0, kFileSize, (unsigned)at[4]) : NULL;
  show("added", evbuffer_add_file_segment(subject, segment, at[2], at[3]));
  show("again", evbuffer_add_file_segment(subject, segment, at[2], at[3]));
  evbuffer_file_segment_free(segment);
  if (at[0] == kEmpty || at[0] == kToFd) send_buffer();
  if (at[0] != kToFd) close_buffer();
}

static void call_segment_free(const long* at) {
  open_buffer(kEmpty);
  segment = at[0] ? evbuffer_file_segment_new(open_file(0), 0, 5, (unsigned)at[2]) : NULL;
  evbuffer_file_segment_add_cleanup_cb(segment, at[1] ? on_cleanup : NULL, NULL);
  evbuffer_file_segment_free(segment);
  close_buffer();
}

// ---- lines, and searches

static void call_readline(const long* at) {
  open_buffer(at[0]);
  for (long i = 0; i <= at[1]; i++) {
    char* line = evbuffer_readline(subject);
    show_text("line", line);
    free(line);
  }
  close_buffer();
}

static void call_find(const long* at) {
  static const char kTexts[][8] = {"", "", "second", "\r\n", "defga", "absent"};
  open_buffer(at[0]);
  const unsigned char* found = evbuffer_find(
      subject, at[1] == 0 ? NULL : (const unsigned char*)kTexts[at[1]], (size_t)at[2]);
  show("found", found != NULL);
  if (found != NULL) print_bytes((const char*)found, 1);
  close_buffer();
}

// ---- writing and copying

static void call_write(const long* at) {
  char bytes[32];
  open_buffer(at[0]);
  show("result", evbuffer_write(subject, at[1] == 0 ? pair[0] : (int)at[1]));
  show("arrived", (long)read(pair[1], bytes, sizeof bytes));
  close_buffer();
}

static void call_copyout(const long* at) {
  char bytes[8192] = "untouched";
  open_buffer(at[0]);
  const long copied = (long)evbuffer_copyout(subject, at[1] ? bytes : NULL, (size_t)at[2]);
  show("copied", copied);
  print_bytes(bytes, 10);
  close_buffer();
}

static int add_formatted(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = evbuffer_add_vprintf(subject, format, arguments);
  va_end(arguments);
  return result;
}

static void call_add_vprintf(const long* at) {
  static const char* const kFormats[] = {NULL, "", "%s", "%d-%d", "%.*s", "%8000d", "%n"};
  int count = 0;
  open_buffer(at[0]);
  show("result", at[1] == 2   ? add_formatted(kFormats[2], at[2] ? "text" : "")
                 : at[1] == 4 ? add_formatted(kFormats[4], (int)at[2], "text")
                 : at[1] == 6 ? add_formatted(kFormats[6], &count)
                              : add_formatted(kFormats[at[1]], (int)at[2], INT_MIN));
  if (at[1] != 5) close_buffer();
}

// ---- settings

static void on_old_change(struct evbuffer* buffer, size_t before, size_t after, void* arg) {
  (void)arg;
  printf("  changed: %d, %zu to %zu\n", buffer == subject, before, after);
}

static void call_new(const long* at) {
  open_buffer(kEmpty);
  struct evbuffer* other = evbuffer_new();
  evbuffer_setcb(other, at[0] ? on_old_change : NULL, NULL);
  show("length", (long)EVBUFFER_LENGTH(other));
  show("data", EVBUFFER_DATA(other) != NULL);
  evbuffer_add(other, "ab", 2);
  show("length", (long)EVBUFFER_LENGTH(other));
  print_bytes((const char*)EVBUFFER_DATA(other), 2);
  evbuffer_free(other);
}

static void call_data(const long* at) {
  open_buffer(at[0]);
  show("length", (long)EVBUFFER_LENGTH(subject));
  show("data", EVBUFFER_DATA(subject) != NULL);
  close_buffer();
}

// ---- the table

static const Value kFdValues[] = {{"-1", -1}, {"open", 0}, {"9999", 9999}, {"min", INT_MIN}};
static const Domain kFds = DOMAIN_OF(kFdValues);

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

static const Value kNeedleValues[] = {{"NULL", 0}, {"\"\"", 1},  {"second", 2},
                                      {"CRLF", 3}, {"defga", 4}, {"absent", 5}};
static const Domain kNeedles = DOMAIN_OF(kNeedleValues);

static const Value kNeedleSizeValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"5", 5}};
static const Domain kNeedleSizes = DOMAIN_OF(kNeedleSizeValues);

static const Value kCopyValues[] = {{"0", 0}, {"1", 1}, {"14", 14}, {"15", 15}, {"8192", 8192}};
static const Domain kCopies = DOMAIN_OF(kCopyValues);

static const Value kFormatValues[] = {{"NULL", 0}, {"\"\"", 1}, {"text", 2}, {"numbers", 3},
                                      {"part", 4}, {"long", 5}, {"count", 6}};
static const Domain kFormats = DOMAIN_OF(kFormatValues);

static const Value kPartValues[] = {{"0", 0}, {"5", 5}, {"20", 20}};
static const Domain kParts = DOMAIN_OF(kPartValues);

static const Value kFewLengthValues[] = {{"0", 0}, {"5", 5}};
static const Domain kFewLengths = DOMAIN_OF(kFewLengthValues);

static const Value kFewFlagValues[] = {{"0", 0},
                                       {"DISABLE_MMAP", EVBUF_FS_DISABLE_MMAP},
                                       {"DISABLE_SENDFILE", EVBUF_FS_DISABLE_SENDFILE}};
static const Domain kFewFlags = DOMAIN_OF(kFewFlagValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evbuffer_file_segment_new", call_segment_new, {&kFiles, &kOffsets, &kLengths, &kFlags}},
      {"evbuffer_add_file_segment",
       call_add_segment,
       {&kBuffers, &kBooleans, &kParts, &kFewLengths, &kFewFlags}},
      {"evbuffer_file_segment_free", call_segment_free, {&kBooleans, &kBooleans, &kFlags}},
      {"evbuffer_readline", call_readline, {&kBuffers, &kSmall}},
      {"evbuffer_find", call_find, {&kBuffers, &kNeedles, &kNeedleSizes}},
      {"evbuffer_write", call_write, {&kBuffers, &kFds}},
      {"evbuffer_copyout", call_copyout, {&kBuffers, &kBooleans, &kCopies}},
      {"evbuffer_add_vprintf", call_add_vprintf, {&kBuffers, &kFormats, &kNumbers}},
      {"evbuffer_new", call_new, {&kBooleans}},
      {"EVBUFFER_DATA", call_data, {&kBuffers}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
