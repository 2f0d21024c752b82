// Bufferevents, HTTP and DNS when memory runs out: each allocation fails once, alone and with all
// later ones. Nothing leaks, and each pending request gets an error.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
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
#include <cstdint>
#include <string>

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

int waiting = 0;  // Callbacks that are still due.

// Runs until all callbacks came, the loop reports an error, or the time is over.
void run_until_told(event_base* base, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (waiting > 0 && std::chrono::steady_clock::now() < end) {
    if (event_base_loop(base, EVLOOP_NONBLOCK) < 0) return;
  }
}

// ---- bufferevents

void echo(bufferevent* bev, void*) { bufferevent_write_buffer(bev, bufferevent_get_input(bev)); }
void take(bufferevent* bev, void*) {
  evbuffer* input = bufferevent_get_input(bev);
  evbuffer_drain(input, evbuffer_get_length(input));
}
void note(bufferevent*, short, void*) {}

void exchange(event_base* base, bufferevent* asking, bufferevent* answering) {
  if (asking != nullptr && answering != nullptr) {
    bufferevent_setcb(asking, take, nullptr, note, nullptr);
    bufferevent_setcb(answering, echo, nullptr, note, nullptr);
    for (bufferevent* bev : {asking, answering}) bufferevent_enable(bev, EV_READ | EV_WRITE);
    bufferevent_write(asking, "question", 8);
    for (int turn = 0; turn < 4; ++turn) event_base_loop(base, EVLOOP_NONBLOCK);
  }
  if (asking != nullptr) bufferevent_free(asking);
  if (answering != nullptr) bufferevent_free(answering);
}

void bufferevents(event_base* base) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  bufferevent* asking = bufferevent_socket_new(base, fds[0], BEV_OPT_DEFER_CALLBACKS);
  if (asking != nullptr) bufferevent_set_max_single_read(asking, std::size_t{1} << 33);
  exchange(base, asking, bufferevent_socket_new(base, fds[1], 0));
  for (const int fd : fds) ::close(fd);
  bufferevent* pair[2];
  if (bufferevent_pair_new(base, 0, pair) == 0) exchange(base, pair[0], pair[1]);
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

// A piece that could not be made is missing; nothing is cut off, or taken for something else.
bool is_whole(evhttp_request* answered) {
  evbuffer* input = evhttp_request_get_input_buffer(answered);
  std::string body(evbuffer_get_length(input), '\0');
  evbuffer_copyout(input, body.data(), body.size());
  return body.empty() || body == "text" || body == "piece" || body == "piecepiece";
}

void ask(evhttp_connection* client, evhttp_cmd_type type, const char* path) {
  bool is_told = false;
  evhttp_request* request = evhttp_request_new(
      [](evhttp_request* answered, void* told) {
        if (answered != nullptr && evhttp_request_get_response_code(answered) == HTTP_OK) {
          EXPECT_TRUE(is_whole(answered));
        }
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
    ++waiting;  // It calls back whatever it returns.
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
    evdns_base_free(resolver, 1);  // Calls back for pending lookups: their timers may be missing.
  }
  if (port != nullptr) {
    evdns_close_server_port(port);
  } else {
    ::close(server.fd);
  }
}

// ----

// Objects that are freed in the loop's next turn are freed before the base.
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

TEST(OutOfMemory, BuffereventsLeakNothing) { run_without_each_block(bufferevents); }
TEST(OutOfMemory, HttpReportsFailureToItsCallbacks) { run_without_each_block(http); }
TEST(OutOfMemory, HttpTextsLeakNothing) { run_without_each_block(http_texts); }
TEST(OutOfMemory, DnsReportsFailureToItsCallbacks) { run_without_each_block(dns); }

// A server may have a million connections.
TEST(Bufferevent, UsesOneMemoryBlockWhileIdle) {
  ScarceMemory memory;
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  event_base* base = event_base_new();
  bufferevent* bev = bufferevent_socket_new(base, fds[0], 0);
  bufferevent_setcb(bev, echo, nullptr, nullptr, nullptr);
  bufferevent_set_max_single_read(bev, 100);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  event_base_loop(base, EVLOOP_NONBLOCK);
  const int before = memory.blocks();
  ASSERT_EQ(::write(fds[1], "question", 8), 8);
  event_base_loop(base, EVLOOP_NONBLOCK);
  char answered[8];
  EXPECT_EQ(::read(fds[1], answered, sizeof answered), 8);
  EXPECT_EQ(memory.blocks(), before);
  bufferevent_free(bev);
  event_base_loop(base, EVLOOP_NONBLOCK);
  EXPECT_EQ(memory.blocks(), before - 1);
  event_base_free(base);
  for (const int fd : fds) ::close(fd);
}

TEST(Bufferevent, ReportsAnyMaxSingleRead) {
  event_base* base = event_base_new();
  bufferevent* bev = bufferevent_socket_new(base, -1, 0);
  constexpr std::size_t kMost = UINT32_MAX;
  for (const std::size_t size : {std::size_t{1}, kMost - 1, kMost, kMost + 1, std::size_t{7}}) {
    EXPECT_EQ(bufferevent_set_max_single_read(bev, size), 0);
    EXPECT_EQ(bufferevent_get_max_single_read(bev), static_cast<ev_ssize_t>(size));
    EXPECT_EQ(bufferevent_get_max_single_write(bev), 16384);
  }
  bufferevent_free(bev);
  event_base_free(base);
}

// The bufferevent's memory contains it.
TEST(Bufferevent, RunsDeferredBufferCallbacksAfterFree) {
  event_base* base = event_base_new();
  bufferevent* bev = bufferevent_socket_new(base, -1, 0);
  evbuffer* output = bufferevent_get_output(bev);
  std::size_t added = 0;
  evbuffer_defer_callbacks(output, base);
  evbuffer_add_cb(
      output,
      [](evbuffer* buffer, const evbuffer_cb_info* change, void* total) {
        *static_cast<std::size_t*>(total) += change->n_added;
        EXPECT_EQ(evbuffer_get_length(buffer), 4U);
      },
      &added);
  bufferevent_write(bev, "text", 4);
  bufferevent_free(bev);
  event_base_loop(base, EVLOOP_NONBLOCK);
  EXPECT_EQ(added, 4U);
  event_base_free(base);
}

}  // namespace
