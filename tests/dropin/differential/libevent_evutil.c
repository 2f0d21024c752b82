// The parsing, formatting and comparing functions of event2/util.h, with random arguments: half of
// them built of pieces of addresses and numbers, half of random bytes.
// differential: --seeds 1:4000 --chunk 1000
#include <errno.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "harness.h"

enum { kTextMax = 300, kRounds = 12 };

static void print_bytes(const void* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    printf("%02x", ((const unsigned char*)bytes)[i]);
  }
  printf("\n");
}

static void print_text(const char* name, const char* text) {
  printf("%s \"", name);
  for (; *text != '\0'; text++) {
    printf(*text >= ' ' && *text < 127 ? "%c" : "\\x%02x", (unsigned char)*text);
  }
  printf("\": ");
}

// --- Random arguments ---

static const char* one_of(const char* const* words, size_t count) {
  return words[random_below((int)count)];
}

#define ONE_OF(words) one_of(words, sizeof(words) / sizeof *(words))

static const char* const kPieces[] = {
    ":",  "::",   ".",   "1",     "0",   "12",         "255",    "256",  "1.2.3.4", "01", "0001",
    "f",  "ffff", "::1", "0x1",   "abc", "10000",      "]:80",   "[",    "]",       " ",  "+",
    "-",  "%",    "%lo", "%nope", "%1",  "4294967297", "10.0.0", "::f:", "1:2:3:4", "x",  "g",
    ":0", "]:0",  "\t",  "00",    "e",   "7:8",        "65536",  "65535"};

static void random_pieces(char* text) {
  text[0] = '\0';
  for (int i = random_below(10); i > 0; i--) {
    strcat(text, ONE_OF(kPieces));
  }
}

// Writes an address that is valid before a random change.
static void random_address(char* text) {
  if (random_chance(40)) {
    sprintf(text, "%d.%d.%d.%d", random_below(260), random_below(260), random_below(260),
            random_below(260));
  } else {
    const int gap = random_below(12);
    const int words = gap < 8 ? random_below(8) : 8;
    text[0] = '\0';
    for (int i = 0; i < words; i++) {
      const char* mark = i == gap ? "::" : i > 0 ? ":" : "";
      sprintf(text + strlen(text), "%s%x", mark, random_below(random_chance(50) ? 16 : 70000));
    }
    if (gap >= words && gap < 8) {
      strcat(text, "::");
    }
    if (random_chance(20)) {
      sprintf(text + strlen(text), ":%d.%d.%d.%d", random_below(256), random_below(256),
              random_below(256), random_below(256));
    }
  }
}

static void random_bytes_text(char* text) {
  const int size = random_below(24);
  for (int i = 0; i < size; i++) {
    text[i] = (char)(random_chance(50) ? "0123456789abcdef:.%[]+- x"[random_below(25)]
                                       : 1 + random_below(255));
  }
  text[size] = '\0';
}

static void wrap_in_brackets(char* text) {
  char inner[kTextMax];
  strcpy(inner, text);
  sprintf(text, "[%s]", inner);
}

static void mutate(char* text) {
  const int length = (int)strlen(text);
  const int at = random_below(length + 1);
  if (random_chance(50)) {
    memmove(text + at + 1, text + at, (size_t)(length - at) + 1);
    text[at] = ":.%0 1[]g+"[random_below(10)];
  } else if (at < length) {
    memmove(text + at, text + at + 1, (size_t)(length - at));
  }
}

static void random_text(char* text) {
  switch (random_below(4)) {
    case 0:
      random_pieces(text);
      break;
    case 1:
      random_bytes_text(text);
      break;
    default:
      random_address(text);
  }
  if (random_chance(20)) {
    strcat(text, random_chance(50) ? "%lo" : "%2");
  }
  if (random_chance(20)) {
    wrap_in_brackets(text);
  }
  if (random_chance(30)) {
    sprintf(text + strlen(text), ":%d", random_below(70000) - 100);
  }
  while (random_chance(25)) {
    mutate(text);
  }
}

// --- Addresses ---

static void read_addresses(void) {
  char text[kTextMax];
  unsigned char bytes[16];
  random_text(text);
  print_text("pton", text);
  for (int family = 0; family < 2; family++) {
    memset(bytes, 0xcc, sizeof bytes);
    printf("%d ", evutil_inet_pton(family == 0 ? AF_INET : AF_INET6, text, bytes));
    print_bytes(bytes, sizeof bytes);
  }
  unsigned index = 7;
  memset(bytes, 0xcc, sizeof bytes);
  printf("scope %d ",
         evutil_inet_pton_scope(random_chance(80) ? AF_INET6 : AF_INET, text, bytes, &index));
  printf("%u ", index);
  print_bytes(bytes, sizeof bytes);
}

