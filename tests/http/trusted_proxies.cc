// ServerOptions::trusted_proxies: the peers that are trusted, and the uses of the client's address.
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "http/http2_harness.h"
#include "spate/http/access_log.h"
#include "spate/http/middleware.h"
#include "spate/net/connect.h"
#include "support/own_file.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kFrom7 =
    "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";

class TrustedProxies : public Http2ServerTest {
 protected:
  TrustedProxies() {
    on_request = [](Exchange exchange) {
      const http::Request& request = exchange.request();
      exchange.respond(request.client().to_string() + " " + request.peer().to_string());
    };
  }
  static http::ServerOptions trusting(const std::vector<std::string_view>& texts) {
    http::ServerOptions options;
    for (const std::string_view text : texts)
      options.trusted_proxies.push_back(must(Network::parse(text)));
    return options;
  }
  // Sends a request from a socket, and returns the response.
  std::string talk_to(const Address& address, std::string_view text) {
    std::string received;
    Stream stream;
    StreamCallbacks callbacks;
    callbacks.on_data = [&](Bytes bytes) {
      received += text_of(bytes);
      return bytes.size();
    };
    bool is_over = false;
    callbacks.on_closed = [&](std::error_code) { is_over = true; };
    Connecting connecting = spate::connect(loop_, address, [&](Result<Stream> made) {
      stream = must(std::move(made));
      stream.start(std::move(callbacks));
      stream.write(text);
    });
    while (!is_over && !received.contains("\r\n\r\n")) loop_.run(Run::once);
    return received;
  }
  std::string talk_over_tcp(std::string_view text) {
    return talk_to(must(server_.listen(Address::loopback_ipv4(0))), text);
  }
};

TEST_F(TrustedProxies, FieldIsIgnoredWithoutTrust) {
  EXPECT_THAT(talk(kFrom7), EndsWith("\r\n\r\nnone none"));
  serve_with(trusting({"10.0.0.0/8", "unix:", "::/0"}));
  EXPECT_THAT(talk_over_tcp(kFrom7), HasSubstr("\r\n\r\n127.0.0.1:"));
}

TEST_F(TrustedProxies, FieldIsReadFromTrustedPeer) {
  serve_with(trusting({"127.0.0.0/8"}));
  EXPECT_THAT(talk_over_tcp(kFrom7), HasSubstr("\r\n\r\n192.0.2.7:0 127.0.0.1:"));
  EXPECT_THAT(talk_over_tcp(kGet), HasSubstr("\r\n\r\n127.0.0.1:"));
  EXPECT_THAT(talk(kFrom7), EndsWith("\r\n\r\nnone none"));
}

TEST_F(TrustedProxies, MappedPeerIsTrustedAsIpv4) {
  serve_with(trusting({"127.0.0.1"}));
  const Address address = must(server_.listen(Address::any_ipv6(0)));
  EXPECT_THAT(talk_to(Address::loopback_ipv4(address.port()), kFrom7),
              HasSubstr("\r\n\r\n192.0.2.7:0 [::ffff:127.0.0.1]:"));
}

TEST_F(TrustedProxies, UnixSocketIsTrustedByItsOwnNetwork) {
  const Address address = must(Address::abstract("spate-trusted-" + std::to_string(::getpid())));
  const auto talk_over_unix = [&] { return talk_to(must(server_.listen(address)), kFrom7); };
  serve_with(trusting({"unix:"}));
  EXPECT_THAT(talk_over_unix(), EndsWith("\r\n\r\n192.0.2.7:0 none"));
  serve_with(trusting({"0.0.0.0/0", "::/0"}));
  EXPECT_THAT(talk_over_unix(), EndsWith("\r\n\r\nnone none"));
}

// Without its own check, a peer whose address is not known any more would be a unix socket.
TEST_F(TrustedProxies, ResetTcpPeerIsNoUnixSocket) {
  std::vector<std::string> clients;
  http::ServerOptions options = trusting({"unix:"});
  options.log = [&](const http::AccessRecord& record) {
    clients.push_back(record.request.client().to_string());
  };
  serve_with(std::move(options));
  const Address address = must(server_.listen(Address::loopback_ipv4(0)));
  bool is_sent = false;
  const Connecting connecting = spate::connect(loop_, address, [&](Result<Stream> made) {
    Stream stream = must(std::move(made));
    stream.write(kFrom7);
    stream.abort();
    is_sent = true;
  });
  while (!is_sent) loop_.run(Run::once);
  turns();
  for (const std::string& client : clients) EXPECT_THAT(client, ::testing::Not(StartsWith("192.")));
}

