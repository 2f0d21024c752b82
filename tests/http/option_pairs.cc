// Each struct of options, and each function that takes it: a field has its effect, or is rejected
// with EINVAL. The structured bindings name all fields, so that a new one does not compile here
// before it has its rows.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "http/harness.h"
#include "http/listening_ways.h"
#include "spate/coro/relay.h"
#include "spate/coro/scope.h"
#include "spate/http/client.h"
#include "spate/http/http2.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/server.h"
#include "spate/net/workers.h"
#include "streams/harness.h"
#include "sys/descriptor.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

// ---- ListenOptions

// The fields whose effect a listening socket shows; the tests below cover the others.
void set_visible(ListenOptions& options) {
  auto& [backlog, accepts_per_turn, max_connections, reuse_port, v6_only, no_delay, defer_accept,
         fast_open, max_unsent, replace_path, socket] = options;
  std::ignore = std::tie(accepts_per_turn, max_connections, replace_path, no_delay, socket);
  backlog = 7;
  reuse_port = v6_only = true;
  defer_accept = std::chrono::seconds(1);
  fast_open = 5;
  max_unsent = 4321;
}

void expect_visible(std::uint16_t port, bool is_adopted) {
  const std::vector<int> sockets = listening_at(port);
  EXPECT_FALSE(sockets.empty());
  for (const int fd : sockets) {
    if (!is_adopted) {
      // The kernel reports the length of a listening socket's queue here.
      EXPECT_EQ(accept_queue(fd).limit, 7u);
      EXPECT_EQ(socket_option<int>(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    }
    EXPECT_EQ(socket_option<int>(fd, SOL_SOCKET, SO_REUSEPORT), 1);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    EXPECT_GT(socket_option<int>(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 0);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_TCP, TCP_FASTOPEN), 5);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 4321);
  }
}

TEST(OptionCoverage, EachListeningFunctionHonoursEachListenOption) {
  for (const Listening::Way& way : Listening::kAll) {
    SCOPED_TRACE(way.name);
    ListenOptions options;
    set_visible(options);
    Listening listening;
    const Result<Address> address = (listening.*way.open)(options);
    ASSERT_TRUE(address) << address.error().message();
    expect_visible(address->port(), false);
  }
}

int bind_to(int fd, const Address& address) {
  return ::bind(fd, static_cast<const sockaddr*>(address.data()),
                static_cast<socklen_t>(address.size()));
}

// An IPv6 socket that is bound to an IPv6 address never carries IPv4.
const Address kAnywhere = Address::any_ipv6(0);

sys::Descriptor bound_socket(const ListenOptions& options) {
  sys::Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int shares = options.reuse_port, v6_only = options.v6_only;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &shares, sizeof(shares));
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  EXPECT_EQ(bind_to(socket.get(), kAnywhere), 0);
  EXPECT_EQ(::listen(socket.get(), 7), 0);
  return socket;
}

TEST(OptionCoverage, AdoptedListenersHonourOrRejectFields) {
  const auto loop = must(Loop::create());
  const auto workers = must(Workers::create({.threads = 2}));
  for (const bool is_bound_so : {false, true}) {
    ListenOptions options;
    set_visible(options);
    const ListenOptions bound = is_bound_so ? options : ListenOptions();
    sys::Descriptor one = bound_socket(bound), two = bound_socket(bound);
    const auto listener = Listener::adopt(*loop, one.get(), kIgnoreStream, options);
    const auto address = workers->adopt(two.get(), kIgnoreStream, Balance::round_robin, options);
    EXPECT_EQ(listener.has_value(), is_bound_so);
    EXPECT_EQ(address.has_value(), is_bound_so);
    if (!listener || !address) {
      EXPECT_EQ(refusal_of(listener), std::errc::invalid_argument);
      EXPECT_EQ(refusal_of(address), std::errc::invalid_argument);
      continue;
    }
    one.release();
    two.release();
    expect_visible(listener->address().port(), true);
    expect_visible(address->port(), true);
  }
  for (const ListenOptions& options :
       {ListenOptions{.reuse_port = true}, ListenOptions{.v6_only = true}}) {
    const sys::Descriptor socket = bound_socket({});
    EXPECT_EQ(refusal_of(Listener::adopt(*loop, socket.get(), kIgnoreStream, options)),
              std::errc::invalid_argument);
  }
}

// ---- ServeOptions, and the equivalents in http::serve()

