// A client and servers on real sockets; and a random server, with which no GET may fail and no POST
// be done twice. SPATE_CALLS=<number> sets the number of calls.
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
#include "support/closed_port.h"
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

TEST_F(ClientSockets, ClientReceivesResponseFromServer) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call = client_.fetch(url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "hello\n");
}

TEST_F(ClientSockets, HostMayBeName) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call =
      client_.fetch("http://localhost:" + std::to_string(address_.port()) + "/", outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "hello\n");
}

TEST_F(ClientSockets, UnixSocketIsSupported) {
  const Address address = must(Address::abstract(
      "spate-client-test-" + std::to_string(reinterpret_cast<std::uintptr_t>(this))));
  serve([](http::Exchange exchange) { exchange.respond(exchange.request().host()); }, address);
  Outcome outcome;
  const http::Call call = client_.fetch("http://daemon/", outcome.note(), {.address = address});
  wait_for(outcome);
  EXPECT_EQ(outcome.text(), "daemon");
}

TEST_F(ClientSockets, RefusedConnectionIsError) {
  Outcome outcome;
  const http::Call call = client_.fetch(closed_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), std::errc::connection_refused);
}

TEST_F(ClientSockets, IdleConnectionDoesNotKeepLoopAlive) {
  serve([](http::Exchange exchange) { exchange.respond("hello\n"); });
  Outcome outcome;
  const http::Call call = client_.fetch(url(), outcome.note());
  wait_for(outcome);
  ASSERT_EQ(client_.metrics().idle, 1u);
  server_ = {};  // Closes the server's end, which the client notices.
  loop_.run();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientSockets, ConnectionIsNotReusedAfterUnsolicitedResponse) {
  std::vector<std::unique_ptr<Peer>> peers;
  const Listener listener = must(Listener::create(
      loop_, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        peers.push_back(std::make_unique<Peer>(std::move(stream)));
        peers.back()->on_request = [](Peer& peer) { peer.answer(kOk); };
      }));
  address_ = listener.address();
  for (int i = 0; i < 10; ++i) {
    Outcome outcome;
    const http::Call call = client_.fetch(url(), outcome.note());
    wait_for(outcome);
    EXPECT_EQ(outcome.text(), "ok");
    peers.back()->answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
  }
  EXPECT_EQ(peers.size(), 10u);
}

TEST_F(ClientSockets, ActiveCountIsRestoredAfterConnectionsClose) {
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
  loop_.run();  // Must return, or the test hangs.
  EXPECT_EQ(loop_.active_count(), before);
}

TEST_F(ClientSockets, LargeBodiesAreTransferredBothWays) {
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

TEST_F(ClientSecured, HttpsRequiresTlsContext) {
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), std::errc::not_supported);
}

TEST_F(ClientSecured, HttpsConnectionIsReused) {
  client_ = must(http::Client::create(loop_, {.tls = trusting(test_root().pem())}));
  for (int i = 0; i < 2; ++i) {
    Outcome outcome;
    const http::Call call = client_.fetch(secure_url(), outcome.note());
    wait_for(outcome);
    EXPECT_EQ(outcome.text(), "/safe");
  }
  EXPECT_EQ(client_.metrics().reused, 1u);
}

TEST_F(ClientSecured, IdleConnectionDoesNotKeepLoopAlive) {
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

TEST_F(ClientSecured, UntrustedCertificateIsError) {
  client_ = must(http::Client::create(loop_, {.tls = trusting("")}));
  Outcome outcome;
  const http::Call call = client_.fetch(secure_url(), outcome.note());
  wait_for(outcome);
  EXPECT_EQ(outcome.error(), Error::tls_certificate);
}

TEST_F(ClientSecured, HttpsUsesTunnelOfHttpProxy) {
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

// Answers requests, and closes at random: after a response, some time later, or when a request
// arrives on a used connection.
class RandomServer {
 public:
  // Whether it also fails new connections, and responds that it is unavailable.
  enum class Mood : bool { fair, harsh };
  RandomServer(Loop& loop, Random& random, Mood mood = Mood::fair)
      : random_(random),
        is_harsh_(mood == Mood::harsh),
        listener_(must(Listener::create(
            loop, Address::loopback_ipv4(0),
            [this](Stream stream, const Address&) { accept(std::move(stream)); }))) {}

  std::uint16_t port() const { return listener_.address().port(); }
  // Ends some of the connections.
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
    if (is_harsh_ && chance > 7)
      return static_cast<void>(
          peer.answer("HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"));
    if ((!is_first || is_harsh_) && chance == 0) {
      peer.is_closed = true;  // abort() calls no callback.
      return peer.stream().abort();
    }
    if (!is_first && chance == 1) return peer.stream().close();
    ++done[request.substr(0, request.find(" HTTP"))];
    peer.answer(chance == 2 ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                            : kOk);
    if (chance < 5) peer.stream().end();  // Ends without announcing it.
  }

  Random& random_;
  const bool is_harsh_;
  std::map<Peer*, Known> peers_;
  Listener listener_;
};

// Makes calls continuously, several at a time.
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
                                   const bool is_good =
                                       response && response->status() == http::Status::ok;
                                   ++(is_good ? good : is_get ? failed_gets : failed_posts);
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

int number_of_calls(int usual) {
  const char* wanted = std::getenv("SPATE_CALLS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

// Makes all calls. No GET may fail, some POSTs must, and no POST may be done twice.
void ask_all(Loop& loop, RandomServer& server, Asker& asker) {
  asker.begin(6);
  while (!asker.is_done()) {
    ASSERT_FALSE(loop.run(Run::once));
    server.act();
  }
  EXPECT_EQ(asker.failed_gets, 0);
  EXPECT_GT(asker.failed_posts, 0);  // Hence they are not repeated.
  for (const auto& [request, times] : server.done) {
    if (request.starts_with("POST")) EXPECT_EQ(times, 1) << request;
  }
}

TEST_F(ClientSockets, GetSucceedsAndPostIsNotRepeatedWhenServerCloses) {
  Random random(20261123);
  RandomServer server(loop_, random);
  const int calls = number_of_calls(14'000);
  Asker asker(client_, server.port(), random, calls);
  ASSERT_NO_FATAL_FAILURE(ask_all(loop_, server, asker));
  EXPECT_GT(asker.good, calls / 7 * 6);
  EXPECT_GT(client_.metrics().repeated, static_cast<unsigned>(calls) / 28);
}

TEST_F(ClientSockets, RetriesMakeEveryGetSucceedAndRepeatNoPost) {
  Random random(20261128);
  RandomServer server(loop_, random, RandomServer::Mood::harsh);
  client_ = must(http::Client::create(
      loop_, {.retry = {.attempts = 30, .first_delay = 1us, .budget = 1, .burst = 100}}));
  const int calls = number_of_calls(4'000);
  Asker asker(client_, server.port(), random, calls);
  ASSERT_NO_FATAL_FAILURE(ask_all(loop_, server, asker));
  EXPECT_GT(client_.metrics().retried, static_cast<unsigned>(calls) / 10);
}

}  // namespace
}  // namespace spate::testing