static void parse_address_and_port(void) {
  char text[kTextMax];
  struct sockaddr_storage address;
  int size = random_chance(80) ? (int)sizeof address : random_below(40);
  random_text(text);
  print_text("parse", text);
  memset(&address, 0xcc, sizeof address);
  printf("room %d: %d ", size, evutil_parse_sockaddr_port(text, (struct sockaddr*)&address, &size));
  printf("%d ", size);
  print_bytes(&address, sizeof(struct sockaddr_in6));
}

static void random_ip(unsigned char* bytes) {
  for (int i = 0; i < 16; i += 2) {
    const int word = random_chance(60) ? 0 : random_chance(50) ? random_below(20) : 0xffff;
    const int other = random_chance(20) ? random_below(65536) : word;
    bytes[i] = (unsigned char)(other >> 8);
    bytes[i + 1] = (unsigned char)other;
  }
}

// Tries every size of buffer except the one for which libevent omits the last character (see
// evutil_addresses.cc).
static void write_addresses(void) {
  const int family = random_chance(70) ? AF_INET6 : AF_INET;
  unsigned char bytes[16];
  char whole[64];
  char text[64];
  random_ip(bytes);
  const char* written = evutil_inet_ntop(family, bytes, whole, sizeof whole);
  printf("ntop %d ", family);
  print_bytes(bytes, sizeof bytes);
  printf("  %s\n", written != NULL ? written : "nothing");
  const size_t room = (size_t)random_below(50);
  if (written != NULL && room != strlen(whole)) {
    written = evutil_inet_ntop(family, bytes, text, room);
    printf("  room %d: %s\n", (int)room, written != NULL ? written : "nothing");
  }
}

static int sign(int value) { return (value > 0) - (value < 0); }

static void random_sockaddr(struct sockaddr_storage* address) {
  memset(address, 0, sizeof *address);
  switch (random_below(5)) {
    case 0:
      address->ss_family = AF_UNIX;
      break;
    case 1:
    case 2:
      address->ss_family = AF_INET;
      ((struct sockaddr_in*)address)->sin_port = (uint16_t)(random_below(4) << 7);
      ((struct sockaddr_in*)address)->sin_addr.s_addr = (uint32_t)random_below(3)
                                                        << (random_below(4) * 10);
      break;
    default:
      address->ss_family = AF_INET6;
      ((struct sockaddr_in6*)address)->sin6_port = (uint16_t)(random_below(4) << 7);
      ((struct sockaddr_in6*)address)->sin6_addr.s6_addr[random_below(16)] =
          (unsigned char)random_below(3);
      ((struct sockaddr_in6*)address)->sin6_scope_id = (uint32_t)random_below(3);
  }
}

static void compare_addresses(void) {
  struct sockaddr_storage a;
  struct sockaddr_storage b;
  random_sockaddr(&a);
  random_sockaddr(&b);
  const int with_port = random_below(2);
  printf("cmp %d %d: %d %d\n", a.ss_family, b.ss_family,
         sign(evutil_sockaddr_cmp((struct sockaddr*)&a, (struct sockaddr*)&b, with_port)),
         sign(evutil_sockaddr_cmp((struct sockaddr*)&b, (struct sockaddr*)&a, with_port)));
}

// --- Names that need no server ---

static void print_addrinfo(const struct addrinfo* one) {
  printf("  %x %d %d %d %s ", one->ai_flags, one->ai_family, one->ai_socktype, one->ai_protocol,
         one->ai_canonname != NULL ? one->ai_canonname : "-");
  print_bytes(one->ai_addr, one->ai_addrlen);
}

