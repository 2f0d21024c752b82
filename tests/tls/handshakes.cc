// Handshakes: the negotiated parameters, and resumption.
#include "tls/harness.h"

namespace spate::testing {
namespace {

using TlsHandshakes = TlsTest;

TEST_F(TlsHandshakes, NegotiateNewestVersion) {
  Handshake shaken = shake(client(), server());
  ASSERT_TRUE(shaken.client) << shaken.client.error().text;
  ASSERT_TRUE(shaken.server) << shaken.server.error().text;
  const std::optional<TlsInfo> info = tls_info(*shaken.client);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->version, "TLSv1.3");
  EXPECT_EQ(info->cipher, "TLS_AES_256_GCM_SHA384");
  EXPECT_EQ(info->subject, "CN = server");
  EXPECT_EQ(info->names,
            (std::vector<std::string>{"localhost", "a.example", "*.b.example", "127.0.0.1"}));
  EXPECT_FALSE(info->certificate.empty());
  EXPECT_FALSE(info->is_resumed);
  EXPECT_EQ(tls_info(*shaken.server)->server_name, "localhost");
  EXPECT_EQ(tls_info(*shaken.server)->subject, "");
}

TEST_F(TlsHandshakes, ProvideNoInfoForPlainOrClosedStream) {
  auto plain = std::move(*Stream::socket_pair(*loop_));
  EXPECT_FALSE(tls_info(plain.first));
  EXPECT_FALSE(tls_info(Stream()));
  Handshake shaken = shake(client(), server());
  shaken.client->abort();
  EXPECT_FALSE(tls_info(*shaken.client));
}

TEST_F(TlsHandshakes, AcceptOldClientByDefault) {
  for (const TlsVersion least : {TlsVersion::tls_1_2, TlsVersion::tls_1_3}) {
    RawPeer peer(*loop_);
    peer.become_client(TLS1_2_VERSION);
    TlsResult<Stream> result = std::unexpected(TlsFailure{});
    const Connecting attempt =
        accept_tls(std::move(peer.stream()), server({.min_version = least}),
                   [&](TlsResult<Stream> stream) { result = std::move(stream); });
    EXPECT_EQ(peer.shake_hands(), least == TlsVersion::tls_1_2);
    run_turns(*loop_, 5);
    if (least == TlsVersion::tls_1_2) {
      ASSERT_TRUE(result);
      EXPECT_EQ(tls_info(*result)->version, "TLSv1.2");
    } else {
      EXPECT_EQ(result.error().code, Error::tls_handshake);
      EXPECT_EQ(result.error().text, "no version of TLS in common");
    }
  }
}

TEST_F(TlsHandshakes, NegotiateProtocolPreferredByServer) {
  Handshake shaken =
      shake(client({.alpn = {"http/1.1", "h2"}}), server({.alpn = {"h2", "http/1.1"}}));
  ASSERT_TRUE(shaken.client) << shaken.client.error().text;
  EXPECT_EQ(tls_info(*shaken.client)->alpn, "h2");
  EXPECT_EQ(tls_info(*shaken.server)->alpn, "h2");
}

TEST_F(TlsHandshakes, FailWithoutCommonProtocol) {
  const Handshake shaken = shake(client({.alpn = {"smtp"}}), server({.alpn = {"h2"}}));
  EXPECT_EQ(shaken.server.error().code, Error::tls_handshake);
  EXPECT_EQ(shaken.server.error().text, "no protocol in common (ALPN)");
  EXPECT_EQ(shaken.client.error().text, "the peer refuses: no application protocol");
}

TEST_F(TlsHandshakes, NegotiateNoProtocolIfOneSideOffersNone) {
  EXPECT_EQ(tls_info(*shake(client(), server({.alpn = {"h2"}})).client)->alpn, "");
  EXPECT_EQ(tls_info(*shake(client({.alpn = {"h2"}}), server()).client)->alpn, "");
}

// ---- names

TEST_F(TlsHandshakes, SelectCertificateByName) {
  const Certificate other({.subject = "other", .names = {"c.example", "*.d.example"}},
                          &test_root());
  const TlsContext both = server({.identities = {test_server().identity(), other.identity()}});
  for (const auto& [host, subject] : {std::pair{"c.example", "CN = other"},
                                      {"x.d.example", "CN = other"},
                                      {"a.example", "CN = server"},
                                      {"y.b.example", "CN = server"},
                                      {"127.0.0.1", "CN = server"}}) {
    Handshake shaken = shake(client(), both, host);
    ASSERT_TRUE(shaken.client) << host << ": " << shaken.client.error().text;
    EXPECT_EQ(tls_info(*shaken.client)->subject, subject) << host;
  }
}

TEST_F(TlsHandshakes, SendNoServerNameForAddress) {
  EXPECT_EQ(tls_info(*shake(client(), server(), "127.0.0.1").server)->server_name, "");
}

TEST_F(TlsHandshakes, AcceptNameWithTrailingDot) {
  Handshake shaken = shake(client(), server(), "localhost.");
  ASSERT_TRUE(shaken.client) << shaken.client.error().text;
  EXPECT_EQ(tls_info(*shaken.server)->server_name, "localhost");
}

TEST_F(TlsHandshakes, RequireValidName) {
  for (const std::string& host :
       {std::string(), std::string("."), std::string("a\0.example", 10), std::string(300, 'x')}) {
    TlsResult<Stream> result = std::unexpected(TlsFailure{});
    const Connecting attempt =
        start_tls(std::move(Stream::socket_pair(*loop_)->first), client(), host,
                  [&](TlsResult<Stream> stream) { result = std::move(stream); });
    run_turns(*loop_, 3);
    EXPECT_EQ(result.error().code, std::errc::invalid_argument) << host;
  }
}

// ---- certificates of clients

TEST_F(TlsHandshakes, ReportClientCertificateToServer) {
  const Certificate somebody({.subject = "somebody", .names = {"somebody.example"}}, &test_root());
  const TlsContext asking =
      server({.client_check = TlsClientCheck::required, .client_ca = test_root().pem()});
  Handshake shaken = shake(client({.identity = somebody.identity()}), asking);
  ASSERT_TRUE(shaken.server) << shaken.server.error().text;
  EXPECT_EQ(tls_info(*shaken.server)->subject, "CN = somebody");
  EXPECT_EQ(tls_info(*shaken.server)->names, std::vector<std::string>{"somebody.example"});
}

TEST_F(TlsHandshakes, FailWithoutRequiredCertificate) {
  const TlsContext asking =
      server({.client_check = TlsClientCheck::required, .client_ca = test_root().pem()});
  Handshake shaken = shake(client(), asking);
  EXPECT_EQ(shaken.server.error().code, Error::tls_certificate);
  EXPECT_EQ(shaken.server.error().text, "the client has shown no certificate");
  ASSERT_TRUE(shaken.client) << "of TLS 1.3, it learns of that when it reads";
  Recorder log;
  shaken.client->start(log);
  run_until(*loop_, [&] { return log.closed_calls == 1; });
  EXPECT_EQ(log.error, Error::tls_certificate);
}

TEST_F(TlsHandshakes, SucceedWithoutOptionalCertificate) {
  const TlsContext asking =
      server({.client_check = TlsClientCheck::optional, .client_ca = test_root().pem()});
  EXPECT_EQ(tls_info(*shake(client(), asking).server)->subject, "");
}

TEST_F(TlsHandshakes, FailWithUntrustedClientCertificate) {
  const Certificate stranger({.subject = "stranger", .is_ca = false});
  for (const TlsClientCheck check : {TlsClientCheck::required, TlsClientCheck::optional}) {
    const TlsContext asking = server({.client_check = check, .client_ca = test_root().pem()});
    const Handshake shaken = shake(client({.identity = stranger.identity()}), asking);
    EXPECT_EQ(shaken.server.error().code, Error::tls_certificate);
    EXPECT_EQ(shaken.server.error().text, "the certificate is signed by itself: CN = stranger");
  }
}

// ---- sessions

class TlsSessions : public TlsTest {
 protected:
  // Connects twice. Returns whether the second connection resumes the first one's session.
  bool resumes(const TlsContext& first, const TlsContext& second) {
    talk(first);
    return talk(second);
  }
  // Sends bytes both ways, because tickets come with them. Returns whether it was resumed.
  bool talk(const TlsContext& server) {
    Handshake shaken = shake(client_, server, host_);
    EXPECT_TRUE(shaken.client) << shaken.client.error().text;
    return shaken.client && shaken.server && say_hello(shaken);
  }
  bool say_hello(Handshake& shaken) {
    Recorder at_client, at_server;
    shaken.client->start(at_client);
    shaken.server->start(at_server);
    EXPECT_TRUE(shaken.server->write("hello"));
    run_until(*loop_, [&] { return at_client.received == "hello"; });
    const bool is_resumed = tls_info(*shaken.server)->is_resumed;
    EXPECT_EQ(tls_info(*shaken.client)->is_resumed, is_resumed);
    shaken.client->close();
    run_until(*loop_, [&] { return at_client.closed_calls + at_server.closed_calls == 2; });
    return is_resumed;
  }

