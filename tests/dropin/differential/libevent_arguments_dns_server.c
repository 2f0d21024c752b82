// DNS servers, with null pointers, invalid sockets and numbers out of range. Each byte that a
// client receives is printed.
//
// Left out are names in records that are null: the original takes them, and crashes when it sends.
// differential: --undefined
#include <event2/dns_struct.h>
#include <fcntl.h>

#include "arguments.h"
#include "libevent_dns.h"

static struct evdns_server_port* port;
static struct sockaddr_in port_address;
static int port_fd;
static int client;
static struct evdns_server_request* request;  // The received one.

// ---- domains

static const Value kSocketValues[] = {{"its", 0}, {"-1", -1}, {"closed", 400}, {"min", INT_MIN}};
static const Domain kSockets = DOMAIN_OF(kSocketValues);

static const Value kSectionValues[] = {{"-1", -1},  {"answer", 0}, {"authority", 1},
                                       {"more", 2}, {"3", 3},      {"max", INT_MAX}};
static const Domain kSections = DOMAIN_OF(kSectionValues);

static const char* const kNames[] = {NULL, "", "a", "a.x"};
static const Value kNameValues[] = {{"null", 0}, {"\"\"", 1}, {"a", 2}, {"a.x", 3}};
static const Domain kNameDomain = DOMAIN_OF(kNameValues);

// An empty name is the root; the original may write a compression pointer for it.
static const Domain kOtherNames = {kNameValues + 2, 2};

static const Value kDataValues[] = {{"null", 0}, {"name", 1}};
static const Domain kDatas = DOMAIN_OF(kDataValues);
static const char kData[400] = "b.x";

