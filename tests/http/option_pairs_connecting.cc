// ConnectOptions: each function that takes one, and each field that a socket does not show. The
// structured binding names all fields, so that a new one does not compile here before it has its
// rows. Fields that a socket shows are in option_pairs.cc. C's options are in tests/c/net.cc.
#include <functional>
#include <list>
#include <string>
#include <tuple>

#include "http/harness.h"
#include "spate/http/client.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/resolver.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "support/listening_sockets.h"
#include "tests/support/name_server.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class ConnectRows : public ::testing::Test {
 protected:
  // Begins to connect to the name or address, and notes an error.
  using Open = void (ConnectRows::*)(const ConnectOptions&);
  struct Way {
    const char* name;
    Open open;
  };
  static constexpr int kNamed = 8;
  static const Way kByName[kNamed];
  static constexpr int kAddressed = 3;
  static const Way kByAddress[kAddressed];

  ConnectRows() {
    EXPECT_FALSE(configure_resolver(loop_, {.servers = {names_.address()},
                                            .resolv_conf = "/dev/null",
                                            .hosts = "/dev/null",
                                            .timeout = 1min}));
    names_.names["both.test"] = {.ipv6 = {"::1"}, .ipv4 = {"127.0.0.1"}};
    names_.names["four.test"] = {.ipv4 = {"127.0.0.1"}};
  }

  void listen(const Address& address) {
    auto made = Listener::create(loop_, address, [this](Stream stream, const Address&) {
      if (outcome_.empty()) outcome_ = stream.local_address().unmapped().host();
    });
    ASSERT_TRUE(made) << made.error().message();
    listener_ = std::move(*made);
    port_ = listener_.address().port();
  }
  // Returns the address at which a connection arrived, or the error.
  std::string outcome(const Way& way, const ConnectOptions& options) {
    (this->*way.open)(options);
    return outcome();
  }
  std::string outcome() {
    outcome_.clear();
    for (int turns = 0; outcome_.empty() && turns < 100'000; ++turns) {
      loop_.run(Run::no_wait);
      clock_.advance(5ms);
    }
    connecting_ = {};
    client_ = {};
    http_ = {};
    stream_ = {};
    return outcome_;
  }
  void note(std::error_code error) {
    if (error && outcome_.empty()) outcome_ = error.message();
  }
  OnConnected note() {
    return [this](Result<Stream> made) { note(made ? std::error_code() : made.error()); };
  }

  void by_connect(const ConnectOptions& options) {
    connecting_ = connect(loop_, host_, port_, note(), options);
  }
  void by_connect_tls(const ConnectOptions& options) {
    connecting_ = connect(
        loop_, host_, port_, tls_,
        [this](TlsResult<Stream> made) { note(made ? std::error_code() : made.error().code); },
        options);
  }
  void by_stream(const ConnectOptions& options) {
    ASSERT_FALSE(stream_.connect(loop_, host_, port_, handler_, options));
  }
  void by_stream_tls(const ConnectOptions& options) {
    ASSERT_FALSE(stream_.connect(loop_, host_, port_, tls_, handler_, options));
  }
  void by_client(const ConnectOptions& options) {
    client_ = must(Client::create(loop_, host_, port_, note(), {.connect = options}));
    client_.connect();
  }
  void by_client_tls(const ConnectOptions& options) {
    client_ = must(Client::create(loop_, host_, port_, note(), {.connect = options, .tls = tls_}));
    client_.connect();
  }
  void by_http(const ConnectOptions& options) { fetch("http", {.connect = options}); }
  void by_https(const ConnectOptions& options) {
    fetch("https", {.connect = options, .tls = tls_});
  }
  void fetch(std::string_view scheme, http::ClientOptions options) {
    http_ = must(http::Client::create(loop_, std::move(options)));
    call_ = http_.fetch(std::string(scheme) + "://" + host_ + ":" + std::to_string(port_) + "/",
                        [this](Result<http::Response> response) {
                          note(response ? std::error_code() : response.error());
                        });
  }

  void to_address(const ConnectOptions& options) {
    connecting_ = connect(loop_, there_, note(), options);
  }
  void stream_to_address(const ConnectOptions& options) {
    ASSERT_FALSE(stream_.connect(loop_, there_, handler_, options));
  }
  void client_to_address(const ConnectOptions& options) {
    client_ = must(Client::create(loop_, there_, note(), {.connect = options}));
    client_.connect();
  }

  struct Handler final : StreamHandler {
    explicit Handler(ConnectRows& rows) : test(rows) {}
    std::size_t on_data(Bytes bytes) override { return bytes.size(); }
    void on_closed(std::error_code error) override { test.note(error); }
    ConnectRows& test;
  };

  ScriptedClock clock_;
  std::unique_ptr<Loop> owned_ = must(Loop::create({.clock = &clock_}));
  Loop& loop_ = *owned_;
  NameServer names_{loop_};
  TlsContext tls_ = test_client_context();
  Listener listener_;
  std::string host_ = "both.test";
  std::uint16_t port_ = 0;
  Address there_;
  std::string outcome_;
  Handler handler_{*this};
  Connecting connecting_;
  Stream stream_;
  Client client_;
  http::Client http_;
  http::Call call_;
};