  TlsContext client_ = client();
  std::string host_ = "localhost";
};

TEST_F(TlsSessions, AreResumed) {
  const TlsContext context = server();
  EXPECT_TRUE(resumes(context, context));
}

TEST_F(TlsSessions, AreResumedRepeatedlyWithSingleUseTickets) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(talk(context)) << i;
}

TEST_F(TlsSessions, AreNotResumedUnderAnotherName) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  host_ = "a.example";
  EXPECT_FALSE(talk(context));
}

TEST_F(TlsSessions, AreNotResumedIfServerIssuesNoTickets) {
  const TlsContext context = server({.tickets = 0});
  EXPECT_FALSE(resumes(context, context));
}

TEST_F(TlsSessions, AreNotResumedIfClientStoresNone) {
  client_ = client({.max_sessions = 0});
  const TlsContext context = server();
  EXPECT_FALSE(resumes(context, context));
}

TEST_F(TlsSessions, AreNotResumedByAnotherServer) { EXPECT_FALSE(resumes(server(), server())); }

TEST_F(TlsSessions, AreResumedByAnotherServerWithSameKeys) {
  const TlsContext one = server();
  const TlsContext two = server();
  TlsTicketKey key{};
  key.name[3] = std::byte{7};
  EXPECT_TRUE(one.set_ticket_keys({&key, 1}) && two.set_ticket_keys({&key, 1}));
  EXPECT_TRUE(resumes(one, two));
}

