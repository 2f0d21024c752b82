// evhttp where it differs from the original on purpose: ambiguous messages are rejected, and
// callbacks may free objects. The sanitizers report leaks and uses after free.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>

#include "evhttp_sockets.h"

namespace {

using Answer = std::function<void(evhttp_request*)>;

class EvhttpServer : public testing::Test {
 protected:
  EvhttpServer() : base_(event_base_new()), server_(evhttp_new(base_)) {
    evhttp_set_gencb(
        server_,
        [](evhttp_request* request, void* self) {
          ++static_cast<EvhttpServer*>(self)->requests_;
          static_cast<EvhttpServer*>(self)->answer_(request);
        },
        this);
    const int fd = listen_anywhere();
    port_ = port_of(fd);
    evhttp_accept_socket(server_, fd);
  }
  ~EvhttpServer() override {
    if (server_ != nullptr) evhttp_free(server_);
    event_base_free(base_);
  }

  void turn() { event_base_loop(base_, EVLOOP_NONBLOCK); }

  // Returns the whole reply to the bytes, without waiting for time to pass.
  std::string exchange(std::string_view text) {
    const int fd = connect_to(port_);
    send_text(fd, text);
    std::string received;
    for (int i = 0; i < 12; ++i) {
      turn();
      receive(fd, received);
    }
    ::close(fd);
    turn();
    return received;
  }

  std::string status(std::string_view text) { return exchange(text).substr(0, 12); }
  std::string post(std::string_view headers) {
    return status("POST / HTTP/1.1\r\n" + std::string(headers));
  }

