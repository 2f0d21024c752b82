// Tagged data with every argument that a program might pass: null pointers, any number as a tag,
// and bytes that are no tags. libevent_tags.c has random ones.
//
// Left out are the differences that docs/drop-in.md names: tags in a buffer that is frozen at the
// front.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/tag.h>
#include <event2/tag_compat.h>

#include "arguments.h"
#include "libevent_cases.h"

static char room[6000];
static struct evbuffer* subject;

// ---- domains

typedef enum Kind {
  kNoBuffer,
  kEmpty,
  kInteger,
  kLargeInteger,
  kText,
  kTime,
  kNested,
  kEmptyPayload,
  kTruncated,
  kOnlyTag,
  kHuge,
  kEndlessTag,
  kText2,
  kFrozenBack
} Kind;

static const Value kBufferValues[] = {
    {"NULL", kNoBuffer},       {"empty", kEmpty},
    {"integer", kInteger},     {"large integer", kLargeInteger},
    {"text", kText},           {"time", kTime},
    {"nested", kNested},       {"empty payload", kEmptyPayload},
    {"truncated", kTruncated}, {"only a tag", kOnlyTag},
    {"huge length", kHuge},    {"endless tag", kEndlessTag},
    {"no tag", kText2},        {"frozen at the back", kFrozenBack},
};
static const Domain kBuffers = DOMAIN_OF(kBufferValues);

static const Value kTargetValues[] = {
    {"NULL", kNoBuffer}, {"empty", kEmpty}, {"text", kText2}, {"frozen at the back", kFrozenBack}};
static const Domain kTargets = DOMAIN_OF(kTargetValues);
static const Domain kFewTargets = {kTargetValues, 2};

static const Value kTagValues[] = {
    {"0", 0},
    {"1", 1},
    {"127", 127},
    {"128", 128},
    {"2^28", 1L << 28},
    {"2^31-1", INT_MAX},
    {"2^31", 1L + INT_MAX},
    {"2^32-1", UINT_MAX},
};
static const Domain kTags = DOMAIN_OF(kTagValues);

static const Value kIntegerValues[] = {
    {"0", 0},           {"1", 1},           {"15", 15},
    {"16", 16},         {"2^31", 1L << 31}, {"2^32-1", UINT_MAX},
    {"2^32", 1L << 32}, {"2^60", 1L << 60}, {"max", LONG_MAX},
    {"2^64-1", -1},
};
static const Domain kIntegers = DOMAIN_OF(kIntegerValues);

// Sizes of the memory of the program. The original copies all of these bytes.
static const Value kLengthValues[] = {{"0", 0}, {"1", 1}, {"5", 5}, {"5000", 5000}};
static const Domain kLengths = DOMAIN_OF(kLengthValues);

static const char* const kTexts[] = {NULL, "", "a", "a text of some length", room};
static const Value kTextValues[] = {{"NULL", 0}, {"\"\"", 1}, {"a", 2}, {"some", 3}, {"long", 4}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);

static struct timeval kTimes[] = {{0, 0},        {1, 999999},         {-1, -1},
                                  {1L << 32, 1}, {INT_MAX, 1L << 32}, {LONG_MIN, LONG_MAX}};
static const Value kTimeValues[] = {{"NULL", -1},  {"0", 0},       {"1s+999999us", 1}, {"-1 -1", 2},
                                    {"2^32 s", 3}, {"2^32 us", 4}, {"min max", 5}};
static const Domain kTimeDomain = DOMAIN_OF(kTimeValues);

// ---- the world

