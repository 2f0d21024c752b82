// HTTP and DNS when memory runs out: each block that is asked for is missing once, alone and with
// all that come after it. Nothing is left, and whoever waits for an answer is told that there is
// none.
#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <csignal>

#include "scarce_memory.h"

namespace {

using spate::dropin::ScarceMemory;

constexpr int kBlocksMost = 2000;
constexpr timeval kPatience{0, 20'000};

// A socket on loopback, and its address.
struct Socket {
  explicit Socket(int type) : fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd, any(), size), 0);
    EXPECT_EQ(::getsockname(fd, any(), &size), 0);
  }
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address); }

  int fd;
  sockaddr_in address{};
};

int waiting = 0;  // What the program has not been told yet.

// Or until the loop tells that it cannot go on, or the time is over.
void run_until_told(event_base* base, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (waiting > 0 && std::chrono::steady_clock::now() < end) {
    if (event_base_loop(base, EVLOOP_NONBLOCK) < 0) return;
  }
}

// ---- HTTP

void answer(evhttp_request* request, void*) {
  evbuffer* body = evbuffer_new();
  if (body != nullptr) evbuffer_add(body, "text", 4);
  evhttp_add_header(evhttp_request_get_output_headers(request), "Name", "value");
  evhttp_send_reply(request, HTTP_OK, "OK", body);
  if (body != nullptr) evbuffer_free(body);
}

void answer_in_pieces(evhttp_request* request, void*) {
  evbuffer* piece = evbuffer_new();
  evhttp_send_reply_start(request, HTTP_OK, "OK");
  for (int i = 0; piece != nullptr && i < 2; ++i) {
    evbuffer_add(piece, "piece", 5);
    evhttp_send_reply_chunk(request, piece);
  }
  evhttp_send_reply_end(request);
  if (piece != nullptr) evbuffer_free(piece);
}

void ask(evhttp_connection* client, evhttp_cmd_type type, const char* path) {
  bool is_told = false;
  evhttp_request* request = evhttp_request_new(
      [](evhttp_request*, void* told) {
        --waiting;
        *static_cast<bool*>(told) = true;
      },
      &is_told);
  if (request == nullptr) return;
  evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "localhost");
  if (type == EVHTTP_REQ_POST) evbuffer_add(evhttp_request_get_output_buffer(request), "body", 4);
  ++waiting;
  if (evhttp_make_request(client, request, type, path) != 0 && !is_told) --waiting;
  run_until_told(evhttp_connection_get_base(client), std::chrono::seconds(10));
}