const ConnectRows::Way ConnectRows::kByName[kNamed] = {
    {"connect()", &ConnectRows::by_connect},
    {"connect(), TLS", &ConnectRows::by_connect_tls},
    {"Stream::connect()", &ConnectRows::by_stream},
    {"Stream::connect(), TLS", &ConnectRows::by_stream_tls},
    {"Client", &ConnectRows::by_client},
    {"Client, TLS", &ConnectRows::by_client_tls},
    {"http::Client, http", &ConnectRows::by_http},
    {"http::Client, https", &ConnectRows::by_https},
};
const ConnectRows::Way ConnectRows::kByAddress[kAddressed] = {
    {"connect() to an address", &ConnectRows::to_address},
    {"Stream::connect() to an address", &ConnectRows::stream_to_address},
    {"Client of an address", &ConnectRows::client_to_address},
};

std::string late() { return make_error_code(Error::connect_timeout).message(); }

// The fields whose rows are here.
TEST_F(ConnectRows, CoverEachField) {
  ConnectOptions options;
  auto& [timeout, local, no_delay, attempt_delay, resolution_delay, ipv6_first] = options;
  std::ignore = std::tie(timeout, local, no_delay, attempt_delay, resolution_delay, ipv6_first);
}

TEST_F(ConnectRows, TimeoutIsHonouredByEachFunction) {
  const FullListener full(Address::loopback_ipv4(0));
  there_ = full.address();
  port_ = there_.port();
  host_ = "four.test";
  for (const Way& way : kByName) EXPECT_EQ(outcome(way, {.timeout = 20ms}), late()) << way.name;
  for (const Way& way : kByAddress) EXPECT_EQ(outcome(way, {.timeout = 20ms}), late()) << way.name;
  connecting_ = connect(loop_, std::vector{there_, there_}, note(), {.timeout = 20ms});
  EXPECT_EQ(outcome(), late());
}

TEST_F(ConnectRows, TimeoutIncludesNameResolution) {
  names_.names["silent.test"] = {.is_silent = true};
  host_ = "silent.test";
  port_ = 9;
  for (const Way& way : kByName) EXPECT_EQ(outcome(way, {.timeout = 20ms}), late()) << way.name;
}

// The first address hangs, and the second one answers. The last timeout is above the default delay.
TEST_F(ConnectRows, AttemptDelayIsHonouredByEachFunction) {
  const FullListener full(Address::loopback_ipv6(0));
  listen(Address::loopback_ipv4(full.address().port()));
  const ConnectOptions soon{.attempt_delay = 10ms};
  const ConnectOptions never{.timeout = 1s, .attempt_delay = 1h};
  for (const Way& way : kByName) {
    EXPECT_EQ(outcome(way, soon), "127.0.0.1") << way.name;
    EXPECT_EQ(outcome(way, never), late()) << way.name;
  }
  const std::vector<Address> both{full.address(), listener_.address()};
  for (const ConnectOptions& options : {soon, never}) {
    connecting_ = connect(loop_, both, note(), options);
    EXPECT_EQ(outcome(), options.attempt_delay == 1h ? late() : "127.0.0.1");
  }
}

TEST_F(ConnectRows, ResolutionDelayIsHonouredByEachFunction) {
  listen(Address::any_ipv6(0));
  names_.names["both.test"].ipv6_delay = 1h;
  for (const Way& way : kByName) {
    EXPECT_EQ(outcome(way, {.resolution_delay = 1ms}), "127.0.0.1") << way.name;
    EXPECT_EQ(outcome(way, {.timeout = 100ms, .resolution_delay = 1h}), late()) << way.name;
  }
}

TEST_F(ConnectRows, Ipv6FirstIsHonouredByEachFunction) {
  listen(Address::any_ipv6(0));
  for (const Way& way : kByName) {
    EXPECT_EQ(outcome(way, {.resolution_delay = 1h}), "::1") << way.name;
    EXPECT_EQ(outcome(way, {.resolution_delay = 1h, .ipv6_first = false}), "127.0.0.1") << way.name;
  }
}

}  // namespace
}  // namespace spate::testing
