// The functions of event2/http.h for text, with null pointers and numbers out of range.
// differential: --undefined
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <limits.h>
#include <sys/queue.h>

#include "arguments.h"

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

static void show_text(const char* what, const char* text) {
  printf("%s: %s\n", what, text != NULL ? text : "(none)");
}

// ---- domains

static const char* const kTexts[] = {NULL, "", "a", "a=b&c=%20+", "//u@h:1/p?q#f", "[", "%", "a\n"};
static const Value kTextValues[] = {{"null", 0}, {"\"\"", 1}, {"a", 2}, {"query", 3},
                                    {"URI", 4},  {"[", 5},    {"%", 6}, {"two lines", 7}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);

static const Value kUriValues[] = {{"null", 0}, {"empty", 1}, {"full", 2}};
static const Domain kUris = DOMAIN_OF(kUriValues);

static struct evhttp_uri* uri_of(long value) {
  return value == 0 ? NULL : value == 1 ? evhttp_uri_new() : evhttp_uri_parse("s://u@h:1/p?q#f");
}

static const Value kListValues[] = {{"null", 0}, {"empty", 1}, {"of two", 2}};
static const Domain kLists = DOMAIN_OF(kListValues);

static struct evkeyvalq* list_of(long value) {
  static struct evkeyvalq list;
  TAILQ_INIT(&list);
  if (value == 2) {
    evhttp_add_header(&list, "a", "1");
    evhttp_add_header(&list, "A", "2");
  }
  return value == 0 ? NULL : &list;
}

static void show_list(const struct evkeyvalq* list) {
  const struct evkeyval* entry;
  if (list == NULL) return;
  TAILQ_FOREACH(entry, list, next) printf("  %s=%s\n", entry->key, entry->value);
}

static const Value kFlagValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"max", UINT_MAX}};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

static const Value kPartValues[] = {{"scheme", 0}, {"userinfo", 1}, {"host", 2},
                                    {"path", 3},   {"query", 4},    {"fragment", 5}};
static const Domain kParts = DOMAIN_OF(kPartValues);