static void look_up(void) {
  static const char* const services[] = {"80", "0", "65535", "+80", "080", "-1", "x", "", "http"};
  static const int families[] = {AF_UNSPEC, AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX, 99};
  static const int types[] = {0, SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, 77};
  static const int protocols[] = {0, 0, 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, 999};
  static const int flags[] = {EVUTIL_AI_PASSIVE,
                              EVUTIL_AI_CANONNAME,
                              EVUTIL_AI_NUMERICSERV,
                              EVUTIL_AI_V4MAPPED,
                              EVUTIL_AI_ALL,
                              EVUTIL_AI_ADDRCONFIG,
                              0x4000};
  char text[kTextMax];
  random_text(text);
  const char* node = random_chance(80) ? text : NULL;
  const char* service = random_chance(80) ? ONE_OF(services) : NULL;
  struct addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICHOST};
  for (int i = random_below(4); i > 0; i--) {
    hints.ai_flags |= flags[random_below(random_chance(90) ? 6 : 7)];
  }
  hints.ai_family = families[random_below(random_chance(80) ? 4 : 6)];
  hints.ai_socktype = types[random_below(random_chance(80) ? 4 : 6)];
  hints.ai_protocol = protocols[random_below(random_chance(80) ? 4 : 7)];
  const int hinted = node != NULL || random_chance(70);
  struct addrinfo* found = NULL;
  print_text("getaddrinfo", node != NULL ? node : "");
  const int error = evutil_getaddrinfo(node, service, hinted ? &hints : NULL, &found);
  printf("%s flags %x: %s\n", service != NULL ? service : "-", hints.ai_flags,
         evutil_gai_strerror(error));
  for (const struct addrinfo* one = error == 0 ? found : NULL; one != NULL; one = one->ai_next) {
    print_addrinfo(one);
  }
  if (error == 0) {
    evutil_freeaddrinfo(found);
  }
}

static void name_an_error(void) {
  static const int bases[] = {0, -100, EVUTIL_EAI_CANCEL, -905};
  const int error = bases[random_below(4)] + random_below(40) - 20;
  printf("gai_strerror %d: %s\n", error, evutil_gai_strerror(error));
}

// --- Numbers, strings, dates ---

static void read_number(void) {
  static const char* const starts[] = {"", " ", "-", "+", "0x", "0", "\n -", "--", "- ", "0b"};
  static const int bases[] = {0, 2, 8, 10, 16, 36, 1, 37, -1};
  char text[kTextMax];
  sprintf(text, "%s", ONE_OF(starts));
  for (int i = random_below(24); i > 0; i--) {
    sprintf(text + strlen(text), "%c",
            random_chance(90) ? "0123456789"[random_below(10)] : "aFzx -"[random_below(6)]);
  }
  const int base = bases[random_below(random_chance(90) ? 6 : 9)];
  char* end = text;
  errno = 0;
  const long long number = evutil_strtoll(text, random_chance(90) ? &end : NULL, base);
  print_text("strtoll", text);
  printf("%d: %lld %d %d\n", base, number, (int)(end - text), errno);
}

static void compare_strings(void) {
  static const char letters[] = "aAbBzZ[@`{\xe4\xc4\xff\x01";
  char a[8] = "";
  char b[8] = "";
  const int same = random_below(5);
  for (int i = 0; i < 7; i++) {
    a[i] = letters[random_below(15)];
    b[i] =
        i < same ? (char)(a[i] ^ (a[i] >= 'A' && a[i] <= 'Z' ? 32 : 0)) : letters[random_below(15)];
  }
  const size_t size = (size_t)random_below(9);
  printf("case %d %d\n", evutil_ascii_strcasecmp(a, b), evutil_ascii_strncasecmp(a, b, size));
}

static void print_into_room(void) {
  char text[32];
  memset(text, '#', sizeof text);
  text[31] = '\0';
  const size_t room = (size_t)random_below(31);
  const int length = evutil_snprintf(text, room, "%d %s %c", random_below(1000000) - 500000,
                                     random_chance(50) ? "some words" : "", 'a' + random_below(26));
  printf("snprintf %d: %d %s\n", (int)room, length, text);
}

static void write_date(void) {
  struct tm time = {.tm_wday = random_below(7), .tm_mon = random_below(12)};
  time.tm_mday = random_below(random_chance(90) ? 32 : 1000);
  time.tm_hour = random_below(random_chance(90) ? 24 : 1000);
  time.tm_min = random_below(60);
  time.tm_sec = random_below(61);
  time.tm_year = random_chance(80) ? random_below(200) : random_below(2000000) - 1000000;
  char text[64];
  memset(text, '#', sizeof text);
  text[63] = '\0';
  const size_t room = random_chance(70) ? sizeof text - 1 : (size_t)random_below(40);
  const int length = evutil_date_rfc1123(text, room, &time);
  printf("date %d: %d %s\n", (int)room, length, text);
}

static void run(void) {
  static void (*const checks[])(void) = {read_addresses,
                                         read_addresses,
                                         parse_address_and_port,
                                         parse_address_and_port,
                                         write_addresses,
                                         compare_addresses,
                                         look_up,
                                         name_an_error,
                                         read_number,
                                         compare_strings,
                                         print_into_room,
                                         write_date};
  for (int i = 0; i < kRounds; i++) {
    checks[i]();
  }
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run); }
