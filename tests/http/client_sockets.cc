// A client and servers on real sockets; and a random server, with which no GET may fail and no POST
// be done twice. SPATE_CALLS=<number> makes so many.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/client_harness.h"
#include "spate/http/server.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "spate/net/tls.h"
#include "support/random.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Method;
using ::testing::HasSubstr;

class ClientSockets : public ::testing::Test {
 protected:
  void serve(http::OnRequest on_request, const Address& address = Address::loopback_ipv4(0)) {
    server_ = must(http::Server::create(loop_, std::move(on_request)));
    address_ = must(server_.listen(address));
  }
  std::string url(std::string_view path = "/") const {
    return "http://127.0.0.1:" + std::to_string(address_.port()) + std::string(path);
  }
  void wait_for(const Outcome& outcome) {
    while (!outcome.is_there()) ASSERT_FALSE(loop_.run(Run::once));
  }

  std::unique_ptr<Loop> owned_ = must(Loop::create());
  Loop& loop_ = *owned_;
  http::Server server_;
  Address address_;
  std::unique_ptr<Peer> peer_;
  http::Client client_ = must(http::Client::create(loop_));
};

TEST_F(ClientSockets, a_server_of_ours_is_asked_and_answers) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call = client_.fetch(url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "hello\n");
}

TEST_F(ClientSockets, a_host_may_be_a_name) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call =
      client_.fetch("http://localhost:" + std::to_string(address_.port()) + "/", outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "hello\n");
}

TEST_F(ClientSockets, a_unix_socket_serves_as_well) {
  const Address address = must(Address::abstract(
      "spate-client-test-" + std::to_string(reinterpret_cast<std::uintptr_t>(this))));
  serve([](http::Exchange exchange) { exchange.respond(exchange.request().host()); }, address);
  Outcome outcome;
  const http::Call call = client_.fetch("http://daemon/", outcome.note(), {.address = address});
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "daemon");
}

TEST_F(ClientSockets, a_refused_connection_is_an_error) {
  serve([](http::Exchange) {});
  server_ = {};
  Outcome outcome;
  const http::Call call = client_.fetch(url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), std::errc::connection_refused);
}

TEST_F(ClientSockets, an_idle_connection_does_not_keep_the_loop_alive) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call = client_.fetch(url(), outcome.note());
  wait_for(outcome);
  ASSERT_EQ(client_.metrics().idle, 1u);
  server_ = {};  // Closes its end, which is noticed.
  loop_.run();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientSockets, the_loops_count_is_as_before_when_connections_go) {
  const std::int64_t before = loop_.active_count();
  auto listener = must(
      Listener::create(loop_, Address::loopback_ipv4(0), [this](Stream stream, const Address&) {
        peer_ = std::make_unique<Peer>(std::move(stream));
        peer_->on_request = [](Peer& peer) { peer.answer(kOk); };
      }));
  address_ = listener.address();
  const auto warm_up = [&] {
    Outcome outcome;
    const http::Call call = client_.fetch(url(), outcome.note());
    wait_for(outcome);
    ASSERT_EQ(client_.metrics().idle, 1u);
  };
  warm_up();
  client_.close_idle();
  warm_up();
  warm_up();
  peer_->stream().end();
  while (client_.metrics().idle > 0) loop_.run(Run::once);
  warm_up();
  peer_->stream().abort();
  while (client_.metrics().idle > 0) loop_.run(Run::once);
  warm_up();
  client_ = {};
  peer_.reset();
  listener.close();
  loop_.run();  // Returns: else this test does not.
  EXPECT_EQ(loop_.active_count(), before);
}

TEST_F(ClientSockets, megabytes_go_both_ways) {
  const std::string body(5'000'000, 'x');
  serve([](http::Exchange exchange) {
    http::read_body(std::move(exchange), 10'000'000,
                    [](http::Exchange whole, Bytes bytes) { whole.respond(text_of(bytes)); });
  });
  Outcome outcome;
  const http::Call call =
      client_.fetch(url(), outcome.note(), {.method = Method::post, .body = bytes_of(body)});
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), body);
}

// ---- https

class ClientSecured : public ClientSockets {
 protected:
  ClientSecured() {
    server_ = must(http::Server::create(
        loop_, [](http::Exchange exchange) { exchange.respond(exchange.request().target()); }));
    const TlsContext context = must(TlsContext::server({.identities = {test_server().identity()}}));
    listener_ = must(Listener::create(loop_, Address::loopback_ipv4(0),
                                      with_tls(context, [this](Stream stream, const Address&) {
                                        server_.add(std::move(stream));
                                      })));
    address_ = listener_.address();
  }
  static TlsContext trusting(const std::string& authority) {
    return must(TlsContext::client({.system_cas = false, .ca = authority}));
  }
  std::string secure_url() const {
    return "https://localhost:" + std::to_string(address_.port()) + "/safe";
  }

  Listener listener_;
};

TEST_F(ClientSecured, https_needs_a_context) {
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), std::errc::not_supported);
}

TEST_F(ClientSecured, https_is_spoken_and_its_connection_used_again) {
  client_ = must(http::Client::create(loop_, {.tls = trusting(test_root().pem())}));
  for (int i = 0; i < 2; ++i) {
    Outcome outcome;
    const http::Call call = client_.fetch(secure_url(), outcome.note());
    wait_for(outcome);
    EXPECT_EQ(outcome.text(), "/safe");
  }
  EXPECT_EQ(client_.metrics().reused, 1u);
}

