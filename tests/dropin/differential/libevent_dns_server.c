// DNS servers: random requests, and programs that answer them anyhow, at once or later. Every seed
// is a script, which prints each request that the program receives, and each byte of the replies.
//
// Left out are messages that crash the original (shorter than a header) or make it send
// uninitialised memory (replies of more than 512 bytes, invalid names); and the root, for which it
// writes a pointer to an earlier one: longer by a byte.
//
// differential: --seeds 1:600
// differential in weather: --seeds 1:300 --chunk 50
#include "libevent_dns.h"

#include <event2/dns_struct.h>
#include <fcntl.h>

enum { kRequestsMost = 4, kRoom = 300 };

static struct evdns_server_port* port;
static struct sockaddr_in port_address;
static int client;
static struct evdns_server_request* held[kRequestsMost];

static const char* some_name(void) {
  static const char* const names[] = {
      "a",   "www.example.com",    "WWW.example.com", "example.com", "mail.example.org",
      "com", "x.y.z.w.example.com"};
  return names[random_below(7)];
}

static void print_bytes(const unsigned char* bytes, ssize_t size) {
  printf("reply of %zd:", size);
  for (ssize_t i = 0; i < size; i++) printf(" %02x", bytes[i]);
  printf("\n");
}

static void take_replies(void) {
  unsigned char bytes[1000];
  ssize_t size;
  while ((size = syscall(SYS_recvfrom, client, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL)) >=
         0) {
    print_bytes(bytes, size);
  }
}

// ---- the program

static size_t add_random_record(struct evdns_server_request* request) {
  static const char addresses[48] = "0123456789abcdefghijklmnopqrstuvwxyz";
  const char* name = some_name();
  const int ttl = random_chance(10) ? -1 : random_below(100000);
  const int count = 1 + random_below(2);
  struct in_addr address = {htonl((uint32_t)random_below(1 << 30))};
  int result;
  switch (random_below(7)) {
    case 0:
      result = evdns_server_request_add_a_reply(request, name, count, addresses, ttl);
      break;
    case 1:
      result = evdns_server_request_add_aaaa_reply(request, name, count, addresses, ttl);
      break;
    case 2:
      result = evdns_server_request_add_cname_reply(request, name, some_name(), ttl);
      break;
    case 3:
      result = evdns_server_request_add_ptr_reply(request, random_chance(70) ? &address : NULL,
                                                  random_chance(30) ? "own.arpa" : NULL,
                                                  some_name(), ttl);
      break;
    case 4:
      result = evdns_server_request_add_reply(request, random_below(5) - 1, name, EVDNS_TYPE_NS, 1,
                                              ttl, 0, 1, some_name());
      break;
    case 5:
      result = evdns_server_request_add_a_reply(request, name, 0, addresses, ttl);
      break;
    default:
      result = evdns_server_request_add_reply(request, random_below(3), name, random_below(70000),
                                              random_below(4), ttl, random_below(40), 0, addresses);
  }
  printf("add: %d\n", result);
  return 60;
}

static void finish_request(struct evdns_server_request* request) {
  if (random_chance(15)) {
    printf("drop: %d\n", evdns_server_request_drop(request));
    return;
  }
  if (random_chance(20)) evdns_server_request_set_flags(request, random_below(0x10000) & 0x0f80);
  const int code = random_chance(70) ? 0 : random_below(16);
  if (random_chance(10)) printf("respond: %d\n", evdns_server_request_respond(request, 16));
  if (random_chance(10)) printf("respond: %d\n", evdns_server_request_respond(request, -1));
  printf("respond %d: %d\n", code, evdns_server_request_respond(request, code));
}

static void on_request(struct evdns_server_request* request, void* arg) {
  struct sockaddr_in from;
  printf("%s: flags %#x, %d questions:", (const char*)arg, (unsigned)request->flags,
         request->nquestions);
  for (int i = 0; i < request->nquestions; i++) {
    const struct evdns_server_question* question = request->questions[i];
    printf(" %s %d %d", question->name, question->type, question->dns_question_class);
  }
  printf("\nfrom: %d",
         evdns_server_request_get_requesting_addr(request, (struct sockaddr*)&from, sizeof from));
  printf(", %d\n", evdns_server_request_get_requesting_addr(request, (struct sockaddr*)&from, 15));
  size_t size = 0;
  while (size < kRoom && random_chance(60)) size += add_random_record(request);
  const int slot = random_below(kRequestsMost);
  if (random_chance(30) && held[slot] == NULL) {
    held[slot] = request;
  } else {
    finish_request(request);
  }
}

// ---- its clients

static void ask(void) {
  Packet packet = {.size = 0};
  const int questions = random_chance(80) ? 1 : random_below(4);
  unsigned flags = random_chance(70) ? kRd : (unsigned)random_below(0x10000);
  if (random_chance(90)) flags &= 0x7fff;
  put_header(&packet, (unsigned)random_below(0x10000), flags, questions, random_below(2), 0,
             random_below(2));
  for (int i = 0; i < questions; i++) {
    if (i > 0 && random_chance(50)) {
      put16(&packet, 0xc00c);
    } else {
      put_name(&packet, some_name());
    }
    put16(&packet, (unsigned)random_below(300));
    put16(&packet, (unsigned)random_below(3));
  }
  if (random_chance(10)) packet.size -= (size_t)random_below((int)packet.size - 11);
  if (random_chance(10)) put(&packet, "trailing", 8);
  if (random_chance(5) && packet.size > 13) packet.bytes[12] = 0x40;
  sendto(client, packet.bytes, packet.size, 0, (struct sockaddr*)&port_address,
         sizeof port_address);
}

static void answer_held(void) {
  const int slot = random_below(kRequestsMost);
  if (held[slot] == NULL) return;
  printf("later: ");
  finish_request(held[slot]);
  held[slot] = NULL;
}

static void run(void) {
  struct sockaddr_in own;
  const int fd = open_server(&port_address);
  client = open_server(&own);
  evutil_make_socket_nonblocking(fd);
  base = event_base_new();
  port = evdns_add_server_port_with_base(base, fd, 0, on_request, "request");
  for (int i = 0; i < 20; i++) {
    if (random_chance(70)) {
      ask();
    } else {
      answer_held();
    }
    if (random_chance(70)) event_base_loop(base, EVLOOP_NONBLOCK);
    take_replies();
  }
  evdns_close_server_port(port);
  for (int slot = 0; slot < kRequestsMost; slot++) {
    if (held[slot] == NULL) continue;
    printf("after closing: ");
    finish_request(held[slot]);
  }
  take_replies();
  printf("closed: %d\n", fcntl(fd, F_GETFD) < 0);
  event_base_free(base);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run); }