TEST_F(TlsSessions, AreResumedOnAnotherLoop) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  const std::unique_ptr<Loop> other = *Loop::create();
  auto plain = std::move(*Stream::socket_pair(*loop_));
  Stream theirs = std::move(*Stream::adopt(*other, *plain.second.release()));
  TlsResult<Stream> at_client = std::unexpected(TlsFailure{});
  TlsResult<Stream> at_server = std::unexpected(TlsFailure{});
  const Connecting one = start_tls(std::move(plain.first), client_, host_,
                                   [&](auto stream) { at_client = std::move(stream); });
  const Connecting two =
      accept_tls(std::move(theirs), context, [&](auto stream) { at_server = std::move(stream); });
  for (int i = 0; i < 100 && !(at_client && at_server); ++i) {
    loop_->run(Run::no_wait);
    other->run(Run::no_wait);
  }
  ASSERT_TRUE(at_client && at_server);
  EXPECT_TRUE(tls_info(*at_client)->is_resumed);
}

TEST_F(TlsSessions, AreResumedAfterTwoKeyRotationsButNotThree) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  context.rotate_tickets();
  context.rotate_tickets();
  EXPECT_TRUE(talk(context));
  for (int i = 0; i < 3; ++i) context.rotate_tickets();
  EXPECT_FALSE(talk(context));
}

TlsTicketKey shared_key() {
  TlsTicketKey key{};
  key.name[3] = std::byte{7};
  return key;
}

TEST_F(TlsSessions, AreNotResumedAfterTicketLifetimeOfAcceptingServer) {
  const TlsContext one = server();
  const TlsContext other = server({.ticket_lifetime = Nanos{1}});
  const TlsTicketKey key = shared_key();
  EXPECT_TRUE(one.set_ticket_keys({&key, 1}) && other.set_ticket_keys({&key, 1}));
  EXPECT_FALSE(resumes(one, other));
}

// RFC 8446 §4.6.1. Otherwise a new ticket would start a new lifetime.
TEST_F(TlsSessions, KeepTimeOfFullHandshakeInNewTickets) {
  constexpr std::chrono::milliseconds kSpan{50};
  const TlsContext one = server();
  const TlsContext brief = server({.ticket_lifetime = kSpan});
  const TlsTicketKey key = shared_key();
  EXPECT_TRUE(one.set_ticket_keys({&key, 1}) && brief.set_ticket_keys({&key, 1}));
  EXPECT_FALSE(talk(one));
  const WallTime begun = system_clock().wall();
  run_until(*loop_, [&] { return system_clock().wall() - begun >= kSpan; });
  EXPECT_TRUE(talk(one));
  EXPECT_FALSE(talk(brief));
}

TEST_F(TlsSessions, ExpireWithClientCertificate) {
  const TlsContext context =
      server({.client_check = TlsClientCheck::required, .client_ca = test_root().pem()});
  const Certificate brief({.subject = "brief", .ends = 3}, &test_root());
  client_ = client({.identity = brief.identity()});
  std::error_code error;
  const WallTime begun = system_clock().wall();
  while (!error && system_clock().wall() - begun < std::chrono::seconds(30)) {
    Handshake shaken = shake(client_, context, host_);
    if (!shaken.server) {
      error = shaken.server.error().code;
    } else if (shaken.client) {
      say_hello(shaken);
    }
  }
  EXPECT_EQ(error, Error::tls_certificate);
}

