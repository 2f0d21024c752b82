// The PROXY protocol on sockets: sessions, with and without TLS, on a loop and on Workers; a server
// with TLS; and the headers that a Client and a Gateway send.
#include <string>
#include <vector>

#include "http/gateway_harness.h"
#include "spate/net/connect.h"
#include "spate/net/proxy_protocol.h"
#include "spate/net/server.h"
#include "spate/net/workers.h"
#include "streams/harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const Address kClient = must(Address::parse("192.0.2.1:1234"));
const Address kFront = must(Address::parse("192.0.2.2:80"));

std::string header_of(ProxyVersion version) { return proxy_header(kClient, kFront, version); }

// Sends its client's address, then echoes.
struct Named : Session {
  void on_open() override { stream().write(client().to_string() + "\n"); }
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

// A client's connection: it sends a header, performs a handshake if it has a context, and sends
// "hello".
class Talk {
 public:
  Talk(Loop& loop, const Address& address, std::string header, TlsContext tls = {})
      : loop_(loop), header_(std::move(header)), tls_(std::move(tls)) {
    connecting_ = spate::connect(loop, address, [this](Result<Stream> made) {
      Stream stream = must(std::move(made));
      stream.write(header_);
      if (!tls_) return begin(std::move(stream));
      connecting_ = start_tls(std::move(stream), tls_, "localhost", [this](auto secured) {
        secured ? begin(std::move(*secured)) : end();
      });
    });
  }
  // Runs until `text` or the end was received. Returns all received bytes.
  std::string run_to(std::string_view text) {
    run_until(loop_, [&] { return is_over || received.ends_with(text); });
    return received;
  }

  std::string received;
  bool is_over = false;

 private:
  void begin(Stream stream) {
    stream_ = std::move(stream);
    StreamCallbacks callbacks;
    callbacks.on_data = [this](Bytes bytes) {
      received += text_of(bytes);
      return bytes.size();
    };
    callbacks.on_closed = [this](std::error_code) { end(); };
    stream_.start(std::move(callbacks));
    stream_.write("hello");
  }
  void end() { is_over = true; }