TEST(OptionCoverage, ServeOnLoopRefusesBalance) {
  const auto loop = must(Loop::create());
  ServeOptions options;
  auto& [balance, listen, tls, on_tls_failure, proxy_protocol, proxies, proxy_timeout] = options;
  std::ignore = std::tie(listen, tls, on_tls_failure, proxy_protocol, proxies, proxy_timeout);
  for (const Balance each :
       {Balance::round_robin, Balance::least_connections, Balance::peer_hash}) {
    balance = each;
    EXPECT_EQ(refusal_of(spate::serve<IdleSession>(*loop, Address::loopback_ipv4(0), options)),
              std::errc::invalid_argument);
  }
}

// TLS options where they would be ignored do not compile.
template <class How>
concept HasTls = requires(How how) { how.tls; };
template <class How>
concept IsTakenByHttpServe = requires(Workers& workers, const Address& address, How how) {
  http::serve(workers, address, kSayHello, {}, how);
};
static_assert(IsTakenByHttpServe<http::WorkersListenOptions>);
static_assert(!IsTakenByHttpServe<ServeOptions>);
static_assert(HasTls<ServeOptions> && !HasTls<http::WorkersListenOptions>);

TEST(OptionCoverage, HttpServeOnWorkersUsesTlsIfConfigured) {
  const auto workers = must(Workers::create({.threads = 1}));
  http::ServerOptions options;
  options.tls = test_server_context();
  http::WorkersListenOptions how;
  auto& [balance, listen] = how;
  std::ignore = std::tie(balance, listen);
  const Address address =
      must(http::serve(*workers, Address::loopback_ipv4(0), kSayHello, options, how)).address();
  const auto loop = must(Loop::create());
  http::Client client = must(http::Client::create(*loop, {.tls = test_client_context()}));
  std::string text;
  bool is_done = false;
  const http::Call call = client.fetch("https://localhost:" + std::to_string(address.port()) + "/",
                                       [&](Result<http::Response> response) {
                                         is_done = true;
                                         if (response) text = response->text();
                                       },
                                       {.address = address});
  run_until(*loop, [&] { return is_done; });
  EXPECT_EQ(text, "hello\n");
}

// ---- http::ServerOptions

TlsContext server_that_offers(std::vector<std::string> alpn) {
  return must(
      TlsContext::server({.identities = {test_server().identity()}, .alpn = std::move(alpn)}));
}

