// URIs, codings, queries and lists of headers, with random text: mostly well formed until something
// is put in or taken out of it, else of the pieces that URIs are made of, else any bytes. Every
// seed runs several rounds, each of which passes a text or two to all functions.
// differential: --seeds 1:600 --chunk 600
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <sys/queue.h>

#include "harness.h"

enum { kTextMax = 400, kRounds = 40, kSteps = 24 };

// --- Printing ---

static void print_bytes(const char* text, size_t size) {
  printf("\"");
  for (size_t i = 0; i < size; i++) {
    printf(text[i] >= ' ' && text[i] < 127 ? "%c" : "\\x%02x", (unsigned char)text[i]);
  }
  printf("\"");
}

static void print_text(const char* what, const char* text) {
  printf("%s ", what);
  if (text == NULL) {
    printf("none");
  } else {
    print_bytes(text, strlen(text));
  }
  printf(" ");
}

static void print_and_free(const char* what, char* text) {
  print_text(what, text);
  printf("\n");
  free(text);
}

// --- Random text ---

#define ONE_OF(words) ((words)[random_below((int)(sizeof(words) / sizeof *(words)))])

static const char* const kPieces[] = {"/",       "//",     ":",
                                      "?",       "#",      "@",
                                      "[",       "]",      "%",
                                      "%4",      "%41",    "%00",
                                      "a",       "b.c",    "http",
                                      "1",       "65535",  "65536",
                                      "[::1]",   "[v1.x]", "[1::2.3.4.5]",
                                      " ",       "+",      "&",
                                      "=",       ";",      "a=b",
                                      "&c=%20",  "%zz",    "\r\n",
                                      "\t",      "\x80",   "\xff",
                                      "~",       "-",      "<",
                                      ">",       "\"",     "'",
                                      "\\",      "^",      "00",
                                      "::",      "v",      ".",
                                      "0x1",     "*",      "99999999999999999999",
                                      "%2B",     "%3d",    "%26",
                                      "!$'()*,", "|",      "{}",
                                      "`",       "\x7f",   "\x01"};

static void random_pieces(char* text, int most) {
  text[0] = '\0';
  for (int i = random_below(most + 1); i > 0; i--) {
    strcat(text, ONE_OF(kPieces));
  }
}

static void random_bytes(char* text, int most) {
  int size = random_below(most + 1);
  for (int i = 0; i < size; i++) {
    text[i] = (char)(1 + random_below(255));
  }
  text[size] = '\0';
}

static const char* const kSchemes[] = {
    "", "http:", "https:", "a+b-c.9:", "mailto:", "1a:", "a_b:", ":", "HTTP:", "x:y:"};
static const char* const kUsers[] = {"",  "",      "",     "u@",     "u:p@",
                                     "@", "%41%@", "a@b@", "u%20;@", ":@"};
static const char* const kHosts[] = {"h",         "example.com",
                                     "",          "127.0.0.1",
                                     "[::1]",     "[::ffff:1.2.3.4]",
                                     "[v1.a:b]",  "[v.a]",
                                     "[::1",      "::1]",
                                     "[]",        "h%41",
                                     "h%4",       "a b",
                                     "a_b",       "[fe80::1%1]",
                                     "[V1.a]",    "[va9.]",
                                     "[vg.a]",    "[v.]",
                                     "[1:2:3:4]", "[0:1:2:3:4:5:6:7]",
                                     "h\x80",     "[::1]x"};
static const char* const kPorts[] = {
    "",       "",     "",    ":",    ":80",         ":0",  ":65535",
    ":65536", ":1:2", ":-1", ":080", ":4294967297", ":8x", ":000000000000000000080"};
static const char* const kPaths[] = {"",     "/",   "/a/b", "/a:b", "a",     "a:b", "//x",
                                     "/%41", "/%4", "/a b", "*",    "./a:b", "/@",  "/;x=y,z"};
static const char* const kQueries[] = {
    "",       "",     "?",        "?a=b", "?a=b&c=d",     "?a=b?c",
    "?a=b+c", "?%41", "?%zz",     "?[]",  "?a=%41%42&b=", "?&",
    "?a&b",   "?=b",  "?a=b&&c=d"};
static const char* const kFragments[] = {"", "", "#", "#a", "#a?b", "##", "#a b", "#%4"};

static void random_uri(char* text) {
  sprintf(text, "%s", ONE_OF(kSchemes));
  if (random_chance(70)) {
    sprintf(text + strlen(text), "//%s%s%s", ONE_OF(kUsers), ONE_OF(kHosts), ONE_OF(kPorts));
  }
  sprintf(text + strlen(text), "%s%s%s", ONE_OF(kPaths), ONE_OF(kQueries), ONE_OF(kFragments));
}

