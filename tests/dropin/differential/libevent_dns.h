#pragma once

// Name servers that a program controls: sockets on loopback that are read when the library is idle.
// Each query is printed, and the program's `answer` sends the reply.
//
// The clock is virtual_time.h's, without ticks: only waits take time. Waits end at a whole
// millisecond, so timeouts that end half a millisecond past one expire at the same time in both
// libraries. Timeouts within one millisecond expire in no defined order, so queries are sent at
// different ones.
//
// In weather only the library's reads fail: its sends bypass the weather, since the order of
// queries must not change.

#include <arpa/inet.h>
#include <ctype.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "harness.h"
#include "virtual_time.h"

enum {
  kServersMost = 4,
  kPacketMost = 2048,
  kNameMost = 1100,
  kSeenMost = 200,
  kEndsMost = 1000,
  kTimeoutMost = 5999
};

enum { kQr = 0x8000, kAa = 0x0400, kTc = 0x0200, kRd = 0x0100, kRa = 0x0080 };

typedef struct Packet {
  unsigned char bytes[kPacketMost];
  size_t size;
} Packet;

// A received query.
typedef struct Query {
  int server;
  int nth;  // Number among this server's queries, from 0.
  unsigned id;
  char name[kNameMost];   // As it came,
  char lower[kNameMost];  // and in lower case.
  int type;
  struct sockaddr_storage from;
  socklen_t from_size;
} Query;

static int server_fds[kServersMost];
static struct sockaddr_in server_addresses[kServersMost];
static int queries_of[kServersMost];
static int server_count;
static void (*answer)(const Query* query);
static int64_t started;  // The case, or the script.

// Returns the milliseconds since the case began.
static long elapsed(void) { return (long)((virtual_now - started) / kMillisecond); }

// ---- random numbers: both libraries call libc for them. This replacement never gives two queries
// the same ID.

void arc4random_buf(void* bytes, size_t size) {
  static uint16_t last;
  unsigned char* next = bytes;
  for (size_t i = 0; i < size; i++) {
    if (i % 2 == 0) last++;
    next[i] = (unsigned char)(i % 2 == 0 ? last >> 8 : last);
  }
}

// ---- writing packets

static void put(Packet* packet, const void* bytes, size_t size) {
  if (packet->size + size > sizeof packet->bytes) abort();
  memcpy(packet->bytes + packet->size, bytes, size);
  packet->size += size;
}

static void put16(Packet* packet, unsigned value) {
  const unsigned char bytes[2] = {(unsigned char)(value >> 8), (unsigned char)value};
  put(packet, bytes, sizeof bytes);
}

static void put32(Packet* packet, uint32_t value) {
  put16(packet, value >> 16);
  put16(packet, value & 0xffff);
}

static void put_name(Packet* packet, const char* name) {
  while (*name != '\0') {
    const size_t length = strcspn(name, ".");
    const unsigned char size = (unsigned char)length;
    put(packet, &size, 1);
    put(packet, name, length);
    name += length;
    if (*name == '.') name++;
  }
  put(packet, "", 1);
}

static void put_header(Packet* packet, unsigned id, unsigned flags, int questions, int answers,
                       int authorities, int additional) {
  put16(packet, id);
  put16(packet, flags);
  put16(packet, (unsigned)questions);
  put16(packet, (unsigned)answers);
  put16(packet, (unsigned)authorities);
  put16(packet, (unsigned)additional);
}

static void put_question(Packet* packet, const Query* query) {
  put_name(packet, query->name);
  put16(packet, (unsigned)query->type);
  put16(packet, 1);
}

// Appends a record whose name is a pointer to that of the query.
static void put_record(Packet* packet, int type, uint32_t ttl, const void* data, size_t size) {
  put16(packet, 0xc00c);
  put16(packet, (unsigned)type);
  put16(packet, 1);
  put32(packet, ttl);
  put16(packet, (unsigned)size);
  put(packet, data, size);
}

static void send_packet(const Query* query, const Packet* packet) {
  syscall(SYS_sendto, server_fds[query->server], packet->bytes, packet->size, 0, &query->from,
          query->from_size);
}

// Begins a normal response: header and question.
static Packet reply_to(const Query* query, unsigned flags, int answers) {
  Packet packet = {.size = 0};
  put_header(&packet, query->id, kQr | kRd | flags, 1, answers, 0, 0);
  put_question(&packet, query);
  return packet;
}

static inline void reply_code(const Query* query, unsigned flags) {
  const Packet packet = reply_to(query, flags, 0);
  send_packet(query, &packet);
}