static const Value kSizeValues[] = {{"min", INT_MIN}, {"-1", -1}, {"0", 0},    {"1", 1},
                                    {"15", 15},       {"16", 16}, {"300", 300}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kCountValues[] = {{"min", INT_MIN}, {"-1", -1}, {"0", 0}, {"1", 1}, {"20", 20}};
static const Domain kCounts = DOMAIN_OF(kCountValues);

// ---- the world

static void on_request(struct evdns_server_request* asked, void* argument) {
  printf("  asked, %d questions, argument %d\n", asked->nquestions, argument == NULL);
  request = asked;
}

static void send_question(void) {
  Packet packet = {.size = 0};
  put_header(&packet, 7, kRd, 1, 0, 0, 0);
  put_name(&packet, "www.x");
  put16(&packet, 1);
  put16(&packet, 1);
  sendto(client, packet.bytes, packet.size, 0, (struct sockaddr*)&port_address,
         sizeof port_address);
}

static void open_sockets(void) {
  struct sockaddr_in own;
  port_fd = open_server(&port_address);
  client = open_server(&own);
  evutil_make_socket_nonblocking(port_fd);
  base = event_base_new();
}

static void open_request(void) {
  open_sockets();
  port = evdns_add_server_port_with_base(base, port_fd, 0, on_request, NULL);
  send_question();
  event_base_loop(base, EVLOOP_NONBLOCK);
}

static void show_reply(void) {
  unsigned char bytes[1000];
  const ssize_t size = recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
  printf("reply of %zd:", size);
  for (ssize_t i = 0; i < size; i++) printf(" %02x", bytes[i]);
  printf("\n");
}

// Responds with the records added to the request.
static void close_request(int result) {
  printf("result: %d\n", result);
  printf("respond: %d\n", evdns_server_request_respond(request, 0));
  show_reply();
  evdns_close_server_port(port);
  printf("closed: %d\n", fcntl(port_fd, F_GETFD) < 0);
}

// ---- calls

static void call_port(const long* at) {
  open_sockets();
  port = evdns_add_server_port_with_base(at[0] ? base : NULL, at[1] == 0 ? port_fd : (int)at[1],
                                         (int)at[2], at[3] ? on_request : NULL, NULL);
  printf("port: %d\n", port != NULL);
  if (port == NULL) return;
  send_question();
  event_base_loop(base, EVLOOP_NONBLOCK);
  evdns_close_server_port(port);
}

static void call_close(const long* at) {
  open_request();
  evdns_close_server_port(at[0] ? port : NULL);
  printf("respond: %d\n", evdns_server_request_respond(request, 0));
  show_reply();
}

static void call_set_flags(const long* at) {
  open_request();
  evdns_server_request_set_flags(at[0] ? request : NULL, (int)at[1]);
  close_request(0);
}

static void call_add(const long* at) {
  if (at[3] && !at[4]) return;
  open_request();
  close_request(evdns_server_request_add_reply(request, (int)at[0], kNames[at[1]], 16, 1, 5,
                                               (int)at[2], (int)at[3], at[4] ? kData : NULL));
}

static void call_numbers(const long* at) {
  open_request();
  close_request(evdns_server_request_add_reply(request, 0, "a", (int)at[0], (int)at[1], (int)at[2],
                                               4, 0, kData));
}

static void call_addresses(const long* at) {
  open_request();
  close_request((at[0] ? evdns_server_request_add_aaaa_reply : evdns_server_request_add_a_reply)(
      request, kNames[at[1]], (int)at[2], at[3] ? kData : NULL, (int)at[4]));
}

static void call_pointer(const long* at) {
  struct in_addr address = {htonl(0x01020304)};
  open_request();
  close_request(evdns_server_request_add_ptr_reply(request, at[0] ? &address : NULL, kNames[at[1]],
                                                   kNames[at[2]], (int)at[3]));
}

static void call_alias(const long* at) {
  open_request();
  close_request(
      evdns_server_request_add_cname_reply(request, kNames[at[0]], kNames[at[1]], (int)at[2]));
}

static void call_respond(const long* at) {
  open_request();
  const int result = evdns_server_request_respond(at[0] ? request : NULL, (int)at[1]);
  printf("result: %d\n", result);
  show_reply();
  if (result < 0) printf("drop: %d\n", evdns_server_request_drop(request));
  evdns_close_server_port(port);
}

static void call_drop(const long* at) {
  open_request();
  printf("drop: %d\n", evdns_server_request_drop(at[0] ? request : NULL));
  show_reply();
  evdns_close_server_port(port);
}

static void call_address(const long* at) {
  struct sockaddr_storage address = {.ss_family = 77};
  open_request();
  const int size = evdns_server_request_get_requesting_addr(
      at[0] ? request : NULL, at[1] ? (struct sockaddr*)&address : NULL, (int)at[2]);
  printf("family: %d\n", address.ss_family);
  close_request(size);
}

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evdns_add_server_port_with_base",
       call_port,
       {&kBooleans, &kSockets, &kNumbers, &kBooleans}},
      {"evdns_close_server_port", call_close, {&kBooleans}},
      {"evdns_server_request_set_flags", call_set_flags, {&kBooleans, &kNumbers}},
      {"evdns_server_request_add_reply",
       call_add,
       {&kSections, &kOtherNames, &kSizes, &kBooleans, &kDatas}},
      {"evdns_server_request_add_reply, numbers", call_numbers, {&kNumbers, &kNumbers, &kNumbers}},
      {"evdns_server_request_add_a_reply",
       call_addresses,
       {&kBooleans, &kOtherNames, &kCounts, &kBooleans, &kNumbers}},
      {"evdns_server_request_add_ptr_reply",
       call_pointer,
       {&kBooleans, &kNameDomain, &kOtherNames, &kNumbers}},
      {"evdns_server_request_add_cname_reply", call_alias, {&kNameDomain, &kOtherNames, &kNumbers}},
      {"evdns_server_request_respond", call_respond, {&kBooleans, &kNumbers}},
      {"evdns_server_request_drop", call_drop, {&kBooleans}},
      {"evdns_server_request_get_requesting_addr", call_address, {&kBooleans, &kBooleans, &kSizes}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