  event_base* base_;
  evhttp* server_;
  std::uint16_t port_ = 0;
  int requests_ = 0;
  Answer answer_ = reply_with_text;
};

constexpr const char* kOk = "HTTP/1.1 200";
constexpr const char* kBad = "HTTP/1.1 400";
constexpr const char* kTooLarge = "HTTP/1.1 413";

TEST_F(EvhttpServer, SendsResponseAfterCallbackReturns) {
  answer_ = reply_with_text;
  const int fd = connect_to(port_);
  turn();
  send_text(fd, "GET / HTTP/1.1\r\n\r\n");
  event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  EXPECT_EQ(requests_, 1);
  std::string received;
  receive(fd, received);
  EXPECT_TRUE(received.ends_with("\r\n\r\ntext")) << received;
  ::close(fd);
}

TEST_F(EvhttpServer, NothingIsSentIfConnectionIsFreedAfterReply) {
  answer_ = [](evhttp_request* request) {
    reply_with_text(request);
    evhttp_connection_free(evhttp_request_get_connection(request));
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\n\r\n"), "");
}

TEST_F(EvhttpServer, ResponseIsSentByLoopAfterWritingIsEnabled) {
  bufferevent* bev = nullptr;
  answer_ = [&bev](evhttp_request* request) {
    reply_with_text(request);
    bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
    bufferevent_disable(bev, EV_WRITE);
  };
  const int fd = connect_to(port_);
  turn();
  send_text(fd, "GET / HTTP/1.1\r\n\r\n");
  turn();
  std::string received;
  receive(fd, received);
  EXPECT_EQ(received, "");
  bufferevent_enable(bev, EV_WRITE);
  turn();
  receive(fd, received);
  EXPECT_TRUE(received.ends_with("text")) << received;
  ::close(fd);
}

TEST_F(EvhttpServer, RefusesNonNumericLength) {
  for (const char* length : {"+3", "-3", "3x", "0x3", "", "3, 3", "9999999999999999999"}) {
    EXPECT_EQ(post("Content-Length: " + std::string(length) + "\r\n\r\nabc"), kBad) << length;
  }
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(post("Content-Length: 0000000000000000000000003\r\n\r\nabc"), kOk);
}

TEST_F(EvhttpServer, RefusesConflictingLengths) {
  EXPECT_EQ(post("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), kBad);
  EXPECT_EQ(post("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), kOk);
}

TEST_F(EvhttpServer, RefusesInvalidTransferEncoding) {
  for (const char* encoding :
       {"gzip", "", "xchunked", "chunked, gzip", "chunked,",
        "\x0b"
        "chunked",
        "chunked\r\nTransfer-Encoding: chunked", "chunked\r\nContent-Length: 3"}) {
    EXPECT_EQ(post("Transfer-Encoding: " + std::string(encoding) + "\r\n\r\n0\r\n\r\n"), kBad)
        << encoding;
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(EvhttpServer, RefusesBodyThatWouldParseAsNextRequest) {
  for (const char* method : {"HEAD", "TRACE"}) {
    evhttp_set_allowed_methods(server_, EVHTTP_REQ_HEAD | EVHTTP_REQ_TRACE);
    const std::string line = std::string(method) + " / HTTP/1.1\r\n";
    EXPECT_EQ(status(line + "Content-Length: 1\r\n\r\na"), kBad);
    EXPECT_EQ(status(line + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), kBad);
    EXPECT_EQ(status(line + "Content-Length: 0\r\n\r\n"), kOk);
  }
}

TEST_F(EvhttpServer, RefusesMalformedChunks) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  for (const char* chunks :
       {"0x3\r\nabc", "+3\r\nabc", " 3\r\nabc", "-3\r\nabc", "\r\n3\r\nabc", "3\r\nabcd\r\n",
        "3\r\nabc4\r\n", "1000000000000000\r\n", ";\r\n", "3\r\nabc\r\n\r\n3\r\nabc"}) {
    EXPECT_EQ(post(chunked + chunks + "\r\n0\r\n\r\n"), kTooLarge) << chunks;
  }
  EXPECT_EQ(post(chunked + std::string(65, '0')), kTooLarge);
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(post(chunked + "0003 \r\nabc\r\n0\r\n\r\n"), kOk);
}

TEST_F(EvhttpServer, RefusesMalformedTrailers) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
  const std::string next = "GET /second HTTP/1.1\r\n\r\n";
  for (const char* fields : {"XX\r\n", " first\r\n", "A : b\r\n", ": b\r\n", "A: b\rc\r\n"}) {
    EXPECT_EQ(post(chunked + fields + "\r\n"), kTooLarge) << fields;
    EXPECT_EQ(post(chunked + fields + next), kTooLarge) << fields;
  }
  EXPECT_EQ(post(chunked + std::string("\0\r\n\r\n", 5)), kTooLarge);
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(post(chunked + "A: b\r\n more\r\nC: d\r\n\r\n"), kOk);
}

TEST_F(EvhttpServer, RefusesHeadersWithoutName) {
  for (const char* header : {"A : b", ": b", "A( : b", "A\x01: b", "A: b\rc", "\xc3\xa4: b"}) {
    EXPECT_EQ(post(std::string(header) + "\r\n\r\n"), kBad) << header;
  }
  EXPECT_EQ(post(std::string("A: b\0c\r\n\r\n", 10)), kBad);
}

TEST_F(EvhttpServer, RefusesOtherVersions) {
  for (const char* version : {"1.10", "1.-1", "+1.1", "01.1", "2.0", "1.", "1.1x"}) {
    EXPECT_EQ(status("GET / HTTP/" + std::string(version) + "\r\n\r\n"), kBad) << version;
  }
}

TEST_F(EvhttpServer, NothingFollowsResponseWithoutBody) {
  const std::string two = "HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n";
  const std::string heads = exchange(two);
  const std::size_t end = heads.find("\r\n\r\n");
  EXPECT_EQ(heads.substr(end + 4, 12), kOk);
  for (const int code : {101, 204, 304}) {
    answer_ = [code](evhttp_request* request) {
      evbuffer* body = evbuffer_new();
      evbuffer_add(body, "text", 4);
      evhttp_send_reply(request, code, nullptr, body);
      evbuffer_free(body);
    };
    EXPECT_TRUE(exchange("GET / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n")) << code;
  }
}

TEST_F(EvhttpServer, ResponseOfUnknownLengthEndsWithConnection) {
  answer_ = [](evhttp_request* request) {
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    evbuffer* piece = evbuffer_new();
    evbuffer_add(piece, "text", 4);
    evhttp_send_reply_chunk(request, piece);
    evbuffer_free(piece);
    evhttp_send_reply_end(request);
  };
  const std::string request = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  const std::string answer = exchange(request + request);
  EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\ntext"));
  EXPECT_EQ(requests_, 1);
}

TEST_F(EvhttpServer, OutputBufferIsSentAsChunk) {
  answer_ = [](evhttp_request* request) {
    evbuffer_add(evhttp_request_get_output_buffer(request), "text", 4);
    evhttp_send_reply_start(request, HTTP_OK, "OK");
    evhttp_send_reply_end(request);
  };
  EXPECT_TRUE(exchange("GET / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n4\r\ntext\r\n0\r\n\r\n"));
}

TEST_F(EvhttpServer, ConnectErrorResponseHasContentLength) {
  evhttp_set_allowed_methods(server_, EVHTTP_REQ_CONNECT);
  answer_ = [](evhttp_request* request) {
    EXPECT_STREQ(evhttp_request_get_uri(request), "user@host:1");
    EXPECT_STREQ(evhttp_request_get_host(request), "host");
    evhttp_send_error(request, HTTP_NOTFOUND, nullptr);
  };
  const std::string answer = exchange("CONNECT user@host:1 HTTP/1.1\r\n\r\n");
  EXPECT_NE(answer.find("\r\nContent-Length: 90\r\n"), std::string::npos);
}

TEST_F(EvhttpServer, OwnedRequestLosesItsFreedConnection) {
  evhttp_request* kept = nullptr;
  answer_ = [&kept](evhttp_request* request) {
    kept = request;
    evhttp_request_own(request);
    evhttp_connection_free(evhttp_request_get_connection(request));
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\n\r\n"), "");
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(evhttp_request_get_connection(kept), nullptr);
  evhttp_send_reply_start(kept, HTTP_OK, "OK");
  evhttp_send_reply_end(kept);
}

TEST_F(EvhttpServer, MayBeFreedInCallback) {
  answer_ = [this](evhttp_request*) {
    evhttp_free(server_);
    server_ = nullptr;
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"), "");
  EXPECT_EQ(requests_, 1);
}

// ---- clients

// A filter that moves a byte at a time.
bufferevent_filter_result move_byte(evbuffer* from, evbuffer* to, ev_ssize_t,
                                    bufferevent_flush_mode, void*) {
  return evbuffer_remove_buffer(from, to, 1) == 1 ? BEV_OK : BEV_NEED_MORE;
}

bufferevent* make_filter(event_base* base, void*) {
  bufferevent* const socket = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  return bufferevent_filter_new(socket, move_byte, move_byte, BEV_OPT_CLOSE_ON_FREE, nullptr,
                                nullptr);
}

TEST_F(EvhttpServer, ConnectionOverFilterEndsAtTimeout) {
  evhttp_set_bevcb(server_, make_filter, nullptr);
  const timeval limit{0, 10'000};
  evhttp_set_timeout_tv(server_, &limit);
  const timeval patience{5, 0};
  event_base_loopexit(base_, &patience);
  for (const std::string_view text :
       {"", "GET / HTTP/1.1\r\nA", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"}) {
    const int fd = connect_to(port_);
    send_text(fd, text);
    char bytes[400];
    ssize_t size = -1;
    while (size != 0 && event_base_got_exit(base_) == 0) {
      event_base_loop(base_, EVLOOP_ONCE);
      size = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    }
    EXPECT_EQ(size, 0) << text;
    ::close(fd);
  }
}

TEST_F(EvhttpServer, ContinueIsSentThroughFilter) {
  evhttp_set_bevcb(server_, make_filter, nullptr);
  const int fd = connect_to(port_);
  for (int i = 0; i < 4; ++i) turn();
  send_text(fd, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  for (int i = 0; i < 4; ++i) turn();
  std::string received;
  receive(fd, received);
  EXPECT_EQ(received, "HTTP/1.1 100 Continue\r\n\r\n");
  ::close(fd);
}

class EvhttpClient : public testing::Test {
 protected:
  EvhttpClient() : base_(event_base_new()), listener_(listen_anywhere()) {
    client_ = evhttp_connection_base_new(base_, nullptr, "127.0.0.1", port_of(listener_));
  }
  ~EvhttpClient() override {
    evhttp_connection_free(client_);
    if (peer_ >= 0) ::close(peer_);
    if (listener_ >= 0) ::close(listener_);
    event_base_free(base_);
  }

  void turns() {
    for (int i = 0; i < 12; ++i) {
      event_base_loop(base_, EVLOOP_NONBLOCK);
      if (peer_ >= 0 || listener_ < 0) continue;
      peer_ = ::accept(listener_, nullptr, nullptr);
      const int on = 1;  // Otherwise bytes wait for the client's acknowledgement, in real time.
      ::setsockopt(peer_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
  }

  void ask() {
    evhttp_request* request = evhttp_request_new(
        [](evhttp_request* answer, void* self) {
          auto& test = *static_cast<EvhttpClient*>(self);
          ++test.answers_;
          test.code_ = answer != nullptr ? evhttp_request_get_response_code(answer) : -1;
          test.has_hint_ =
              answer != nullptr && evhttp_find_header(answer->input_headers, "Hint") != nullptr;
        },
        this);
    EXPECT_EQ(evhttp_make_request(client_, request, EVHTTP_REQ_GET, "/"), 0);
    turns();
  }

  event_base* base_;
  int listener_;
  int peer_ = -1;
  evhttp_connection* client_;
  int answers_ = 0;
  int code_ = 0;
  bool has_hint_ = false;
};

TEST_F(EvhttpClient, UnsolicitedContinueIsSkipped) {
  ask();
  send_text(peer_, "HTTP/1.1 100 Continue\r\nHint: a\r\nContent-Length: 7\r\n\r\n");
  turns();
  send_text(peer_, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(code_, 200);
  EXPECT_FALSE(has_hint_);
}

TEST_F(EvhttpClient, FinalResponseIsAwaitedAfterInterimOnes) {
  for (const char* code : {"100", "102", "103", "199"}) {
    ask();
    send_text(peer_, "HTTP/1.1 " + std::string(code) + " Wait\r\nHint: a\r\n\r\n");
    turns();
    EXPECT_EQ(code_, 0) << code;
    send_text(peer_, "HTTP/1.1 103 More\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    turns();
    EXPECT_EQ(code_, 200) << code;
    EXPECT_FALSE(has_hint_) << code;
    code_ = 0;
  }
  EXPECT_EQ(answers_, 4);
}

TEST_F(EvhttpClient, BodyIsSentOnlyAfterContinue) {
  evhttp_request* request = evhttp_request_new([](evhttp_request*, void*) {}, nullptr);
  evbuffer_add(evhttp_request_get_output_buffer(request), "body", 4);
  evhttp_add_header(evhttp_request_get_output_headers(request), "Expect", "100-continue");
  EXPECT_EQ(evhttp_make_request(client_, request, EVHTTP_REQ_POST, "/"), 0);
  turns();
  std::string received;
  receive(peer_, received);
  send_text(peer_, "HTTP/1.1 103 Hints\r\n\r\n");
  turns();
  receive(peer_, received);
  EXPECT_TRUE(received.ends_with("\r\n\r\n")) << received;
  send_text(peer_, "HTTP/1.1 100 Continue\r\n\r\n");
  turns();
  receive(peer_, received);
  EXPECT_TRUE(received.ends_with("\r\n\r\nbody")) << received;
}

TEST_F(EvhttpClient, SwitchingProtocolsIsFinalResponse) {
  ask();
  send_text(peer_, "HTTP/1.1 101 Switching Protocols\r\nHint: a\r\n\r\n");
  turns();
  EXPECT_EQ(code_, 101);
  EXPECT_TRUE(has_hint_);
}

TEST_F(EvhttpClient, InvalidStatusIsRefused) {
  for (const char* status : {"-5", "0", "2x", "+200", "1000000", ""}) {
    ask();
    send_text(peer_, "HTTP/1.1 " + std::string(status) + " OK\r\nContent-Length: 0\r\n\r\n");
    turns();
    EXPECT_EQ(code_, -1) << status;
    ::close(peer_);
    peer_ = -1;
  }
}

TEST_F(EvhttpClient, RequestIsRetriedAfterFailedConnection) {
  ::close(listener_);
  listener_ = -1;
  ask();
  ask();
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(code_, 0);
}

}  // namespace