  Loop& loop_;
  const std::string header_;
  const TlsContext tls_;
  Connecting connecting_;
  Stream stream_;
};

class ProxiedSessions : public ::testing::Test {
 protected:
  static ServeOptions options(bool has_tls, ProxyProtocol protocol = ProxyProtocol::always) {
    ServeOptions made;
    if (has_tls) made.tls = test_server_context();
    made.proxy_protocol = protocol;
    return made;
  }
  static TlsContext context(bool has_tls) { return has_tls ? test_client_context() : TlsContext(); }
  Server<Named> serve_with(const ServeOptions& with) {
    return must(spate::serve<Named>(*loop_, Address::loopback_ipv4(0), with));
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
};

TEST_F(ProxiedSessions, HaveAddressInHeader) {
  for (const bool has_tls : {false, true}) {
    const auto server = serve_with(options(has_tls));
    for (const ProxyVersion version : {ProxyVersion::v1, ProxyVersion::v2}) {
      Talk talk(*loop_, server.address(), header_of(version), context(has_tls));
      EXPECT_EQ(talk.run_to("hello"), "192.0.2.1:1234\nhello") << has_tls;
    }
  }
}

TEST_F(ProxiedSessions, HavePeerAddressAfterLocalHeader) {
  const auto server = serve_with(options(false));
  Talk talk(*loop_, server.address(), proxy_header({}, {}));
  EXPECT_THAT(talk.run_to("hello"), StartsWith("127.0.0.1:"));
}

TEST_F(ProxiedSessions, HavePeerAddressWithoutProtocol) {
  const auto server = serve_with(options(false, ProxyProtocol::off));
  Talk talk(*loop_, server.address(), "");
  EXPECT_THAT(talk.run_to("hello"), StartsWith("127.0.0.1:"));
}

TEST_F(ProxiedSessions, ReadHeaderFromProxiesOnly) {
  ServeOptions with = options(false, ProxyProtocol::from_proxies);
  with.proxies = {must(Network::parse("127.0.0.0/8"))};
  {
    const auto server = serve_with(with);
    Talk talk(*loop_, server.address(), header_of(ProxyVersion::v1));
    EXPECT_EQ(talk.run_to("hello"), "192.0.2.1:1234\nhello");
  }
  with.proxies = {must(Network::parse("10.0.0.0/8"))};
  const auto server = serve_with(with);
  Talk talk(*loop_, server.address(), "PROXY UNKNOWN\r\n");
  EXPECT_THAT(talk.run_to("hello"), EndsWith("\nPROXY UNKNOWN\r\nhello"));
}

TEST_F(ProxiedSessions, AreNotMadeWithoutValidHeader) {
  for (const bool has_tls : {false, true}) {
    const auto server = serve_with(options(has_tls));
    for (const std::string_view header :
         {"GET / HTTP/1.1\r\n", "PROXY TCP4 x y 1 2\r\n", "PROXY TCP4 192.0.2.1\r\n"}) {
      Talk talk(*loop_, server.address(), std::string(header));
      EXPECT_EQ(talk.run_to("hello"), "") << header;
      EXPECT_TRUE(talk.is_over);
    }
  }
}

TEST_F(ProxiedSessions, AreResetIfHeaderIsLate) {
  ServeOptions with = options(false);
  with.proxy_timeout = 20ms;
  const auto server = serve_with(with);
  Talk talk(*loop_, server.address(), "");
  EXPECT_EQ(talk.run_to("never"), "");
  Talk part(*loop_, server.address(), "PROXY TCP4 192.0");
  EXPECT_EQ(part.run_to("never"), "");
}

TEST_F(ProxiedSessions, DrainWaitsForHeadersUntilItsGrace) {
  auto server = serve_with(options(false));
  int fd = -1;
  const Connecting connecting = spate::connect(*loop_, server.address(), [&](Result<Stream> made) {
    fd = must(must(std::move(made)).release());
  });
  run_until(*loop_, [&] { return fd >= 0; });
  for (int i = 0; i < 10; ++i) loop_->run(Run::no_wait);
  bool is_drained = false;
  server.drain(30ms, [&] { is_drained = true; });
  for (int i = 0; i < 10; ++i) loop_->run(Run::no_wait);
  run_until(*loop_, [&] { return is_drained; });
  EXPECT_TRUE(is_drained);
  close_descriptors({&fd, 1});
}

TEST_F(ProxiedSessions, ServerMayBeDestroyedBeforeHeader) {
  auto server = std::make_unique<Server<Named>>(serve_with(options(false)));
  Talk talk(*loop_, server->address(), "PROXY ");
  for (int i = 0; i < 100; ++i) loop_->run(Run::no_wait);
  server.reset();
  EXPECT_EQ(talk.run_to("never"), "");
}

TEST_F(ProxiedSessions, LoopMayBeDestroyedBeforeHeader) {
  auto server = serve_with(options(false));
  auto talk = std::make_unique<Talk>(*loop_, server.address(), "PROXY ");
  for (int i = 0; i < 100; ++i) loop_->run(Run::no_wait);
  talk.reset();
  loop_.reset();
}

TEST_F(ProxiedSessions, UselessProxiesAreRefused) {
  ServeOptions with = options(false);
  with.proxies = {Address::loopback_ipv4(0)};
  const auto made = spate::serve<Named>(*loop_, Address::loopback_ipv4(0), with);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), std::errc::invalid_argument);
  const auto workers = must(Workers::create({.threads = 1}));
  const auto served = spate::serve<Named>(*workers, Address::loopback_ipv4(0), with);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error(), std::errc::invalid_argument);
}

TEST_F(ProxiedSessions, HaveAddressOnWorkers) {
  const auto workers = must(Workers::create({.threads = 2}));
  for (const bool has_tls : {false, true}) {
    const Address address =
        must(spate::serve<Named>(*workers, Address::loopback_ipv4(0), options(has_tls))).address();
    Talk talk(*loop_, address, header_of(ProxyVersion::v2), context(has_tls));
    EXPECT_EQ(talk.run_to("hello"), "192.0.2.1:1234\nhello") << has_tls;
  }
}

TEST_F(ProxiedSessions, ReadingFailsInMemory) {
  auto [mine, theirs] = must(Stream::memory_pair(*loop_));
  std::error_code error;
  const Connecting reading =
      read_proxy_header(std::move(theirs), 0s, [&](Result<Stream> stream, const ProxyHeader&) {
        error = stream.error();
      });
  run_until(*loop_, [&] { return !reading.is_pending(); });
  EXPECT_EQ(error, std::errc::not_a_socket);
  EXPECT_FALSE(read_proxy_header(Stream(), 0s, [](Result<Stream>, const ProxyHeader&) {})
                   .is_pending());
}

TEST_F(ProxiedSessions, ReadingReportsExtensionsAndLeavesRest) {
  auto [mine, theirs] = must(Stream::socket_pair(*loop_));
  std::string block = header_of(ProxyVersion::v2);
  block[15] = static_cast<char>(block[15] + 5);
  mine.write(block + std::string("\x01\0\2h2rest", 9));
  std::string extensions;
  std::string rest;
  Stream stream;
  const Connecting reading = read_proxy_header(
      std::move(theirs), 1s, [&](Result<Stream> made, const ProxyHeader& header) {
        extensions = text_of(header.extensions);
        stream = must(std::move(made));
        StreamCallbacks callbacks;
        callbacks.on_data = [&](Bytes bytes) {
          rest += text_of(bytes);
          return bytes.size();
        };
        stream.start(std::move(callbacks));
      });
  run_until(*loop_, [&] { return rest == "rest"; });
  EXPECT_EQ(extensions, std::string("\x01\0\2h2", 5));
}