static const Value kSizeValues[] = {{"-1", -1}, {"least", LONG_MIN}, {"0", 0}, {"1", 1}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kLimitValues[] = {{"0", 0}, {"1", 1}, {"15", 15}, {"16", 16}, {"max", -1}};
static const Domain kLimits = DOMAIN_OF(kLimitValues);

// ---- calls

static void call_parse(const long* at) {
  struct evhttp_uri* uri = evhttp_uri_parse_with_flags(kTexts[at[0]], (unsigned)at[1]);
  show("parsed", uri != NULL);
  if (uri != NULL) evhttp_uri_free(uri);
}

static void call_plain_parse(const long* at) {
  struct evhttp_uri* uri = evhttp_uri_parse(kTexts[at[0]]);
  show("parsed", uri != NULL);
  if (uri == NULL) return;
  show("port", evhttp_uri_get_port(uri));
  show_text("host", evhttp_uri_get_host(uri));
  evhttp_uri_free(uri);
}

static void call_new(const long* at) {
  char text[100];
  (void)at;
  struct evhttp_uri* uri = evhttp_uri_new();
  show("port", evhttp_uri_get_port(uri));
  show_text("path", evhttp_uri_get_path(uri));
  show_text("joined", evhttp_uri_join(uri, text, sizeof text));
  evhttp_uri_free(uri);
}

static void call_free(const long* at) { evhttp_uri_free(uri_of(at[0])); }

static void call_get(const long* at) {
  static const char* (*const kGetters[])(const struct evhttp_uri*) = {
      evhttp_uri_get_scheme, evhttp_uri_get_userinfo, evhttp_uri_get_host,
      evhttp_uri_get_path,   evhttp_uri_get_query,    evhttp_uri_get_fragment};
  show_text("part", kGetters[at[1]](uri_of(at[0])));
}

static void call_set(const long* at) {
  static int (*const kSetters[])(struct evhttp_uri*, const char*) = {
      evhttp_uri_set_scheme, evhttp_uri_set_userinfo, evhttp_uri_set_host,
      evhttp_uri_set_path,   evhttp_uri_set_query,    evhttp_uri_set_fragment};
  struct evhttp_uri* uri = uri_of(at[0]);
  show("set", kSetters[at[1]](uri, kTexts[at[2]]));
  char text[100];
  show_text("joined", evhttp_uri_join(uri, text, sizeof text));
}

static void call_port(const long* at) {
  struct evhttp_uri* uri = uri_of(at[0]);
  show("set", evhttp_uri_set_port(uri, (int)at[1]));
  show("port", evhttp_uri_get_port(uri));
}

static void call_flags(const long* at) { evhttp_uri_set_flags(uri_of(at[0]), (unsigned)at[1]); }

static void call_join(const long* at) {
  char text[100] = "untouched";
  show_text("joined", evhttp_uri_join(uri_of(at[0]), at[1] ? text : NULL, (size_t)at[2]));
  show_text("room", text);
}

static void call_encode(const long* at) { show_text("text", evhttp_encode_uri(kTexts[at[0]])); }

static void call_uriencode(const long* at) {
  show_text("text", evhttp_uriencode(kTexts[at[0]], at[1], (int)at[2]));
}

static void call_decode(const long* at) { show_text("text", evhttp_decode_uri(kTexts[at[0]])); }

static void call_uridecode(const long* at) {
  size_t size = 4711;
  show_text("text", evhttp_uridecode(kTexts[at[0]], (int)at[1], at[2] ? &size : NULL));
  show("size", (long)size);
}

static void call_escape(const long* at) { show_text("text", evhttp_htmlescape(kTexts[at[0]])); }

static void call_query(const long* at) {
  struct evkeyvalq* list = list_of(at[1]);
  show("result", (at[2] ? evhttp_parse_query_str : evhttp_parse_query)(kTexts[at[0]], list));
  show_list(list);
}

static void call_add(const long* at) {
  struct evkeyvalq* list = list_of(at[0]);
  show("result", evhttp_add_header(list, kTexts[at[1]], kTexts[at[2]]));
  show_list(list);
}

static void call_find(const long* at) {
  show_text("value", evhttp_find_header(list_of(at[0]), kTexts[at[1]]));
}

static void call_remove(const long* at) {
  struct evkeyvalq* list = list_of(at[0]);
  show("result", evhttp_remove_header(list, kTexts[at[1]]));
  show_list(list);
}

static void call_clear(const long* at) {
  struct evkeyvalq* list = list_of(at[0]);
  evhttp_clear_headers(list);
  show_list(list);
}

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evhttp_uri_parse_with_flags", call_parse, {&kTextDomain, &kFlags}},
      {"evhttp_uri_parse", call_plain_parse, {&kTextDomain}},
      {"evhttp_uri_new", call_new, {NULL}},
      {"evhttp_uri_free", call_free, {&kUris}},
      {"evhttp_uri_get", call_get, {&kUris, &kParts}},
      {"evhttp_uri_set", call_set, {&kUris, &kParts, &kTextDomain}},
      {"evhttp_uri_set_port", call_port, {&kUris, &kNumbers}},
      {"evhttp_uri_set_flags", call_flags, {&kUris, &kFlags}},
      {"evhttp_uri_join", call_join, {&kUris, &kBooleans, &kLimits}},
      {"evhttp_encode_uri", call_encode, {&kTextDomain}},
      {"evhttp_uriencode", call_uriencode, {&kTextDomain, &kSizes, &kNumbers}},
      {"evhttp_decode_uri", call_decode, {&kTextDomain}},
      {"evhttp_uridecode", call_uridecode, {&kTextDomain, &kNumbers, &kBooleans}},
      {"evhttp_htmlescape", call_escape, {&kTextDomain}},
      {"evhttp_parse_query", call_query, {&kTextDomain, &kLists, &kBooleans}},
      {"evhttp_add_header", call_add, {&kLists, &kTextDomain, &kTextDomain}},
      {"evhttp_find_header", call_find, {&kLists, &kTextDomain}},
      {"evhttp_remove_header", call_remove, {&kLists, &kTextDomain}},
      {"evhttp_clear_headers", call_clear, {&kLists}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