// Replies with one address of the requested type: 192.0.2.last, 2001:db8::last.
static inline void reply_address(const Query* query, int last, uint32_t ttl) {
  const unsigned char ipv4[4] = {192, 0, 2, (unsigned char)last};
  unsigned char ipv6[16] = {0x20, 0x01, 0x0d, 0xb8};
  ipv6[15] = (unsigned char)last;
  Packet packet = reply_to(query, 0, 1);
  if (query->type == 28) {
    put_record(&packet, 28, ttl, ipv6, sizeof ipv6);
  } else {
    put_record(&packet, 1, ttl, ipv4, sizeof ipv4);
  }
  send_packet(query, &packet);
}

// ---- reading them

// Queries do not compress names, and other messages are not read here.
static const unsigned char* take_name(const unsigned char* next, const unsigned char* end,
                                      char* name) {
  size_t length = 0;
  while (next < end && *next != 0) {
    const size_t size = *next++;
    if (size > 63 || (size_t)(end - next) < size || length + size + 2 > kNameMost) return NULL;
    if (length > 0) name[length++] = '.';
    memcpy(name + length, next, size);
    length += size;
    next += size;
  }
  name[length] = '\0';
  return next < end ? next + 1 : NULL;
}

static unsigned get16(const unsigned char* at) { return (unsigned)(at[0] << 8 | at[1]); }

typedef struct Seen {
  char name[kNameMost];
  int type;
  unsigned id;
} Seen;

static Seen seen[kSeenMost];
static int seen_count;

// Returns a word for whether a repeated question has the same ID as before.
static const char* note_id(const Query* query) {
  for (int i = 0; i < seen_count; i++) {
    if (seen[i].type == query->type && strcmp(seen[i].name, query->lower) == 0) {
      const int is_same = seen[i].id == query->id;
      seen[i].id = query->id;
      return is_same ? "again" : "anew";
    }
  }
  if (seen_count == kSeenMost) abort();
  Seen* one = &seen[seen_count++];
  memcpy(one->name, query->lower, sizeof one->name);
  one->type = query->type;
  one->id = query->id;
  return "first";
}

static void take_query(int server, const unsigned char* bytes, size_t size, Query* query) {
  char* name = query->name;
  query->server = server;
  query->nth = queries_of[server]++;
  if (size < 12) {
    printf("%6ld server %d: %zu bytes\n", elapsed(), server, size);
    return;
  }
  query->id = get16(bytes);
  const unsigned char* next = take_name(bytes + 12, bytes + size, name);
  if (next == NULL || bytes + size - next < 4) {
    printf("%6ld server %d: a question that cannot be read\n", elapsed(), server);
    return;
  }
  query->type = (int)get16(next);
  for (size_t i = 0; i <= strlen(name); i++) {
    query->lower[i] = (char)tolower((unsigned char)name[i]);
  }
  printf("%6ld server %d: %s type %d class %u, %s, flags %#x, counts %u %u %u %u, %zu over\n",
         elapsed(), server, query->lower, query->type, get16(next + 2), note_id(query),
         get16(bytes + 2), get16(bytes + 4), get16(bytes + 6), get16(bytes + 8), get16(bytes + 10),
         (size_t)(bytes + size - next - 4));
}

// Separates queries that begin together: each query gets a unique timeout, and servers take one
// query at a time, which takes a millisecond.
static int is_uneven;

// Returns whether anything had arrived.
static int serve_all(void) {
  int count = 0;
  for (int i = 0; i < server_count; i++) {
    while (!is_uneven || count == 0) {
      unsigned char bytes[kPacketMost];
      Query query = {.from_size = sizeof query.from};
      const ssize_t size = syscall(SYS_recvfrom, server_fds[i], bytes, sizeof bytes, MSG_DONTWAIT,
                                   &query.from, &query.from_size);
      if (size < 0) break;
      count++;
      take_query(i, bytes, (size_t)size, &query);
      if (answer != NULL) answer(&query);
    }
  }
  if (is_uneven && count > 0) virtual_advance(kMillisecond);
  return count;
}

static struct event_base* base;
static struct evdns_base* dns;

// Notes a time, in milliseconds, until which the library waits for a response. Returns 0 if it is
// taken already.
static int take_end(int64_t end) {
  static int64_t ends[kEndsMost];
  int64_t* past = NULL;
  for (int i = 0; i < kEndsMost; i++) {
    if (ends[i] == end) return 0;
    if (ends[i] <= virtual_now / kMillisecond) past = &ends[i];
  }
  if (past == NULL) abort();
  *past = end;
  return 1;
}

// Changes the timeout to one that no other query has, and that ends at a unique tenth of a
// millisecond.
static void change_timeout(void) {
  static int changes;
  char value[16];
  int milliseconds;
  do {
    milliseconds = 1000 + changes++ * 1271 % (kTimeoutMost - 1000);
  } while (!take_end(virtual_now / kMillisecond + milliseconds));
  snprintf(value, sizeof value, "%d.%03d05", milliseconds / 1000, milliseconds % 1000);
  evdns_base_set_option(dns, "timeout", value);
}

