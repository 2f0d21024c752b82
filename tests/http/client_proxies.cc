// A client's connections through proxies, which the test implements.
#include <chrono>
#include <cstdlib>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using http::HttpError;
using http::Proxy;
using http::ProxyKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClientProxies : public HttpClientTest {
 protected:
  static constexpr std::string_view kHere = "http://a.example:8080/x?y";

  void use(ProxyKind kind, const std::string& user = "", const std::string& password = "") {
    make_client({.proxies = {.proxy = {.kind = kind,
                                       .host = "proxy",
                                       .port = 3128,
                                       .user = user,
                                       .password = password}}});
  }
  http::Call begin(std::string_view url = kHere) {
    http::Call call = client_.fetch(url, outcome_.note());
    turns();
    return call;
  }
  // Byte by byte.
  void drip(std::string_view text) {
    for (const char c : text) {
      peers.back()->answer(std::string_view(&c, 1));
      turns(3);
    }
  }
  std::error_code error_after(std::string_view answer) {
    outcome_ = {};
    const http::Call call = begin();
    peers.back()->answer(answer);
    turns();
    EXPECT_TRUE(outcome_.is_there()) << answer;
    EXPECT_EQ(client_.metrics().connections, 0u);
    return outcome_.error();
  }

  Outcome outcome_;
};

