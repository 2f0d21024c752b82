// HTTP/2 by ALPN, and the features of a client that stay with HTTP/1.1 then.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "http/client_harness.h"
#include "http/http2_frames.h"
#include "http/http2_harness.h"
#include "http/websocket_harness.h"
#include "spate/net/listener.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Version;

class ClientHttp2Secure : public ::testing::Test {
 protected:
  using Protocols = std::vector<std::string>;

  void serve(const Protocols& alpn) {
    http::ServerOptions options;
    options.http2 = must(http::Http2::create());
    options.tls =
        must(TlsContext::server({.identities = {test_server().identity()}, .alpn = alpn}));
    server_ = must(http::serve(
        *loop_, Address::loopback_ipv4(0),
        [this](Exchange exchange) { on_request(std::move(exchange)); }, std::move(options)));
    url_ = "https://localhost:" + std::to_string(server_.address().port()) + "/";
  }
  static TlsContext context(const Protocols& alpn) {
    return must(TlsContext::client({.system_cas = false, .ca = test_root().pem(), .alpn = alpn}));
  }
  void make_client(http::ClientOptions options = {}) {
    options.http2 = must(http::Http2::create());
    options.tls = context({"h2", "http/1.1"});
    client_ = must(http::Client::create(*loop_, std::move(options)));
  }
  // Returns the versions of the responses to so many concurrent calls.
  std::vector<Version> versions(std::size_t count, http::CallOptions (*options)() = nullptr) {
    std::vector<Outcome> outcomes(count);
    std::vector<http::Call> calls;
    for (Outcome& outcome : outcomes)
      calls.push_back(client_.fetch(url_, outcome.note(),
                                    options == nullptr ? http::CallOptions() : options()));
    run_until(*loop_, [&] {
      return std::ranges::all_of(outcomes, [](const Outcome& each) { return each.is_there(); });
    });
    std::vector<Version> all;
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.text(), "secret\n") << outcome.error();
      if (outcome.is_good()) all.push_back((*outcome.result)->version());
    }
    return all;
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::function<void(Exchange)> on_request = [](Exchange exchange) {
    exchange.respond("secret\n");
  };
  http::Server server_;
  http::Client client_;
  std::string url_;
};

TEST_F(ClientHttp2Secure, Http2IsNegotiated) {
  serve({"h2", "http/1.1"});
  make_client();
  EXPECT_THAT(versions(20), ::testing::Each(Version::http_2));
  EXPECT_EQ(server_.metrics().accepted, 1u);
}

TEST_F(ClientHttp2Secure, ServerMaySelectHttp1) {
  serve({"http/1.1"});
  make_client();
  EXPECT_THAT(versions(4), ::testing::Each(Version::http_1_1));
  EXPECT_EQ(client_.metrics().connections, 4u);
}

TEST_F(ClientHttp2Secure, WebSocketSharesConnection) {
  serve({"h2", "http/1.1"});
  make_client();
  EXPECT_THAT(versions(1), ::testing::Each(Version::http_2));
  Party here;
  on_request = [&](Exchange exchange) {
    here.socket = must(http::WebSocket::accept(std::move(exchange), here));
    here.socket.send("hello");
  };
  Party there;
  there.socket = must(http::WebSocket::connect(client_, "wss" + url_.substr(5), there));
  there.on_told = [&](const std::string& what) {
    if (what == "text hello") there.socket.close();
  };
  run_until(*loop_, [&] { return !there.socket.is_open() && there.told.size() >= 3; });
  EXPECT_THAT(there.told, ::testing::ElementsAre("open", "text hello", "closed 1000"));
  EXPECT_EQ(server_.metrics().accepted, 1u);
}

TEST_F(ClientHttp2Secure, WebSocketFallsBackToHttp1Server) {
  serve({"http/1.1"});
  make_client();
  Party here;
  on_request = [&](Exchange exchange) {
    EXPECT_EQ(exchange.request().version(), Version::http_1_1);
    here.socket = must(http::WebSocket::accept(std::move(exchange), here));
  };
  Party there;
  there.socket = must(http::WebSocket::connect(client_, "wss" + url_.substr(5), there));
  run_until(*loop_, [&] { return !there.told.empty(); });
  EXPECT_THAT(there.told, ::testing::ElementsAre("open"));
}

// A server that speaks HTTP/2 without upgrades to clients that offer it, and HTTP/1.1 to the
// others.
class ClientHttp2WithoutTunnels : public ClientHttp2Secure {
 protected:
  ClientHttp2WithoutTunnels() {
    serve({"h2", "http/1.1"});
    const TlsContext tls = must(
        TlsContext::server({.identities = {test_server().identity()}, .alpn = {"h2", "http/1.1"}}));
    listener_ = must(Listener::create(*loop_, Address::loopback_ipv4(0),
                                      with_tls(tls, [this](Stream stream, const Address&) {
                                        if (tls_info(stream)->alpn != "h2")
                                          return server_.add(std::move(stream));
                                        peers_.push_back(std::make_unique<Peer>(std::move(stream)));
                                        peers_.back()->answer(frame(kSettings, 0, 0));
                                      })));
    url_ = "https://localhost:" + std::to_string(listener_.address().port()) + "/";
  }

  std::vector<std::unique_ptr<Peer>> peers_;
  Listener listener_;
};

TEST_F(ClientHttp2WithoutTunnels, WebSocketUsesItsOwnConnection) {
  make_client({.tls_for_upgrades = context({"http/1.1"})});
  Party here;
  on_request = [&](Exchange exchange) {
    EXPECT_EQ(exchange.request().version(), Version::http_1_1);
    here.socket = must(http::WebSocket::accept(std::move(exchange), here));
  };
  Party there;
  there.socket = must(http::WebSocket::connect(client_, "wss" + url_.substr(5), there));
  run_until(*loop_, [&] { return !there.told.empty(); });
  EXPECT_THAT(there.told, ::testing::ElementsAre("open"));
  EXPECT_EQ(peers_.size(), 1u);
  EXPECT_EQ(client_.metrics().idle, 1u);  // The connection of HTTP/2.
  Party second;
  second.socket = must(http::WebSocket::connect(client_, "wss" + url_.substr(5), second));
  run_until(*loop_, [&] { return !second.told.empty(); });
  EXPECT_THAT(second.told, ::testing::ElementsAre("open"));
  EXPECT_EQ(peers_.size(), 1u);
}

TEST_F(ClientHttp2WithoutTunnels, UnsupportedUpgradeIsError) {
  make_client();
  Hearer hearer;
  const http::Call call = client_.send(url_, hearer, {.upgrade = "echo"});
  run_until(*loop_, [&] { return !hearer.told.empty(); });
  EXPECT_EQ(hearer.error, http::HttpError::not_upgraded);
}

}  // namespace
}  // namespace spate::testing