// ---- HTTP with TLS

class ProxiedTlsServer : public ProxiedSessions {
 protected:
  ProxiedTlsServer() {
    http::ServerOptions with;
    with.tls = test_server_context();
    with.proxy_protocol = ProxyProtocol::always;
    with.head_timeout = 50ms;
    with.log = [this](const http::AccessRecord& record) {
      logged_ = record.request.peer().to_string();
    };
    server_ = must(http::serve(
        *loop_, Address::loopback_ipv4(0),
        [](http::Exchange exchange) {
          exchange.respond(exchange.request().peer().to_string() +
                           (exchange.request().is_secure() ? " secure" : " plain"));
        },
        std::move(with)));
  }
  // Sends a request with a Client that writes `header`.
  std::string fetch(const std::string& header) {
    http::Client client = must(http::Client::create(*loop_, {.tls = test_client_context()}));
    std::string text;
    const http::Call call = client.fetch(
        "https://localhost:" + std::to_string(server_.address().port()) + "/",
        [&](Result<http::Response> response) {
          text = response ? std::string(response->text()) : response.error().message();
        },
        {.address = server_.address(), .proxy_header = header});
    run_until(*loop_, [&] { return !text.empty(); });
    return text;
  }

  http::Server server_;
  std::string logged_;
};

TEST_F(ProxiedTlsServer, ReadsHeaderBeforeHandshake) {
  for (const ProxyVersion version : {ProxyVersion::v1, ProxyVersion::v2}) {
    EXPECT_EQ(fetch(header_of(version)), "192.0.2.1:1234 secure");
    EXPECT_EQ(logged_, "192.0.2.1:1234");
  }
  EXPECT_THAT(fetch(proxy_header({}, {})), StartsWith("127.0.0.1:"));
}

TEST_F(ProxiedTlsServer, ResetsConnectionsWithoutHeader) {
  const std::string text = fetch("");
  EXPECT_THAT(text, ::testing::Not(HasSubstr("secure")));
  EXPECT_EQ(server_.metrics().refused, 1u);
  EXPECT_EQ(server_.metrics().accepted, 0u);
  Talk silent(*loop_, server_.address(), "PROXY ");  // Then a timeout, with "hello".
  EXPECT_EQ(silent.run_to("never"), "");
}

TEST_F(ProxiedTlsServer, DrainEndsConnectionsWithoutHeader) {
  Talk talk(*loop_, server_.address(), "");
  for (int i = 0; i < 100; ++i) loop_->run(Run::no_wait);
  bool is_drained = false;
  server_.drain(10ms, [&] { is_drained = true; });
  run_until(*loop_, [&] { return is_drained; });
  EXPECT_TRUE(is_drained);
}

// ---- the sender

TEST_F(GatewayTest, ProxyHeaderPrecedesRequests) {
  make_gateway({.proxy_protocol = ProxyVersion::v1});
  http::ServerOptions with;
  with.proxy_protocol = ProxyProtocol::always;
  serve_with(std::move(with));
  const auto ask_from = [&](std::string_view source) {
    return ask("PROXY TCP4 " + std::string(source) + " 192.0.2.2 1234 80\r\n" +
               "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  const auto first = ask_from("192.0.2.1");
  const auto other = ask_from("192.0.2.7");
  ASSERT_EQ(upstreams.size(), 2u);
  EXPECT_THAT(up(0).heard(), StartsWith("PROXY TCP4 192.0.2.1 0.0.0.0 1234 0\r\nGET / "));
  EXPECT_THAT(up(1).heard(), StartsWith("PROXY TCP4 192.0.2.7 0.0.0.0 1234 0\r\nGET / "));
}

TEST_F(GatewayTest, ProxyHeaderIsSentOncePerConnection) {
  make_gateway({.proxy_protocol = ProxyVersion::v1});
  const auto client = ask(kGet);
  EXPECT_THAT(up(0).heard(), StartsWith("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"));
  up(0).answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turns();
  client->send(kGet);
  turns();
  ASSERT_EQ(upstreams.size(), 1u);
  EXPECT_THAT(up(0).heard(), StartsWith("GET / HTTP/1.1\r\n"));
}

TEST(ProxyHeaderOfACall, IsRefusedWithProxy) {
  const auto loop = must(Loop::create());
  http::Client client = must(http::Client::create(*loop));
  std::error_code error;
  const http::Call call = client.fetch(
      "http://a.example/", [&](Result<http::Response> response) { error = response.error(); },
      {.proxy = must(http::Proxy::parse("http://proxy:3128")),
       .proxy_header = "PROXY UNKNOWN\r\n"});
  run_until(*loop, [&] { return static_cast<bool>(error); });
  EXPECT_EQ(error, std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
