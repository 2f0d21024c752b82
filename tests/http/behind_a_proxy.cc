// The PROXY protocol: the trusted proxies, and the use of the address.
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "http/harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::ProxyProtocol;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr std::string_view kLine = "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n";

class BehindAProxy : public HttpServerTest {
 protected:
  BehindAProxy() {
    on_request = [](Exchange exchange) { exchange.respond(exchange.request().peer().to_string()); };
    serve_as(ProxyProtocol::always);
  }
  void serve_as(ProxyProtocol protocol, std::vector<Network> proxies = {}) {
    http::ServerOptions options;
    options.proxy_protocol = protocol;
    options.proxies = std::move(proxies);
    serve_with(std::move(options));
  }
  // Over TCP, where peers have addresses.
  std::string talk_from_loopback(const std::string& text) {
    const Address address = must(server_.listen(Address::loopback_ipv4(0)));
    std::string received;
    bool is_over = false;
    Stream stream;
    StreamCallbacks callbacks;
    callbacks.on_data = [&](Bytes bytes) {
      received += text_of(bytes);
      return bytes.size();
    };
    callbacks.on_closed = [&](std::error_code) { is_over = true; };
    stream = must(Stream::adopt(loop_, connected_socket(address)));
    stream.start(std::move(callbacks));
    stream.write(text);
    while (!is_over && !received.contains("\r\n\r\n")) loop_.run(Run::once);
    turns();
    return received;
  }
  static int connected_socket(const Address& address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, static_cast<const sockaddr*>(address.data()),
                        static_cast<socklen_t>(address.size())),
              0);
    return fd;
  }
};

TEST_F(BehindAProxy, HeaderDeterminesPeerAddress) {
  EXPECT_THAT(talk(std::string(kLine) + std::string(kGet)), EndsWith("\r\n\r\n192.0.2.1:1234"));
  EXPECT_THAT(talk("PROXY TCP6 2001:db8::1 2001:db8::2 1234 80\r\n" + std::string(kGet)),
              EndsWith("\r\n\r\n[2001:db8::1]:1234"));
  const std::string block("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\4\xd2\0\x50", 28);
  EXPECT_THAT(talk(block + std::string(kGet)), EndsWith("\r\n\r\n192.0.2.1:1234"));
}

TEST_F(BehindAProxy, LocalHeaderReportsNoPeerAddress) {
  EXPECT_THAT(talk("PROXY UNKNOWN\r\n" + std::string(kGet)), EndsWith("\r\n\r\nnone"));
  const std::string local("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16);
  EXPECT_THAT(talk(local + std::string(kGet)), EndsWith("\r\n\r\nnone"));
}

TEST_F(BehindAProxy, HeaderMayArriveInPieces) {
  const auto client = connect();
  for (const char c : std::string(kLine) + std::string(kGet)) {
    client->send(std::string(1, c));
    turns(4);
  }
  EXPECT_THAT(client->received, EndsWith("\r\n\r\n192.0.2.1:1234"));
  client->send(std::string(kLine) + std::string(kGet));  // Once a connection.
  turns();
  EXPECT_THAT(client->received, HasSubstr("\r\n\r\n192.0.2.1:1234HTTP/1.1 400 "));
}

TEST_F(BehindAProxy, ConnectionWithoutValidHeaderIsReset) {
  for (const std::string& text : {std::string(kGet), std::string("PROXY TCP4 x y 1 2\r\n"),
                                  std::string("PROXY TCP4 192.0.2.1 192.0.2.2 1234 99999\r\n")}) {
    const std::uint64_t refused = server_.metrics().refused;
    const auto client = connect();
    client->send(text);
    turns();
    EXPECT_EQ(client->error, std::errc::connection_reset) << text;
    EXPECT_EQ(client->received, "") << text;
    EXPECT_EQ(server_.metrics().refused, refused + 1) << text;
    EXPECT_EQ(server_.metrics().connections, 0U) << text;
  }
}

TEST_F(BehindAProxy, MissingHeaderTimesOut) {
  const auto client = connect();
  client->send("PROXY ");
  pass(9s);
  client->send("TCP4 ");
  EXPECT_FALSE(client->is_ended);
  pass(2s);
  EXPECT_TRUE(client->is_ended);
  const auto other = connect();
  other->send(kLine);
  pass(30s);  // The idle timeout applies then.
  EXPECT_FALSE(other->is_ended);
}

TEST_F(BehindAProxy, HeaderIsAcceptedOnlyFromProxies) {
  serve_as(ProxyProtocol::from_proxies, {must(Address::parse("127.0.0.1:9"))});
  EXPECT_THAT(talk_from_loopback(std::string(kLine) + std::string(kGet)),
              EndsWith("\r\n\r\n192.0.2.1:1234"));
  EXPECT_EQ(talk_from_loopback(std::string(kGet)), "");
  EXPECT_THAT(talk(kGet), EndsWith("\r\n\r\nnone"));  // From elsewhere.
  serve_as(ProxyProtocol::from_proxies, {must(Address::parse("127.0.0.2:9"))});
  EXPECT_THAT(talk_from_loopback(std::string(kGet)), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(talk_from_loopback(std::string(kLine) + std::string(kGet)),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(BehindAProxy, HeaderIsRefusedUnlessEnabled) {
  serve_with({});
  EXPECT_THAT(talk(std::string(kLine) + std::string(kGet)), StartsWith("HTTP/1.1 400 "));
}

}  // namespace
}  // namespace spate::testing