static void fill(struct evbuffer* buffer, long kind) {
  struct evbuffer* inner = evbuffer_new();
  switch (kind) {
    case kInteger:
    case kFrozenBack:
      evtag_marshal_int(buffer, 1, 300);
      break;
    case kLargeInteger:
      evtag_marshal_int64(buffer, 1, 1ULL << 40);
      break;
    case kText:
      evtag_marshal_string(buffer, 1, "text");
      break;
    case kTime:
      evtag_marshal_timeval(buffer, 1, &kTimes[1]);
      break;
    case kNested:
      evtag_marshal_int(inner, 7, 7);
      evtag_marshal_buffer(buffer, 1, inner);
      break;
    case kEmptyPayload:
      evtag_marshal(buffer, 1, "", 0);
      break;
    case kTruncated:
      evbuffer_add(buffer, "\x01\x15ten", 5);
      break;
    case kOnlyTag:
      evbuffer_add(buffer, "\x01", 1);
      break;
    case kHuge:
      evbuffer_add(buffer, "\x01\x7f\xff\xff\xff\xff", 6);
      break;
    case kEndlessTag:
      evbuffer_add(buffer, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
      break;
    case kText2:
      evbuffer_add(buffer, "plain text", 10);
      break;
    default:
      break;
  }
  evbuffer_free(inner);
}

static struct evbuffer* make_buffer(long kind) {
  if (kind == kNoBuffer) return NULL;
  struct evbuffer* buffer = evbuffer_new();
  fill(buffer, kind);
  if (kind == kFrozenBack) evbuffer_freeze(buffer, 0);
  return buffer;
}

static void open_buffer(long kind) {
  event_set_log_callback(on_log);
  memset(room, 'x', sizeof room - 1);
  subject = make_buffer(kind);
}

static void print_buffer(const char* what, struct evbuffer* buffer) {
  static unsigned char bytes[7000];
  if (buffer == NULL) return;
  const ev_ssize_t size = evbuffer_copyout(buffer, bytes, sizeof bytes);
  unsigned sum = 7;
  printf("%s: %ld", what, (long)size);
  for (ev_ssize_t i = 0; i < size; i++) {
    if (i < 24) printf(" %02x", bytes[i]);
    sum = sum * 31 + bytes[i];
  }
  printf(" sum %u\n", sum);
}

static void close_buffer(void) {
  print_buffer("subject", subject);
  if (subject == NULL) return;
  show("add", evbuffer_add(subject, "more", 4));
  evbuffer_free(subject);
}

// ---- writing

static void call_marshal(const long* at) {
  open_buffer(at[0]);
  evtag_init();
  evtag_marshal(subject, (ev_uint32_t)at[1], at[2] ? room : NULL, (ev_uint32_t)at[3]);
  close_buffer();
}

static void call_marshal_buffer(const long* at) {
  open_buffer(at[0]);
  struct evbuffer* payload = at[2] == -1 ? subject : make_buffer(at[2]);
  evtag_marshal_buffer(subject, (ev_uint32_t)at[1], payload);
  if (payload != subject) print_buffer("payload", payload);
  close_buffer();
}

static void call_encode(const long* at) {
  open_buffer(at[0]);
  if (at[2] == 0) evtag_encode_int(subject, (ev_uint32_t)at[1]);
  if (at[2] == 1) evtag_encode_int64(subject, (ev_uint64_t)at[1]);
  if (at[2] == 2) encode_int(subject, (ev_uint32_t)at[1]);
  if (at[2] == 3) encode_int64(subject, (ev_uint64_t)at[1]);
  close_buffer();
}

static void call_marshal_int(const long* at) {
  open_buffer(at[0]);
  if (at[3]) evtag_marshal_int64(subject, (ev_uint32_t)at[1], (ev_uint64_t)at[2]);
  if (!at[3]) evtag_marshal_int(subject, (ev_uint32_t)at[1], (ev_uint32_t)at[2]);
  close_buffer();
}

static void call_marshal_string(const long* at) {
  open_buffer(at[0]);
  evtag_marshal_string(subject, (ev_uint32_t)at[1], kTexts[at[2]]);
  close_buffer();
}

static void call_marshal_timeval(const long* at) {
  open_buffer(at[0]);
  evtag_marshal_timeval(subject, (ev_uint32_t)at[1], at[2] < 0 ? NULL : &kTimes[at[2]]);
  close_buffer();
}

// ---- reading

static void call_unmarshal(const long* at) {
  ev_uint32_t tag = 77;
  open_buffer(at[0]);
  struct evbuffer* target = at[2] == -1 ? subject : make_buffer(at[2]);
  show("result", evtag_unmarshal(subject, at[1] ? &tag : NULL, target));
  show("tag", tag);
  if (target != subject) print_buffer("target", target);
  close_buffer();
}

static void call_look(const long* at) {
  static int (*const looks[])(struct evbuffer*, ev_uint32_t*) = {
      evtag_peek, evtag_peek_length, evtag_payload_length, evtag_unmarshal_header};
  ev_uint32_t number = 77;
  open_buffer(at[0]);
  show("result", looks[at[2]](subject, at[1] ? &number : NULL));
  show("number", number);
  close_buffer();
}

static void call_consume(const long* at) {
  open_buffer(at[0]);
  show("result", evtag_consume(subject));
  show("again", evtag_consume(subject));
  close_buffer();
}

static void call_unmarshal_int(const long* at) {
  ev_uint32_t number = 77;
  ev_uint64_t large = 77;
  open_buffer(at[0]);
  show("result", at[3] ? evtag_unmarshal_int64(subject, (ev_uint32_t)at[1], at[2] ? &large : NULL)
                       : evtag_unmarshal_int(subject, (ev_uint32_t)at[1], at[2] ? &number : NULL));
  printf("%u %llu\n", number, (unsigned long long)large);
  close_buffer();
}

static void call_unmarshal_fixed(const long* at) {
  char bytes[6000] = "untouched";
  open_buffer(at[0]);
  show("result",
       evtag_unmarshal_fixed(subject, (ev_uint32_t)at[1], at[2] ? bytes : NULL, (size_t)at[3]));
  for (int i = 0; i < 10; i++) printf(" %02x", (unsigned char)bytes[i]);
  printf("\n");
  close_buffer();
}

static void call_unmarshal_string(const long* at) {
  char* text = NULL;
  open_buffer(at[0]);
  const int result = evtag_unmarshal_string(subject, (ev_uint32_t)at[1], at[2] ? &text : NULL);
  show("result", result);
  show_text("text", result == 0 ? text : NULL);
  close_buffer();
}

static void call_unmarshal_timeval(const long* at) {
  struct timeval time = {-7, -7};
  open_buffer(at[0]);
  show("result", evtag_unmarshal_timeval(subject, (ev_uint32_t)at[1], at[2] ? &time : NULL));
  printf("%lld %lld\n", (long long)time.tv_sec, (long long)time.tv_usec);
  close_buffer();
}

// ---- the table

static const Value kNeedValues[] = {{"0", 0}, {"its", 1}, {"2", 2}, {"2^32-1", UINT_MAX}};
static const Domain kNeeds = DOMAIN_OF(kNeedValues);

static const Value kFourValues[] = {{"first", 0}, {"second", 1}, {"third", 2}, {"fourth", 3}};
static const Domain kFour = DOMAIN_OF(kFourValues);

static const Value kPayloadValues[] = {{"itself", -1},
                                       {"NULL", kNoBuffer},
                                       {"empty", kEmpty},
                                       {"text", kText2},
                                       {"frozen at the back", kFrozenBack}};
static const Domain kPayloads = DOMAIN_OF(kPayloadValues);

static const Value kRoomValues[] = {{"0", 0},
                                    {"1", 1},
                                    {"4", 4},
                                    {"5", 5},
                                    {"5000", 5000},
                                    {"max", LONG_MAX},
                                    {"2^32+4", (1L << 32) + 4},
                                    {"-1", -1}};
static const Domain kRooms = DOMAIN_OF(kRoomValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evtag_marshal", call_marshal, {&kTargets, &kTags, &kBooleans, &kLengths}},
      {"evtag_marshal_buffer", call_marshal_buffer, {&kTargets, &kTags, &kPayloads}},
      {"evtag_encode_int", call_encode, {&kTargets, &kIntegers, &kFour}},
      {"evtag_marshal_int", call_marshal_int, {&kFewTargets, &kTags, &kIntegers, &kBooleans}},
      {"evtag_marshal_string", call_marshal_string, {&kTargets, &kTags, &kTextDomain}},
      {"evtag_marshal_timeval", call_marshal_timeval, {&kTargets, &kTags, &kTimeDomain}},
      {"evtag_unmarshal", call_unmarshal, {&kBuffers, &kBooleans, &kPayloads}},
      {"evtag_peek and others", call_look, {&kBuffers, &kBooleans, &kFour}},
      {"evtag_consume", call_consume, {&kBuffers}},
      {"evtag_unmarshal_int", call_unmarshal_int, {&kBuffers, &kNeeds, &kBooleans, &kBooleans}},
      {"evtag_unmarshal_fixed", call_unmarshal_fixed, {&kBuffers, &kNeeds, &kBooleans, &kRooms}},
      {"evtag_unmarshal_string", call_unmarshal_string, {&kBuffers, &kNeeds, &kBooleans}},
      {"evtag_unmarshal_timeval", call_unmarshal_timeval, {&kBuffers, &kNeeds, &kBooleans}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