TEST_F(ClientSecured, an_idle_connection_does_not_keep_the_loop_alive_either) {
  client_ = must(http::Client::create(loop_, {.tls = trusting(test_root().pem())}));
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  ASSERT_EQ(client_.metrics().idle, 1u);
  server_ = {};
  listener_.close();
  loop_.run();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(ClientSecured, a_certificate_that_nobody_vouches_for_is_an_error) {
  client_ = must(http::Client::create(loop_, {.tls = trusting("")}));
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), Error::tls_certificate);
}

TEST_F(ClientSecured, https_goes_through_the_tunnel_of_an_http_proxy) {
  std::vector<Relaying> relays;
  std::vector<Connecting> connects;
  std::string asked;
  auto proxy = must(http::Server::create(loop_, [&](http::Exchange exchange) {
    asked = exchange.request().target();
    connects.push_back(
        connect(loop_, address_, [&, kept = std::move(exchange)](Result<Stream> there) mutable {
          relays.push_back(
              relay(must(kept.upgrade("")), std::move(*there), [](const RelayResult&) {}));
        }));
  }));
  const Address proxy_address = must(proxy.listen(Address::loopback_ipv4(0)));
  client_ = must(http::Client::create(loop_, {.proxies = {.proxy = {.kind = http::ProxyKind::http,
                                                                    .host = "127.0.0.1",
                                                                    .port = proxy_address.port()}},
                                              .tls = trusting(test_root().pem())}));
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "/safe");
  EXPECT_EQ(asked, "localhost:" + std::to_string(address_.port()));
}

// Answers what it is asked, and closes when it likes: behind an answer, some time later, or when a
// request comes on a connection that was used before.
class RandomServer {
 public:
  RandomServer(Loop& loop, Random& random)
      : random_(random),
        listener_(must(Listener::create(
            loop, Address::loopback_ipv4(0),
            [this](Stream stream, const Address&) { accept(std::move(stream)); }))) {}

  std::uint16_t port() const { return listener_.address().port(); }
  // Some of the connections end.
  void act() {
    std::erase_if(peers_, [](const auto& known) { return known.second.peer->is_closed; });
    for (auto& [peer, known] : peers_) {
      if (known.requests > 0 && random_.below(20) == 0) known.peer->stream().end();
    }
  }

  std::map<std::string, int> done;  // How often each was.

 private:
  struct Known {
    std::unique_ptr<Peer> peer;
    int requests = 0;
  };

  void accept(Stream stream) {
    auto peer = std::make_unique<Peer>(std::move(stream));
    peer->on_request = [this](Peer& asked) { on_request(asked); };
    peers_[peer.get()].peer = std::move(peer);
  }

  void on_request(Peer& peer) {
    if (!peer.received.contains("\r\n\r\n")) return;
    const std::string request = peer.heard();
    Known& known = peers_[&peer];
    const bool is_first = known.requests++ == 0;
    if (!peer.stream().is_writable()) return;
    const std::uint64_t chance = random_.below(10);
    if (!is_first && chance == 0) {
      peer.is_closed = true;  // Nobody is told of an abort.
      return peer.stream().abort();
    }
    if (!is_first && chance == 1) return peer.stream().close();
    ++done[request.substr(0, request.find(" HTTP"))];
    peer.answer(chance == 2 ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                            : kOk);
    if (chance < 5) peer.stream().end();  // Whatever was said.
  }

  Random& random_;
  std::map<Peer*, Known> peers_;
  Listener listener_;
};

// Asks on and on, several calls at a time.
class Asker {
 public:
  Asker(http::Client& client, std::uint16_t port, Random& random, int all)
      : client_(client), port_(port), random_(random), left_(all) {}

  void begin(std::size_t width) {
    calls_.resize(width);
    for (std::size_t i = 0; i < width; ++i) ask(i);
  }
  bool is_done() const { return left_ == 0 && open_ == 0; }

  int failed_gets = 0;
  int failed_posts = 0;
  int good = 0;

 private:
  void ask(std::size_t slot) {
    if (left_ == 0) return;
    const std::string number = std::to_string(left_--);
    const bool is_get = random_.below(4) != 0;
    ++open_;
    calls_[slot] = client_.fetch("http://127.0.0.1:" + std::to_string(port_) + "/" + number,
                                 [this, slot, is_get](Result<http::Response> response) {
                                   --open_;
                                   ++(response ? good : is_get ? failed_gets : failed_posts);
                                   ask(slot);
                                 },
                                 {.method = is_get ? Method::get : Method::post});
  }

  http::Client& client_;
  const std::uint16_t port_;
  Random& random_;
  int left_;
  int open_ = 0;
  std::vector<http::Call> calls_;
};

TEST_F(ClientSockets, no_get_fails_and_no_post_is_done_twice_however_the_server_closes) {
  Random random(20261123);
  RandomServer server(loop_, random);
  const char* wanted = std::getenv("SPATE_CALLS");
  const int calls = wanted == nullptr ? 14'000 : std::atoi(wanted);
  Asker asker(client_, server.port(), random, calls);
  asker.begin(6);
  while (!asker.is_done()) {
    ASSERT_FALSE(loop_.run(Run::once));
    server.act();
  }
  EXPECT_EQ(asker.failed_gets, 0);
  EXPECT_GT(asker.failed_posts, 0);  // Which is why they are not repeated.
  EXPECT_GT(asker.good, calls / 7 * 6);
  EXPECT_GT(client_.metrics().repeated, static_cast<unsigned>(calls) / 28);
  for (const auto& [request, times] : server.done) {
    if (request.starts_with("POST")) EXPECT_EQ(times, 1) << request;
  }
}

}  // namespace
}  // namespace spate::testing