TEST_F(TrustedProxies, AddressInProxyHeaderDecides) {
  http::ServerOptions options = trusting({"192.0.2.0/24"});
  options.proxy_protocol = http::ProxyProtocol::always;
  serve_with(std::move(options));
  const std::string more = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n";
  EXPECT_THAT(talk("PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n" + more),
              EndsWith("\r\n\r\n198.51.100.7:0 192.0.2.1:1234"));
  EXPECT_THAT(talk("PROXY TCP4 203.0.113.1 192.0.2.2 1234 80\r\n" + more),
              EndsWith("\r\n\r\n203.0.113.1:1234 203.0.113.1:1234"));
}

TEST_F(TrustedProxies, FieldIsSelectable) {
  const std::string both =
      "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=\"[2001:db8::1]:8\";proto=https\r\n"
      "X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.8\r\n\r\n";
  for (const auto& [field, client] : {std::pair{"Forwarded", "[2001:db8::1]:8 none"},
                                      std::pair{"x-forwarded-for", "192.0.2.7:0 none"},
                                      std::pair{"X-Real-IP", "192.0.2.8:0 none"}}) {
    http::ServerOptions options = trusting({"unix:"});
    options.client_field = field;
    serve_with(std::move(options));
    EXPECT_THAT(talk(both), EndsWith(client)) << field;
  }
}

TEST_F(TrustedProxies, InvalidFieldIsRefused) {
  for (const char* field : {"", "X Forwarded", "X-Forwarded-For:"}) {
    http::ServerOptions options = trusting({"unix:"});
    options.client_field = field;
    const auto made = http::Server::create(loop_, [](Exchange) {}, std::move(options));
    ASSERT_FALSE(made) << field;
    EXPECT_EQ(made.error(), std::errc::invalid_argument);
  }
}

TEST_F(TrustedProxies, FieldIsReadOverHttp2) {
  serve2(trusting({"unix:"}));
  EXPECT_EQ(ask({{"x-forwarded-for", "192.0.2.7"}}).body, "192.0.2.7:0 none");
  EXPECT_EQ(ask({{"x-forwarded-for", "192.0.2.7, _hidden"}}).body, "none none");
  EXPECT_EQ(ask({{"x-forwarded-for", "192.0.2.6"}, {"x-forwarded-for", "192.0.2.7"}}).body,
            "192.0.2.7:0 none");
  serve2(trusting({"127.0.0.1"}));
  EXPECT_EQ(ask({{"x-forwarded-for", "192.0.2.7"}}).body, "none none");
  http::ServerOptions options = trusting({"unix:"});
  options.client_field = "Forwarded";
  serve2(std::move(options));
  EXPECT_EQ(ask({{"forwarded", "for=unknown, for=\"192.0.2.7:9\""}}).body, "192.0.2.7:9 none");
}

// The connection, or the stream, is lost before the log is called.
TEST_F(TrustedProxies, LogHasClientOfLostExchange) {
  std::vector<std::string> clients;
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  http::ServerOptions options = trusting({"unix:"});
  options.log = [&](const http::AccessRecord& record) {
    clients.push_back(record.request.client().to_string());
  };
  serve2(std::move(options));
  const auto client = connect();
  client->send(kFrom7);
  turns();
  client->stream().abort();
  turns();
  const auto client2 = connect2();
  client2->get("/", {{"x-forwarded-for", "192.0.2.8"}});
  turns();
  kept.back().abort();
  turns();
  EXPECT_THAT(clients, ::testing::ElementsAre("192.0.2.7:0", "192.0.2.8:0"));
}

TEST_F(TrustedProxies, RateLimitCountsEachClient) {
  struct Hello final : http::Service {
    void on_request(Exchange exchange) override { exchange.respond("hello\n"); }
  } hello;
  http::RateLimit limit(hello, {.rate = 1, .burst = 1});
  server_ = must(http::Server::create(loop_, limit, trusting({"unix:"})));
  const auto ask_as = [&](const std::string& client) {
    return talk("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n\r\n");
  };
  EXPECT_THAT(ask_as("192.0.2.7"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask_as("1.2.3.4, 192.0.2.7"), StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(ask_as("192.0.2.8"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask_as("2001:db8::1"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask_as("2001:db8::2"), StartsWith("HTTP/1.1 429 "));
}

TEST_F(TrustedProxies, AccessLogHasClient) {
  for (const auto& [format, text] :
       {std::pair{http::AccessLogFormat::common, "192.0.2.7 - - ["},
        std::pair{http::AccessLogFormat::json, ",\"client\":\"192.0.2.7\",\"peer\":\"\","}}) {
    const OwnFile file("log", "");
    {
      const auto log = must(http::AccessLog::open(file.path(), {.format = format}));
      http::ServerOptions options = trusting({"unix:"});
      options.log = log.writer();
      serve_with(std::move(options));
      talk(kFrom7);
      serve_with({});
    }
    std::stringstream written;
    written << std::ifstream(file.path()).rdbuf();
    EXPECT_THAT(written.str(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace spate::testing