TEST_F(ClientProxies, HttpProxyReceivesAbsoluteUrl) {
  use(ProxyKind::http, "me", "secret");
  const http::Call call = begin();
  EXPECT_THAT(opened, ElementsAre("proxy:3128"));
  EXPECT_EQ(peer().heard(),
            "GET http://a.example:8080/x?y HTTP/1.1\r\nHost: a.example:8080\r\n"
            "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome_.text(), "ok");
}

TEST_F(ClientProxies, CredentialsAreOmittedIfNotConfigured) {
  use(ProxyKind::http);
  const http::Call call = begin();
  EXPECT_THAT(peer().heard(), Not(HasSubstr("Authorization")));
}

TEST_F(ClientProxies, TunnelIsRequestedAndUsed) {
  use(ProxyKind::http_tunnel, "me", "secret");
  const http::Call call = begin();
  EXPECT_THAT(opened, ElementsAre("proxy:3128"));
  EXPECT_EQ(peer().heard(),
            "CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example:8080\r\n"
            "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
  drip("HTTP/1.1 103 Wait\r\n\r\nHTTP/1.1 200 Go\r\n\r\n");
  EXPECT_EQ(peer().heard(), "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientProxies, TunnelToIpv6AddressUsesBrackets) {
  use(ProxyKind::http_tunnel);
  const http::Call call = begin("http://[2001:db8::1]/");
  EXPECT_THAT(peer().heard(), StartsWith("CONNECT [2001:db8::1]:80 HTTP/1.1\r\n"));
}

TEST_F(ClientProxies, ProxyThatRefusesTunnelIsError) {
  use(ProxyKind::http_tunnel);
  EXPECT_EQ(error_after("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"), HttpError::proxy_refused);
  EXPECT_EQ(error_after("HTTP/1.1 502 No\r\n\r\n"), HttpError::proxy_refused);
}

TEST_F(ClientProxies, MalformedProxyResponseIsError) {
  use(ProxyKind::http_tunnel);
  EXPECT_EQ(error_after("SSH-2.0\r\n"), HttpError::bad_proxy);
  EXPECT_EQ(error_after("HTTP/1.1 200 Go\r\n\r\nand more"), HttpError::bad_proxy);
  std::string many;
  for (int i = 0; i < 33; ++i) many += "HTTP/1.1 103 Wait\r\n\r\n";
  EXPECT_EQ(error_after(many), HttpError::bad_proxy);
}

TEST_F(ClientProxies, ProxyThatDisconnectsIsError) {
  use(ProxyKind::http_tunnel);
  {
    const http::Call call = begin();
    peer().stream().end();
    turns();
    EXPECT_EQ(outcome_.error(), HttpError::bad_proxy);
  }
  outcome_ = {};
  const http::Call call = begin();
  peer(1).stream().abort();
  turns();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
}

TEST_F(ClientProxies, SilentProxyTriggersConnectTimeout) {
  use(ProxyKind::socks5);
  const http::Call call = client_.fetch(kHere, outcome_.note(), {.deadline = Nanos{0}});
  turns();
  pass(29s);
  EXPECT_FALSE(outcome_.is_there());
  pass(2s);
  EXPECT_EQ(outcome_.error(), Error::connect_timeout);
}

TEST_F(ClientProxies, CallMayBeCancelledDuringTunnelSetup) {
  use(ProxyKind::http_tunnel);
  http::Call call = begin();
  call.cancel();
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_TRUE(peer().is_ended);
}

TEST_F(ClientProxies, Socks5RequestContainsHostName) {
  use(ProxyKind::socks5);
  const http::Call call = begin();
  EXPECT_EQ(peer().heard(), "\x05\x01\x00"s);
  drip("\x05\x00"s);
  EXPECT_EQ(peer().heard(),
            "\x05\x01\x00\x03\x09"
            "a.example\x1f\x90"s);
  drip("\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"s);
  EXPECT_EQ(peer().heard(), "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome_.text(), "ok");
}

TEST_F(ClientProxies, Socks5RequestContainsAddressForIpLiteral) {
  use(ProxyKind::socks5);
  const http::Call first = begin("http://192.0.2.1/");
  peer(0).heard();
  peer(0).answer("\x05\x00"s);
  turns();
  EXPECT_EQ(peer(0).heard(), "\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"s);
  const http::Call second = begin("http://[::1]/");
  peer(1).heard();
  peer(1).answer("\x05\x00"s);
  turns();
  EXPECT_EQ(peer(1).heard(), "\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x50"s);
}

TEST_F(ClientProxies, Socks5AcceptsEachAddressTypeInReplies) {
  use(ProxyKind::socks5);
  for (const std::string& bound : {"\x01" + std::string(4, 'a'), "\x04" + std::string(16, 'a'),
                                   "\x03\x03"
                                   "abc"s}) {
    outcome_ = {};
    client_.close_idle();
    const http::Call call = begin();
    peers.back()->answer("\x05\x00"s);
    turns();
    peers.back()->answer("\x05\x00\x00"s + bound + "\x00\x50"s);
    turns();
    EXPECT_THAT(peers.back()->heard(), HasSubstr("GET /x?y"));
    peers.back()->answer(kOk);
    turns();
    EXPECT_EQ(outcome_.text(), "ok");
  }
}

TEST_F(ClientProxies, Socks5SendsCredentialsIfProxyRequiresThem) {
  use(ProxyKind::socks5, "me", "secret");
  const http::Call call = begin();
  EXPECT_EQ(peer().heard(), "\x05\x02\x00\x02"s);
  drip("\x05\x02"s);
  EXPECT_EQ(peer().heard(), "\x01\x02me\x06secret"s);
  drip("\x01\x00"s);
  EXPECT_THAT(peer().heard(), StartsWith("\x05\x01\x00\x03"s));
}

TEST_F(ClientProxies, Socks5RefusalIsError) {
  use(ProxyKind::socks5);
  EXPECT_EQ(error_after("\x05\xff"s), HttpError::proxy_refused);
  EXPECT_EQ(error_after("\x05\x02"s), HttpError::proxy_refused);  // We have none.
  EXPECT_EQ(error_after("\x04\x00"s), HttpError::bad_proxy);
  const auto replied = [this](char reply) {
    return error_after("\x05\x00\x05"s + reply + "\x00\x01\x00"s);
  };
  EXPECT_EQ(replied(1), HttpError::proxy_refused);
  EXPECT_EQ(replied(3), std::errc::network_unreachable);
  EXPECT_EQ(replied(4), std::errc::host_unreachable);
  EXPECT_EQ(replied(5), std::errc::connection_refused);
  EXPECT_EQ(error_after("\x05\x00\x05\x00\x00\x02\x00"s), HttpError::bad_proxy);
  EXPECT_EQ(error_after("\x05\x00\x04\x00\x00\x01\x00"s), HttpError::bad_proxy);
  EXPECT_EQ(error_after("\x05\x00\x05\x00\x00\x01"s + "\x01\x02\x03\x04\x05\x06"
                                                      "x"),
            HttpError::bad_proxy);
}

TEST_F(ClientProxies, Socks5RejectionOfCredentialsIsError) {
  use(ProxyKind::socks5, "me", "secret");
  EXPECT_EQ(error_after("\x05\x02\x01\x01"s), HttpError::proxy_refused);
  EXPECT_EQ(error_after("\x05\x02\x05\x00"s), HttpError::bad_proxy);
}

TEST_F(ClientProxies, CallMayOverrideProxy) {
  use(ProxyKind::http);
  const http::Call first =
      client_.fetch(kHere, outcome_.note(),
                    {.proxy = Proxy{.kind = ProxyKind::socks5, .host = "other", .port = 1080}});
  Outcome direct;
  const http::Call second = client_.fetch(kHere, direct.note(), {.proxy = Proxy()});
  turns();
  EXPECT_THAT(opened, ElementsAre("other:1080", "a.example:8080"));
}

TEST_F(ClientProxies, ConnectionsThroughDifferentProxiesAreNotShared) {
  Outcome first, second, third;
  const http::Call plain = client_.fetch(kHere, first.note());
  turns();
  peer(0).answer(kOk);
  turns();
  const Proxy proxy{.kind = ProxyKind::http, .host = "p", .port = 1};
  const http::Call by_proxy = client_.fetch(kHere, second.note(), {.proxy = proxy});
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).answer(kOk);
  turns();
  Proxy as_another = proxy;
  as_another.user = "me";
  const http::Call by_another = client_.fetch(kHere, third.note(), {.proxy = as_another});
  turns();
  EXPECT_EQ(peers.size(), 3u);
}

TEST(Proxy, IsParsedFromUrl) {
  const Proxy web = must(Proxy::parse("http://Proxy.example:3128"));
  EXPECT_EQ(web, (Proxy{.kind = ProxyKind::http, .host = "proxy.example", .port = 3128}));
  EXPECT_EQ(must(Proxy::parse("http://[::1]")),
            (Proxy{.kind = ProxyKind::http, .host = "::1", .port = 80}));
  EXPECT_EQ(must(Proxy::parse("socks5://p")),
            (Proxy{.kind = ProxyKind::socks5, .host = "p", .port = 1080}));
  EXPECT_EQ(must(Proxy::parse("socks5h://p")).kind, ProxyKind::socks5);
  for (const std::string_view text : {"", "proxy:3128", "https://p", "socks4://p", "http://p/path",
                                      "http://:x@p", "http://%zz@p", "http://u@", "http://a:b@c@"})
    EXPECT_EQ(Proxy::parse(text).error(), std::errc::invalid_argument) << text;
}

TEST(Proxy, MayContainCredentials) {
  EXPECT_EQ(must(Proxy::parse("http://me:p%40ss:word@proxy:3128/")),
            (Proxy{.kind = ProxyKind::http,
                   .host = "proxy",
                   .port = 3128,
                   .user = "me",
                   .password = "p@ss:word"}));
  EXPECT_EQ(must(Proxy::parse("socks5://me@proxy")).user, "me");
}

// ---- settings

bool is_direct(std::string_view list, std::string_view url) {
  const http::ProxySettings settings{.proxy = must(Proxy::parse("http://p")),
                                     .no_proxy = std::string(list)};
  return settings.proxy_for(must(http::Url::parse(url))).kind == ProxyKind::none;
}

TEST(ProxySettings, MatchNamesWithTheirSubdomains) {
  for (const std::string_view list : {"a.example", ".a.example", "*.a.example", "x,A.Example",
                                      "x a.example\ty", "*", ", ,*", "a.example:80", ".example"}) {
    EXPECT_TRUE(is_direct(list, "http://a.example/")) << list;
    EXPECT_TRUE(is_direct(list, "http://b.a.example./")) << list;
  }
  for (const std::string_view list : {"", "b.example", "a.example:81", "xa.example", "b.a.example",
                                      "a", ".", "a.example/8", "a.example:", "**"})
    EXPECT_FALSE(is_direct(list, "http://a.example/")) << list;
  EXPECT_FALSE(is_direct("a.example", "http://ba.example/"));
  EXPECT_TRUE(is_direct("a.example:443", "https://a.example/"));
}

TEST(ProxySettings, IgnoreTrailingDotsInNames) {
  for (const std::string_view list : {"example.org.", ".example.org.", "*.example.org."}) {
    EXPECT_TRUE(is_direct(list, "http://example.org/")) << list;
    EXPECT_TRUE(is_direct(list, "http://www.example.org./")) << list;
    EXPECT_FALSE(is_direct(list, "http://example.com/")) << list;
  }
  EXPECT_FALSE(is_direct(".", "http://example.org/"));
}

TEST(ProxySettings, MatchAddressesExactlyOrByPrefix) {
  for (const std::string_view list : {"10.1.2.3", "10.0.0.0/8", "10.1.2.2/31", "0.0.0.0/0",
                                      "10.1.2.3/32", "10.1.2.3:80", "10.0.0.0/8:80"})
    EXPECT_TRUE(is_direct(list, "http://10.1.2.3/")) << list;
  for (const std::string_view list : {"2.3", "10.1.2.4", "10.1.2.0/31", "11.0.0.0/8", "10.1.2.3/33",
                                      "10.1.2.3/", "10.1.2.3/x", "::/0", "10.1.2.3:81"})
    EXPECT_FALSE(is_direct(list, "http://10.1.2.3/")) << list;
  for (const std::string_view list : {"::1", "[::1]", "[::1]:80", "0:0::1", "::/127"})
    EXPECT_TRUE(is_direct(list, "http://[::1]/")) << list;
  for (const std::string_view list : {"::2", "[::1]:81", "[::1", "[", "::1/129", "1"})
    EXPECT_FALSE(is_direct(list, "http://[::1]/")) << list;
}

class ProxyEnvironment : public ::testing::Test {
 protected:
  static constexpr const char* kNames[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
                                           "all_proxy",  "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
  ProxyEnvironment() { forget(); }
  ~ProxyEnvironment() override { forget(); }
  static void forget() {
    for (const char* name : kNames) unsetenv(name);
  }
  static std::string host_for(std::string_view url) {
    return must(http::ProxySettings::from_environment())
        .proxy_for(must(http::Url::parse(url)))
        .host;
  }
};

TEST_F(ProxyEnvironment, ConfiguresNoProxyByDefault) {
  EXPECT_EQ(host_for("http://a/"), "");
  EXPECT_EQ(host_for("https://a/"), "");
}

TEST_F(ProxyEnvironment, ConfiguresProxyPerSchemeAndFallback) {
  setenv("all_proxy", "socks5://all", 1);
  EXPECT_EQ(host_for("http://a/"), "all");
  EXPECT_EQ(host_for("https://a/"), "all");
  setenv("http_proxy", "plain:3128", 1);
  setenv("HTTPS_PROXY", "http://me:word@secure", 1);
  EXPECT_EQ(host_for("http://a/"), "plain");
  EXPECT_EQ(host_for("https://a/"), "secure");
  setenv("https_proxy", "http://other", 1);
  EXPECT_EQ(host_for("https://a/"), "other");
}

TEST_F(ProxyEnvironment, IgnoresUppercaseHttpProxy) {
  setenv("HTTP_PROXY", "http://evil", 1);
  EXPECT_EQ(host_for("http://a/"), "");
}

TEST_F(ProxyEnvironment, ExcludesLoopbackAndNoProxyHosts) {
  setenv("all_proxy", "http://all", 1);
  setenv("NO_PROXY", ".corp", 1);
  for (const char* url :
       {"http://localhost/", "http://127.1.2.3/", "http://[::1]/", "http://x.corp"})
    EXPECT_EQ(host_for(url), "") << url;
}

TEST_F(ProxyEnvironment, RejectsInvalidProxy) {
  setenv("http_proxy", "ftp://p", 1);
  EXPECT_EQ(http::ProxySettings::from_environment().error(), std::errc::invalid_argument);
  setenv("http_proxy", "", 1);
  setenv("https_proxy", "http://", 1);
  EXPECT_EQ(http::ProxySettings::from_environment().error(), std::errc::invalid_argument);
}

TEST_F(ClientProxies, DirectHostsBypassProxy) {
  make_client(
      {.proxies = {.proxy = must(Proxy::parse("http://proxy:3128")), .no_proxy = "a.example"}});
  const http::Call direct = begin();
  const http::Call other = begin("http://b.example/");
  EXPECT_THAT(opened, ElementsAre("a.example:8080", "proxy:3128"));
}

}  // namespace
}  // namespace spate::testing