// Writes an address in brackets, or almost one.
static void random_literal(char* text) {
  sprintf(text, "//[");
  const int words = random_below(10);
  const int gap = random_below(11);
  for (int i = 0; i < words; i++) {
    sprintf(text + strlen(text), "%s%x",
            i == gap ? "::"
            : i > 0  ? ":"
                     : "",
            random_below(random_chance(70) ? 16 : 70000));
  }
  if (gap == words) strcat(text, "::");
  if (random_chance(30)) {
    sprintf(text + strlen(text), ":%d.%0*d.%d.%d", random_below(260), random_below(40),
            random_below(256), random_below(256), random_below(256));
  }
  strcat(text, "]");
}

static void change_a_little(char* text) {
  const int size = (int)strlen(text);
  if (size == 0) return;
  const int at = random_below(size);
  if (random_chance(50)) {
    text[at] =
        (char)(random_chance(70) ? ":/?#[]@%=&+ .v0"[random_below(15)] : 1 + random_below(255));
  } else {
    memmove(text + at, text + at + 1, (size_t)(size - at));
  }
}

static void random_text(char* text) {
  switch (random_below(6)) {
    case 0:
      random_bytes(text, 24);
      break;
    case 1:
      random_pieces(text, 10);
      break;
    case 2:
      random_literal(text);
      break;
    default:
      random_uri(text);
  }
  while (random_chance(30)) change_a_little(text);
}

// --- A URI ---

static void show_uri(struct evhttp_uri* uri) {
  if (uri == NULL) {
    printf("no URI\n");
    return;
  }
  print_text("scheme", evhttp_uri_get_scheme(uri));
  print_text("userinfo", evhttp_uri_get_userinfo(uri));
  print_text("host", evhttp_uri_get_host(uri));
  printf("port %d ", evhttp_uri_get_port(uri));
  print_text("path", evhttp_uri_get_path(uri));
  print_text("query", evhttp_uri_get_query(uri));
  print_text("fragment", evhttp_uri_get_fragment(uri));
  char text[8 * kTextMax];
  const int limit = random_chance(80) ? (int)sizeof text : random_below(40);
  memset(text, '.', sizeof text);
  print_text("joined", evhttp_uri_join(uri, text, (size_t)limit));
  printf("%c\n", text[sizeof text - 1]);
}

static void parse(void) {
  char text[kTextMax];
  random_text(text);
  print_text("parse", text);
  struct evhttp_uri* uri = random_chance(50)
                               ? evhttp_uri_parse(text)
                               : evhttp_uri_parse_with_flags(text, (unsigned)random_below(4));
  show_uri(uri);
  if (uri != NULL) evhttp_uri_free(uri);
}

typedef int (*Setter)(struct evhttp_uri* uri, const char* text);

static const Setter kSetters[] = {evhttp_uri_set_scheme, evhttp_uri_set_userinfo,
                                  evhttp_uri_set_host,   evhttp_uri_set_path,
                                  evhttp_uri_set_query,  evhttp_uri_set_fragment};

// Returns a text that is mostly valid for one part, and sometimes for another.
static void random_part(int part, char* text) {
  switch (random_chance(70) ? part : random_below(7)) {
    case 0:
      sprintf(text, "%s", ONE_OF(kSchemes));
      break;
    case 1:
      sprintf(text, "%s", ONE_OF(kUsers));
      break;
    case 2:
      sprintf(text, "%s", ONE_OF(kHosts));
      break;
    case 3:
      sprintf(text, "%s", ONE_OF(kPaths));
      break;
    case 4:
      sprintf(text, "%s", ONE_OF(kQueries));
      break;
    case 5:
      sprintf(text, "%s", ONE_OF(kFragments));
      break;
    default:
      random_text(text);
  }
  const size_t size = strlen(text);
  if (size > 0 && (part < 2) && random_chance(70)) text[size - 1] = '\0';  // Drops the ':' or '@'.
  if (size > 0 && part > 3 && random_chance(70)) memmove(text, text + 1, size);
}

static void set(struct evhttp_uri* uri) {
  char text[kTextMax];
  const int part = random_below(8);
  if (part == 6) {
    const int port = random_chance(50) ? random_below(70000) : (int)random_next();
    printf("port %d: %d\n", port, evhttp_uri_set_port(uri, port));
  } else if (part == 7) {
    evhttp_uri_set_flags(uri, (unsigned)random_below(3));
  } else {
    random_part(part, text);
    const char* value = random_chance(85) ? text : NULL;
    printf("set %d ", part);
    print_text("to", value);
    printf("%d\n", kSetters[part](uri, value));
  }
}