// Both libraries send with sendto(), and compute the time to wait afterwards.
ssize_t sendto(int fd, const void* bytes, size_t size, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t to_size) {
  if (is_uneven && dns != NULL) change_timeout();
  return syscall(SYS_sendto, fd, bytes, size, flags, to.__sockaddr__, to_size);
}

static int serve_or_sleep(int64_t nanoseconds, bool is_rounded) {
  (void)is_rounded;
  if (serve_all() > 0) return 0;
  if (nanoseconds == kForever) {
    printf("%6ld waits for ever\n", elapsed());
    event_base_loopbreak(base);
    errno = EINTR;
    return -1;
  }
  virtual_now = (virtual_now + nanoseconds + kMillisecond - 1) / kMillisecond * kMillisecond;
  return 0;
}

static int open_server(struct sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
  socklen_t size = sizeof *address;
  if (bind(fd, (struct sockaddr*)address, size) != 0) abort();
  if (getsockname(fd, (struct sockaddr*)address, &size) != 0) abort();
  return fd;
}

static inline void use_servers(int count) {
  server_count = count;
  for (int i = 0; i < count; i++) server_fds[i] = open_server(&server_addresses[i]);
  virtual_tick = 0;
  virtual_sleep = serve_or_sleep;
  started = virtual_now;
  base = event_base_new();
}

static int add_server(int i) {
  return evdns_base_nameserver_sockaddr_add(dns, (struct sockaddr*)&server_addresses[i],
                                            sizeof server_addresses[i], 0);
}

// With all of the servers.
static inline void make_resolver(void) {
  dns = evdns_base_new(base, 0);
  for (int i = 0; i < server_count; i++) add_server(i);
  evdns_base_set_option(dns, "randomize-case", "0");
  evdns_base_set_option(dns, "timeout", "4.9005");
  evdns_base_set_option(dns, "initial-probe-timeout", "9.7002");
  evdns_base_set_option(dns, "getaddrinfo-allow-skew", "2.9005");
}

static inline void begin(int count) {
  use_servers(count);
  make_resolver();
}

static inline void end(void) {
  evdns_base_free(dns, 1);
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
}

static inline void run_for(int milliseconds) {
  const struct timeval time = {.tv_sec = milliseconds / 1000,
                               .tv_usec = milliseconds % 1000 * 1000 + 300};
  event_base_loopexit(base, &time);
  event_base_dispatch(base);
}

// ---- callbacks

static void print_addresses(int type, int count, const void* addresses) {
  char text[64];
  for (int i = 0; i < count; i++) {
    if (type == DNS_IPv4_A) {
      inet_ntop(AF_INET, (const char*)addresses + 4 * i, text, sizeof text);
      printf(" %s", text);
    } else if (type == DNS_IPv6_AAAA) {
      inet_ntop(AF_INET6, (const char*)addresses + 16 * i, text, sizeof text);
      printf(" %s", text);
    } else {
      printf(" %s", *(char* const*)addresses);
    }
  }
}

static inline void on_result(int result, char type, int count, int ttl, void* addresses,
                             void* arg) {
  printf("%6ld %s: %s, type %d, ttl %d, %d:", elapsed(), (const char*)arg,
         evdns_err_to_string(result), type, ttl, count);
  if (result == DNS_ERR_NONE && addresses != NULL) print_addresses(type, count, addresses);
  printf("\n");
}

static inline void on_addresses(int result, struct evutil_addrinfo* list, void* arg) {
  printf("%6ld %s: %s", elapsed(), (const char*)arg, evutil_gai_strerror(result));
  for (const struct evutil_addrinfo* one = list; one != NULL; one = one->ai_next) {
    char text[64] = "?";
    const struct sockaddr_in* ipv4 = (const struct sockaddr_in*)one->ai_addr;
    const struct sockaddr_in6* ipv6 = (const struct sockaddr_in6*)one->ai_addr;
    const int is_ipv4 = one->ai_family == AF_INET;
    inet_ntop(one->ai_family, is_ipv4 ? (const void*)&ipv4->sin_addr : &ipv6->sin6_addr, text,
              sizeof text);
    printf(" [%s]:%d %d/%d/%d flags %#x length %d name %s;", text,
           ntohs(is_ipv4 ? ipv4->sin_port : ipv6->sin6_port), one->ai_family, one->ai_socktype,
           one->ai_protocol, (unsigned)one->ai_flags, (int)one->ai_addrlen,
           one->ai_canonname != NULL ? one->ai_canonname : "-");
  }
  printf("\n");
  if (list != NULL) evutil_freeaddrinfo(list);
}