std::vector<http::ServerOptions> useless_server_options() {
  std::vector<http::ServerOptions> all;
  const auto add = [&all](auto change) { change(all.emplace_back()); };
  add([](auto& options) { options.max_head = 0; });
  add([](auto& options) { options.max_head = 65'536; });
  add([](auto& options) { options.max_request_line = 0; });
  add([](auto& options) { options.max_fields = 0; });
  add([](auto& options) { options.max_fields = 101; });
  add([](auto& options) { options.max_requests = 0; });
  add([](auto& options) { options.compression_level = 0; });
  add([](auto& options) { options.compression_level = 10; });
  add([](auto& options) { options.tls = test_client_context(); });
  add([](auto& options) { options.tls = server_that_offers({"h2", "http/1.1"}); });
  add([](auto& options) { options.proxies = {Address::loopback_ipv4(0)}; });
  add([](auto& options) {
    options.proxies = {Address::loopback_ipv4(0)};
    options.proxy_protocol = http::ProxyProtocol::always;
  });
  add([](auto& options) {
    options.trusted_proxies = {must(Network::parse("127.0.0.1"))};
    options.client_field = "";
  });
  add([](auto& options) { options.server_name = "a\r\nEvil: 1"; });
  return all;
}

TEST(OptionCoverage, EachHttpServeFunctionRejectsUselessServerOptions) {
  const auto loop = must(Loop::create());
  const auto workers = must(Workers::create({.threads = 1}));
  struct Nothing : http::Service {
    void on_request(http::Exchange) override {}
  } service;
  const Address here = Address::loopback_ipv4(0);
  int number = 0;
  for (const http::ServerOptions& options : useless_server_options()) {
    SCOPED_TRACE(number++);
    EXPECT_EQ(refusal_of(http::Server::create(*loop, kSayHello, options)),
              std::errc::invalid_argument);
    EXPECT_EQ(refusal_of(http::Server::create(*loop, service, options)),
              std::errc::invalid_argument);
    EXPECT_EQ(refusal_of(http::serve(*loop, here, kSayHello, options)),
              std::errc::invalid_argument);
    EXPECT_EQ(refusal_of(http::serve(*loop, here, service, options)), std::errc::invalid_argument);
    EXPECT_EQ(refusal_of(http::serve(*workers, here, kSayHello, options)),
              std::errc::invalid_argument);
  }
}

// ---- http::ClientOptions, http::CallOptions

TEST(OptionCoverage, HttpClientRefusesOptionsThatItWouldIgnore) {
  const auto loop = must(Loop::create());
  const auto client_that_offers = [](std::vector<std::string> alpn) {
    return must(TlsContext::client({.system_cas = false, .alpn = std::move(alpn)}));
  };
  std::vector<http::ClientOptions> all;
  const auto add = [&all](auto change) { change(all.emplace_back()); };
  add([](auto& options) { options.max_per_origin = 0; });
  add([](auto& options) { options.max_connections = 0; });
  add([](auto& options) { options.max_head = 0; });
  add([](auto& options) { options.user_agent = "a\r\nEvil: 1"; });
  add([](auto& options) { options.tls = test_server_context(); });
  add([](auto& options) { options.http2_without_tls = true; });
  add([&](auto& options) { options.tls = client_that_offers({"h2", "http/1.1"}); });
  add([&](auto& options) { options.tls_for_upgrades = client_that_offers({"http/1.1"}); });
  add([&](auto& options) {
    options.tls = client_that_offers({"http/1.1"});
    options.tls_for_upgrades = client_that_offers({"h2"});
  });
  int number = 0;
  for (http::ClientOptions& options : all) {
    SCOPED_TRACE(number++);
    EXPECT_EQ(refusal_of(http::Client::create(*loop, std::move(options))),
              std::errc::invalid_argument);
  }
}

TEST(OptionCoverage, HttpCallRejectsAddressThatIsNotUsed) {
  const auto loop = must(Loop::create());
  const http::Proxy proxy{.kind = http::ProxyKind::http, .host = "proxy.example", .port = 3128};
  for (const bool has_open : {false, true}) {
    http::ClientOptions options;
    if (has_open)
      options.open = [](std::string_view, std::uint16_t) -> Result<Stream> {
        return std::unexpected(std::make_error_code(std::errc::connection_refused));
      };
    http::Client client = must(http::Client::create(*loop, std::move(options)));
    http::CallOptions call{.address = Address::loopback_ipv4(9)};
    if (!has_open) call.proxy = proxy;
    std::error_code error;
    const http::Call asked = client.fetch(
        "http://a.example/",
        [&](Result<http::Response> response) {
          if (!response) error = response.error();
        },
        std::move(call));
    run_until(*loop, [&] { return static_cast<bool>(error); });
    EXPECT_EQ(error, std::errc::invalid_argument);
  }
}

// ---- ConnectOptions

// Each function that takes ConnectOptions, with a listener on this loop.
class ConnectPairs : public ::testing::Test {
 protected:
  ConnectPairs() {
    auto& [timeout, local, no_delay, attempt_delay, resolution_delay, ipv6_first] = options_;
    std::ignore = std::tie(timeout, attempt_delay, resolution_delay, ipv6_first);
    local = must(Address::ip("127.0.0.2", 0));
    no_delay = false;
  }

  // The client's side as the server and the kernel see it.
  void expect_honoured(const Stream& stream) {
    EXPECT_EQ(stream.local_address().host(), "127.0.0.2");
    EXPECT_EQ(socket_option<int>(stream.fd(), IPPROTO_TCP, TCP_NODELAY), 0);
  }
  OnConnected keep() {
    return [this](Result<Stream> stream) {
      ASSERT_TRUE(stream) << stream.error().message();
      kept_ = std::move(*stream);
    };
  }
  void expect_connected() {
    run_until(*loop_, [&] { return kept_.is_open(); });
    expect_honoured(kept_);
    kept_ = Stream();
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::vector<Stream> accepted_;
  Listener listener_ = must(Listener::create(
      *loop_, Address::loopback_ipv4(0),
      [this](Stream stream, const Address&) { accepted_.push_back(std::move(stream)); }));
  const Address there_ = listener_.address();
  ConnectOptions options_;
  Stream kept_;
};

TEST_F(ConnectPairs, ConnectHonoursEachField) {
  Connecting connecting = connect(*loop_, there_, keep(), options_);
  expect_connected();
  connecting = connect(*loop_, std::vector{there_}, keep(), options_);
  expect_connected();
  connecting = connect(*loop_, "127.0.0.1", there_.port(), keep(), options_);
  expect_connected();
}

TEST_F(ConnectPairs, StreamConnectHonoursEachField) {
  Recorder log;
  Stream stream;
  ASSERT_FALSE(stream.connect(*loop_, there_, log, options_));
  run_until(*loop_, [&] { return !stream.is_connecting(); });
  expect_honoured(stream);
  ASSERT_FALSE(stream.connect(*loop_, "127.0.0.1", there_.port(), log, options_));
  run_until(*loop_, [&] { return !stream.is_connecting(); });
  expect_honoured(stream);
}

TEST_F(ConnectPairs, ClientHonoursEachField) {
  Client client = must(Client::create(*loop_, there_, keep(), {.connect = options_}));
  client.connect();
  expect_connected();
  client = must(Client::create(*loop_, "127.0.0.1", there_.port(), keep(), {.connect = options_}));
  client.connect();
  expect_connected();
}

TEST_F(ConnectPairs, HttpClientHonoursEachField) {
  http::Client client = must(http::Client::create(*loop_, {.connect = options_}));
  const http::Call call = client.fetch("http://127.0.0.1:" + std::to_string(there_.port()) + "/",
                                       [](Result<http::Response>) {});
  run_until(*loop_, [&] { return !accepted_.empty(); });
  EXPECT_EQ(accepted_.front().peer_address().host(), "127.0.0.2");
}

// ---- RelayOptions

using OnEnd = std::function<void(const RelayResult&)>;

coro::Task<void> relays(Stream first, Stream second, RelayOptions options, OnEnd note) {
  const RelayResult result = co_await coro::relay(std::move(first), std::move(second), options);
  note(result);
}

coro::Task<void> copies(Stream from, Stream to, RelayOptions options, OnEnd note) {
  const RelayResult result = co_await coro::copy(std::move(from), std::move(to), options);
  note(result);
}

TEST(OptionCoverage, EachFunctionThatRelaysHonoursIdleTimeout) {
  const auto loop = must(Loop::create());
  std::vector<Stream> others;
  const auto open = [&] {
    auto [one, other] = must(Stream::memory_pair(*loop));
    others.push_back(std::move(other));
    return std::move(one);
  };
  RelayOptions options;
  auto& [idle_timeout] = options;
  idle_timeout = Nanos{20'000'000};
  int ended = 0;
  const OnEnd note = [&](const RelayResult& result) {
    EXPECT_EQ(result.error, Error::idle_timeout);
    ++ended;
  };
  const Relaying both_ways = relay(open(), open(), note, options);
  const Relaying one_way = copy(open(), open(), note, options);
  coro::Scope scope(*loop);
  scope.spawn(relays(open(), open(), options, note));
  scope.spawn(copies(open(), open(), options, note));
  run_until(*loop, [&] { return ended == 4; });
}

// ---- DatagramOptions

TEST(OptionCoverage, AdoptedDatagramsHonourOrRejectFields) {
  const auto loop = must(Loop::create());
  DatagramOptions options;
  auto& [packet_size, reuse_address, reuse_port, v6_only, local_address, ecn, coalesce, broadcast,
         dont_fragment] = options;
  std::ignore = std::tie(packet_size, coalesce);
  reuse_address = reuse_port = local_address = ecn = broadcast = dont_fragment = true;
  const auto check = [](int fd) {
    EXPECT_EQ(socket_option<int>(fd, SOL_SOCKET, SO_REUSEADDR), 1);
    EXPECT_EQ(socket_option<int>(fd, SOL_SOCKET, SO_REUSEPORT), 1);
    EXPECT_EQ(socket_option<int>(fd, SOL_SOCKET, SO_BROADCAST), 1);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER), IPV6_PMTUDISC_PROBE);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO), 1);
    EXPECT_EQ(socket_option<int>(fd, IPPROTO_IPV6, IPV6_RECVTCLASS), 1);
  };
  const auto open = [] {
    sys::Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind_to(socket.get(), kAnywhere), 0);
    return socket;
  };
  sys::Descriptor socket = open();
  const Datagram adopted = must(Datagram::adopt(*loop, socket.release(), options));
  check(adopted.fd());
  v6_only = true;
  const Datagram made = must(Datagram::create(*loop, kAnywhere, options));
  check(made.fd());
  EXPECT_EQ(socket_option<int>(made.fd(), IPPROTO_IPV6, IPV6_V6ONLY), 1);
  const sys::Descriptor other = open();
  EXPECT_EQ(refusal_of(Datagram::adopt(*loop, other.get(), options)), std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