static void build(void) {
  struct evhttp_uri* uri = evhttp_uri_new();
  for (int i = random_below(kSteps); i >= 0; i--) set(uri);
  show_uri(uri);
  evhttp_uri_free(uri);
}

// --- Encodings ---

static void decode(const char* text) {
  for (int plus = -1; plus <= 2; plus++) {
    size_t size = 4711;
    char* decoded = evhttp_uridecode(text, plus, random_chance(80) ? &size : NULL);
    printf("uridecode %d %zu ", plus, size);
    print_bytes(decoded, size == 4711 ? strlen(decoded) : size + 1);
    printf("\n");
    free(decoded);
  }
  print_and_free("decode_uri", evhttp_decode_uri(text));
}

static void code(void) {
  char text[kTextMax];
  random_text(text);
  print_text("code", text);
  print_and_free("encode_uri", evhttp_encode_uri(text));
  const int size = random_below((int)strlen(text) + 2) - 1;
  if (size > 2 && random_chance(30)) text[size / 2] = '\0';
  print_and_free("uriencode", evhttp_uriencode(text, size, random_below(3) - 1));
  print_and_free("htmlescape", evhttp_htmlescape(text));
  decode(text);
}

// --- Lists ---

static void show_list(const struct evkeyvalq* list) {
  const struct evkeyval* entry;
  int count = 0;
  TAILQ_FOREACH(entry, list, next) {
    print_text(" ", entry->key);
    print_text("=", entry->value);
    if (++count > 100) break;
  }
  printf("%s\n", *list->tqh_last == NULL ? "" : " (no end)");
}

static void random_query(char* text) {
  static const char* const kKeys[] = {"a", "b", "B", "a%41", "a+b", "", "a b", "a\r"};
  static const char* const kValues[] = {"=",     "=1",  "=%41+%2b", "==", "",
                                        "=%00x", "=\n", "=%",       "=#"};
  text[0] = '\0';
  for (int i = random_below(5); i > 0; i--) {
    sprintf(text + strlen(text), "%s%s%s", ONE_OF(kKeys), ONE_OF(kValues),
            i > 1 || random_chance(20) ? "&" : "");
  }
  while (random_chance(15)) change_a_little(text);
}

static void query(void) {
  char text[kTextMax];
  if (random_chance(30)) {
    random_text(text);
  } else {
    strcpy(text, random_chance(50) ? "/?" : "");
    random_query(text + strlen(text));
  }
  struct evkeyvalq list;
  memset(&list, 0x5a, sizeof list);
  print_text("query", text);
  printf("%d", evhttp_parse_query_str(text, &list));
  show_list(&list);
  evhttp_clear_headers(&list);
  printf(" of the URI %d", evhttp_parse_query(text, &list));
  show_list(&list);
  evhttp_clear_headers(&list);
}

static const char* random_key(char* text) {
  static const char* const kKeys[] = {"Host", "host", "HOST", "X-A",  "x-a",  "",    "a b",
                                      "a\r",  "\nb",  "a:",   "\x80", "\xc0", "\xe0"};
  if (random_chance(85)) return ONE_OF(kKeys);
  random_bytes(text, 6);
  return text;
}

static const char* random_value(char* text) {
  static const char* const kValues[] = {"",     "1",     " a ",   "a\r\n b", "a\r\n\tb",
                                        "a\nb", "a\r b", "a\r\n", "\r\n b",  "a\x01\xff"};
  if (random_chance(85)) return ONE_OF(kValues);
  random_bytes(text, 6);
  return text;
}

static void headers(void) {
  struct evkeyvalq list;
  char key[16];
  char value[16];
  TAILQ_INIT(&list);
  for (int i = random_below(kSteps); i >= 0; i--) {
    const char* name = random_key(key);
    print_text("header", name);
    if (random_chance(60)) {
      printf("add %d", evhttp_add_header(&list, name, random_value(value)));
    } else if (random_chance(50)) {
      print_text("find", evhttp_find_header(&list, name));
    } else if (random_chance(90)) {
      printf("remove %d", evhttp_remove_header(&list, name));
    } else {
      evhttp_clear_headers(&list);
    }
    show_list(&list);
  }
  evhttp_clear_headers(&list);
}

static void script(void) {
  static void (*const kKinds[])(void) = {parse, parse, parse, build, code, query, headers};
  for (int i = 0; i < kRounds; i++) {
    ONE_OF(kKinds)();
  }
}

int main(int argc, char** argv) { return run_seeds(argc, argv, script); }