TEST_F(TlsSessions, ExpireWithServerCertificate) {
  const Certificate brief({.subject = "brief", .names = {"localhost"}, .ends = 3}, &test_root());
  const TlsContext context = server({.identities = {brief.identity()}});
  std::error_code error;
  int resumed = 0;
  const WallTime begun = system_clock().wall();
  while (!error && system_clock().wall() - begun < std::chrono::seconds(30)) {
    Handshake shaken = shake(client_, context, host_);
    if (!shaken.client) {
      error = shaken.client.error().code;
    } else if (shaken.server) {
      resumed += say_hello(shaken);
    }
  }
  EXPECT_EQ(error, Error::tls_certificate);
  EXPECT_GT(resumed, 0);
}

TEST_F(TlsSessions, SurviveReload) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  ASSERT_TRUE(context.reload(TlsServerOptions{.identities = {test_server().identity()}}));
  EXPECT_TRUE(talk(context));
}

TEST_F(TlsSessions, AreNotResumedAfterClientVerificationChanges) {
  const TlsContext context = server();
  EXPECT_FALSE(talk(context));
  ASSERT_TRUE(context.reload(TlsServerOptions{.identities = {test_server().identity()},
                                              .client_check = TlsClientCheck::optional,
                                              .client_ca = test_root().pem()}));
  EXPECT_FALSE(talk(context));
}

TEST_F(TlsSessions, AcceptOneToThreeKeys) {
  const TlsContext context = server();
  const TlsTicketKey keys[4] = {};
  EXPECT_FALSE(context.set_ticket_keys({}));
  EXPECT_FALSE(context.set_ticket_keys(keys));
  EXPECT_TRUE(context.set_ticket_keys(std::span(keys).first(3)));
  EXPECT_FALSE(client_.set_ticket_keys(std::span(keys).first(1)));
}

// ---- contexts

TEST_F(TlsHandshakes, NewHandshakesUseReloadedCertificate) {
  const TlsContext context = server();
  Handshake before = shake(client(), context);
  const Certificate other({.subject = "newer", .names = {"localhost"}}, &test_root());
  ASSERT_TRUE(context.reload(TlsServerOptions{.identities = {other.identity()}}));
  Handshake after = shake(client(), context);
  EXPECT_EQ(tls_info(*after.client)->subject, "CN = newer");
  EXPECT_EQ(tls_info(*before.client)->subject, "CN = server");
  Recorder log;
  before.client->start(log);
  EXPECT_TRUE(before.server->write("still here"));
  run_until(*loop_, [&] { return log.received == "still here"; });
}

TEST_F(TlsHandshakes, KeepOldContextIfReloadFails) {
  const TlsContext context = server();
  EXPECT_EQ(context.reload(TlsServerOptions{.identities = {{.chain = "no PEM"}}}).error().code,
            Error::tls_certificate);
  EXPECT_EQ(context.reload(TlsClientOptions{}).error().code, std::errc::invalid_argument);
  EXPECT_EQ(client().reload(TlsServerOptions{}).error().code, std::errc::invalid_argument);
  EXPECT_TRUE(shake(client(), context).client);
}

TEST_F(TlsHandshakes, RejectMissingOrWrongContext) {
  const Handshake swapped = shake(server(), client());
  EXPECT_EQ(swapped.client.error().code, std::errc::invalid_argument);
  EXPECT_EQ(swapped.server.error().code, std::errc::invalid_argument);
  const Handshake none = shake(TlsContext(), TlsContext());
  EXPECT_EQ(none.client.error().code, std::errc::invalid_argument);
  EXPECT_EQ(none.server.error().code, std::errc::invalid_argument);
  EXPECT_FALSE(TlsContext().reload(TlsClientOptions{}));
  EXPECT_FALSE(TlsContext().set_ticket_keys({}));
}

TEST_F(TlsHandshakes, MayBeLayered) {
  Handshake outer = shake(client(), server());
  ASSERT_TRUE(outer.client && outer.server);
  Handshake inner = shake_hands(
      *loop_, std::pair(std::move(*outer.client), std::move(*outer.server)), client(), server());
  ASSERT_TRUE(inner.client) << inner.client.error().text;
  ASSERT_TRUE(inner.server) << inner.server.error().text;
  Recorder left, right;
  inner.client->start(left);
  inner.server->start(right);
  const std::string sent = pattern(1'000'000);
  EXPECT_TRUE(inner.client->write(sent));
  run_until(*loop_, [&] { return right.received.size() == sent.size(); });
  EXPECT_TRUE(right.received == sent);
  inner.client->end();
  run_until(*loop_, [&] { return left.closed_calls + right.closed_calls == 2; });
  EXPECT_FALSE(left.error || right.error) << left.error << right.error;
}

}  // namespace
}  // namespace spate::testing