void http(event_base* base) {
  Socket listener(SOCK_STREAM);
  ::listen(listener.fd, 16);
  evhttp* server = evhttp_new(base);
  if (server == nullptr || evhttp_accept_socket(server, listener.fd) != 0) ::close(listener.fd);
  if (server != nullptr) {
    evhttp_set_gencb(server, answer, nullptr);
    evhttp_set_cb(server, "/pieces", answer_in_pieces, nullptr);
    evhttp_add_server_alias(server, "alias");
  }
  evhttp_connection* client =
      evhttp_connection_base_new(base, nullptr, "127.0.0.1", ntohs(listener.address.sin_port));
  if (client != nullptr) {
    evhttp_connection_set_timeout_tv(client, &kPatience);
    ask(client, EVHTTP_REQ_GET, "/");
    ask(client, EVHTTP_REQ_POST, "/pieces?a=b");
    ask(client, EVHTTP_REQ_GET, "/");
    evhttp_connection_free(client);
  }
  if (server != nullptr) evhttp_free(server);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

void http_texts(event_base*) {
  evkeyvalq headers{};
  TAILQ_INIT(&headers);
  evhttp_parse_query_str("a=1&b=2%20", &headers);
  evhttp_clear_headers(&headers);
  if (evhttp_uri* uri = evhttp_uri_parse("http://user@host:1/path?query#fragment")) {
    evhttp_uri_set_path(uri, "/other");
    evhttp_uri_free(uri);
  }
  for (char* text :
       {evhttp_encode_uri("a b"), evhttp_htmlescape("<a>"), evhttp_uridecode("%20", 1, nullptr)}) {
    ScarceMemory::give_back(text);
  }
}

// ---- DNS

void answer_question(evdns_server_request* request, void*) {
  const in_addr address{htonl(0xc0000201)};
  const char* name = request->nquestions > 0 ? request->questions[0]->name : "none";
  evdns_server_request_add_a_reply(request, name, 1, &address, 60);
  evdns_server_request_add_cname_reply(request, name, "other.example", 60);
  if (evdns_server_request_respond(request, 0) != 0) evdns_server_request_drop(request);
}

void on_lookup(int, char, int, int, void*, void*) { --waiting; }

void on_addresses(int, evutil_addrinfo* list, void*) {
  --waiting;
  if (list != nullptr) evutil_freeaddrinfo(list);
}

void look_up(evdns_base* dns) {
  const in_addr address{htonl(0xc0000201)};
  evutil_addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  for (const char* name : {"www.example.com", "www", "localhost"}) {
    ++waiting;
    if (evdns_base_resolve_ipv4(dns, name, 0, on_lookup, nullptr) == nullptr) --waiting;
    ++waiting;  // Whatever it returns, it tells.
    evdns_getaddrinfo(dns, name, "80", &hints, on_addresses, nullptr);
  }
  ++waiting;
  if (evdns_base_resolve_reverse(dns, &address, 0, on_lookup, nullptr) == nullptr) --waiting;
}

void dns(event_base* base) {
  Socket server(SOCK_DGRAM);
  evdns_server_port* port =
      evdns_add_server_port_with_base(base, server.fd, 0, answer_question, nullptr);
  evdns_base* resolver = evdns_base_new(base, 0);
  if (resolver != nullptr) {
    evdns_base_set_option(resolver, "timeout", "0.005");
    evdns_base_set_option(resolver, "attempts", "1");
    evdns_base_set_option(resolver, "initial-probe-timeout", "0.005");
    evdns_base_load_hosts(resolver, nullptr);
    evdns_base_search_add(resolver, "search.test");
    evdns_base_search_ndots_set(resolver, 2);
    if (evdns_base_nameserver_sockaddr_add(resolver, server.any(), sizeof server.address, 0) == 0) {
      look_up(resolver);
      run_until_told(base, std::chrono::milliseconds(15));
    }
    look_up(resolver);
    evdns_base_free(resolver, 1);  // Which tells those who wait still: there may be no timer.
  }
  if (port != nullptr) {
    evdns_close_server_port(port);
  } else {
    ::close(server.fd);
  }
}

// ----

// What is freed in the loop's next turn is so before the base goes.
void expect_nothing_left(ScarceMemory& memory, void (*scenario)(event_base*), int allowed,
                         int denials) {
  SCOPED_TRACE(testing::Message() << "block " << allowed << ", " << denials << " denied");
  const int before = memory.blocks();
  waiting = 0;
  event_base* base = event_base_new();
  memory.allow(allowed, denials);
  scenario(base);
  memory.allow_all();
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(memory.blocks(), before);
}

void run_without_each_block(void (*scenario)(event_base*)) {
  std::signal(SIGPIPE, SIG_IGN);
  ScarceMemory memory;
  expect_nothing_left(memory, scenario, kBlocksMost, 1);
  for (const int denials : {1, INT_MAX}) {
    int allowed = 0;
    do {
      expect_nothing_left(memory, scenario, allowed, denials);
      ASSERT_LT(++allowed, kBlocksMost);
    } while (memory.is_denied() && !testing::Test::HasFailure());
    EXPECT_GT(allowed, 5);
  }
}

TEST(WithoutMemory, HttpTellsWhoWaits) { run_without_each_block(http); }
TEST(WithoutMemory, TextsOfHttpAreNotLeft) { run_without_each_block(http_texts); }
TEST(WithoutMemory, DnsTellsWhoWaits) { run_without_each_block(dns); }

}  // namespace
