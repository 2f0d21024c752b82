// Peers that are hostile, slow, or merely different.
#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "support/closed_port.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Our Stream, with the test as the other end.
class TlsPeers : public TlsTest {
 protected:
  void accept(RawPeer& peer, const TlsContext& context) {
    attempt_ = accept_tls(std::move(peer.stream()), context, told());
  }
  void start(RawPeer& peer, const TlsContext& context) {
    attempt_ = start_tls(std::move(peer.stream()), context, "localhost", told());
  }
  OnSecured told() {
    return [this](TlsResult<Stream> stream) {
      is_told_ = true;
      result_ = std::move(stream);
    };
  }
  void run_until_told() {
    run_until(*loop_, [this] { return is_told_; });
  }
  // Completes the handshake, and starts our side.
  void establish(RawPeer& peer, int newest = TLS1_3_VERSION) {
    accept(peer, server());
    peer.become_client(newest);
    ASSERT_TRUE(peer.shake_hands());
    run_until_told();
    ASSERT_TRUE(result_) << result_.error().text;
    stream_ = std::move(*result_);
    stream_.start(log_);
  }

  TlsResult<Stream> result_ = std::unexpected(TlsFailure{});
  bool is_told_ = false;
  Connecting attempt_;
  Stream stream_;
  Recorder log_;
};

// ---- handshakes that fail

TEST_F(TlsPeers, HttpRequestIsReportedAsHttp) {
  RawPeer peer(*loop_);
  accept(peer, server());
  peer.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  run_until_told();
  EXPECT_EQ(result_.error().code, Error::tls_handshake);
  EXPECT_EQ(result_.error().text, "the peer speaks HTTP, not TLS");
}

TEST_F(TlsPeers, OtherProtocolIsReportedAsNotTls) {
  RawPeer peer(*loop_);
  start(peer, client());
  peer.send("220 mail.example ESMTP\r\n");
  run_until_told();
  EXPECT_EQ(result_.error().code, Error::tls_handshake);
  EXPECT_EQ(result_.error().text, "the peer does not speak TLS, or an unknown version of it");
}

TEST_F(TlsPeers, GarbageIsRefused) {
  const TlsContext context = server();
  for (unsigned seed = 0; seed < 200; ++seed) {
    RawPeer peer(*loop_);
    is_told_ = false;
    accept(peer, context);
    std::string garbage(1 + seed * 7, ' ');
    unsigned state = seed;
    for (char& byte : garbage) byte = static_cast<char>((state = state * 1103515245 + 12345) >> 16);
    if (seed % 2 == 0) garbage.replace(0, 3, "\x16\x03\x01");
    peer.send(garbage);
    run_turns(*loop_, 3);
    peer.close();
    run_until_told();
    EXPECT_FALSE(result_);
    EXPECT_FALSE(result_.error().text.empty());
  }
}

TEST_F(TlsPeers, EofDuringHandshakeIsError) {
  RawPeer peer(*loop_);
  accept(peer, server());
  peer.send(std::string("\x16\x03\x01\x02", 4));
  run_turns(*loop_, 3);
  peer.close();
  run_until_told();
  EXPECT_EQ(result_.error().code, Error::tls_handshake);
  EXPECT_EQ(result_.error().text, "the peer ended the connection");
}

TEST_F(TlsPeers, SilentPeerTimesOut) {
  ScriptedClock clock;
  loop_ = std::move(*Loop::create({.clock = &clock}));
  RawPeer peer(*loop_);
  accept(peer, server({.handshake_timeout = 3s}));
  clock.advance(3s - 1ns);
  run_turns(*loop_, 3);
  EXPECT_FALSE(is_told_);
  clock.advance(1ns);
  run_turns(*loop_, 3);
  ASSERT_TRUE(is_told_);
  EXPECT_EQ(result_.error().code, Error::deadline);
  EXPECT_EQ(result_.error().text, "the TLS handshake was not done in time");
}

TEST_F(TlsPeers, SlowHandshakeTimesOut) {
  ScriptedClock clock;
  loop_ = std::move(*Loop::create({.clock = &clock}));
  RawPeer peer(*loop_);
  accept(peer, server({.handshake_timeout = 3s}));
  peer.send(std::string("\x16\x03\x01\x01\x00\x01", 6));
  for (int i = 0; i < 30 && !is_told_; ++i) {
    peer.send("x");
    clock.advance(200ms);
    run_turns(*loop_, 3);
    if (i == 13) EXPECT_FALSE(is_told_);
  }
  EXPECT_TRUE(is_told_);
  EXPECT_EQ(result_.error().code, Error::deadline);
}

TEST_F(TlsPeers, HandshakeWorksByteByByte) {
  auto near = std::move(*Stream::memory_pair(*loop_));
  auto far = std::move(*Stream::memory_pair(*loop_));
  ASSERT_TRUE(near.second.set_rate_limits(
      {.read = {.bytes_per_second = 1'000'000, .burst = 16}, .write = {}}));
  const Relaying relaying = relay(std::move(near.second), std::move(far.first), [](auto) {});
  int done = 0;
  const Connecting one = start_tls(std::move(near.first), client(), "localhost",
                                   [&](auto stream) { done += stream.has_value(); });
  const Connecting two =
      accept_tls(std::move(far.second), server(), [&](auto stream) { done += stream.has_value(); });
  run_until(*loop_, [&] { return done == 2; });
}

TEST_F(TlsPeers, LargeRecordIsReadInParts) {
  Handshake shaken = shake(client(), server());
  ASSERT_TRUE(shaken.client && shaken.server);
  ASSERT_TRUE(shaken.server->set_rate_limits(
      {.read = {.bytes_per_second = 100'000'000, .burst = 1000}, .write = {}}));
  Recorder at_client, at_server;
  shaken.client->start(at_client);
  shaken.server->start(at_server);
  const std::string record(16384, 'r');
  EXPECT_TRUE(shaken.client->write(record));
  run_until(*loop_, [&] { return at_server.received == record; });
  EXPECT_EQ(at_server.received, record);
}

TEST_F(TlsPeers, StreamErrorsDuringHandshakeAreReported) {
  ScriptedClock clock;
  loop_ = std::move(*Loop::create({.clock = &clock}));
  RawPeer peer(*loop_);
  ASSERT_TRUE(peer.stream().set_deadline(1s));
  accept(peer, server());
  run_turns(*loop_, 2);
  clock.advance(1s);
  run_turns(*loop_, 5);
  ASSERT_TRUE(is_told_);
  EXPECT_EQ(result_.error().code, Error::deadline);
}

TEST_F(TlsPeers, ClosedStreamIsReportedAsError) {
  RawPeer peer(*loop_);
  peer.stream().abort();
  accept(peer, server());
  EXPECT_FALSE(is_told_);
  run_turns(*loop_, 3);
  accept_tls_unattended(Stream(), server(), told());
}

TEST_F(TlsPeers, CancelledHandshakeCallsNothing) {
  RawPeer peer(*loop_);
  accept(peer, server());
  EXPECT_TRUE(attempt_.is_pending());
  run_turns(*loop_, 2);
  attempt_.cancel();
  run_turns(*loop_, 2);
  EXPECT_FALSE(is_told_);
  EXPECT_FALSE(peer.become_client() == nullptr || peer.shake_hands());
}

TEST_F(TlsPeers, HandshakesPerTurnAreLimited) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  std::vector<Connecting> attempts;
  int told = 0;
  const TlsContext context = server();
  for (int i = 0; i < 50; ++i) {
    peers.push_back(std::make_unique<RawPeer>(*loop_));
    attempts.push_back(
        accept_tls(std::move(peers.back()->stream()), context, [&](auto) { ++told; }));
    peers.back()->send("no TLS at all, but enough of it to be refused\n");
  }
  int most = 0;
  for (int turns = 0; told < 50 && turns < 1'000; ++turns) {
    const int before = told;
    loop_->run(Run::no_wait);
    most = std::max(most, told - before);
  }
  EXPECT_EQ(told, 50);
  EXPECT_LE(most, 16) << "eight steps a turn, and what was told of the turn before";
}

// ---- STARTTLS

TEST_F(TlsPeers, StartTlsIsSupported) {
  RawPeer peer(*loop_);
  Stream plain = std::move(peer.stream());
  Recorder before;
  before.use = [&](Bytes bytes) {
    plain.write("220 go ahead\r\n");
    attempt_ = accept_tls(std::move(plain), server(), told());
    return bytes.size();
  };
  plain.start(before);
  peer.send("STARTTLS\r\n");
  run_turns(*loop_, 5);
  EXPECT_EQ(peer.receive(), "220 go ahead\r\n");
  peer.become_client();
  EXPECT_TRUE(peer.shake_hands());
  run_until_told();
  ASSERT_TRUE(result_) << result_.error().text;
  result_->start(log_);
  peer.write("EHLO");
  run_until(*loop_, [&] { return log_.received == "EHLO"; });
  EXPECT_EQ(before.received, "STARTTLS\r\n");
}

TEST_F(TlsPeers, PlaintextAfterStartTlsIsRejected) {
  RawPeer peer(*loop_);
  Stream plain = std::move(peer.stream());
  Recorder before;
  before.use = [&](Bytes bytes) {
    if (bytes.size() > 10) attempt_ = accept_tls(std::move(plain), server(), told());
    return std::size_t{10};
  };
  plain.start(before);
  peer.send("STARTTLS\r\nMAIL FROM:<evil>\r\n");
  run_until_told();
  EXPECT_EQ(result_.error().code, std::errc::device_or_resource_busy);
}

TEST_F(TlsPeers, PlaintextWithDescriptorsIsRejected) {
  class Greedy final : public StreamHandler {
   public:
    std::size_t on_data(Bytes bytes) override { return bytes.size(); }
    void on_descriptors(std::span<const int> descriptors, bool) override {
      close_descriptors(descriptors);
      when_they_come();
    }
    void on_closed(std::error_code) override {}
    std::function<void()> when_they_come;
  };
  auto [near, far] = must(Stream::socket_pair(*loop_));
  Stream plain = std::move(near);
  Greedy before;
  before.when_they_come = [&] { attempt_ = accept_tls(std::move(plain), server(), told()); };
  plain.set_receive_descriptors(true);
  plain.start(before);
  const int fd = 0;
  EXPECT_FALSE(far.send_descriptors(bytes_of("x"), {&fd, 1}));
  run_until_told();
  ASSERT_FALSE(result_) << "a byte that nobody was shown";
  EXPECT_EQ(result_.error().code, std::errc::device_or_resource_busy);
}

TEST_F(TlsPeers, StartWithQueuedPlaintextIsRejected) {
  RawPeer peer(*loop_);
  EXPECT_TRUE(peer.stream().write(pattern(4'000'000)));
  EXPECT_GT(peer.stream().queued(), 0u);
  accept(peer, server());
  run_until_told();
  EXPECT_EQ(result_.error().code, std::errc::device_or_resource_busy);
}

TEST_F(TlsPeers, StartBeforeConnectedIsRejected) {
  Stream plain;
  Recorder log;
  Listener listener = std::move(
      *Listener::create(*loop_, Address::loopback_ipv4(0), [](Stream, const Address&) {}));
  ASSERT_FALSE(plain.connect(*loop_, listener.address(), log));
  attempt_ = accept_tls(std::move(plain), server(), told());
  run_until_told();
  EXPECT_EQ(result_.error().code, std::errc::device_or_resource_busy);
}

TEST_F(TlsPeers, EmptyStreamIsNotPending) {
  attempt_ = accept_tls(Stream(), server(), told());
  EXPECT_FALSE(attempt_.is_pending());
}

// ---- endings

TEST_F(TlsPeers, EofWithoutCloseNotifyIsTruncation) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  peer.write("half a message");
  run_until(*loop_, [&] { return log_.received == "half a message"; });
  peer.receive();  // Unread tickets would cause a reset.
  peer.close();
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_EQ(log_.error, Error::tls_truncated);
  EXPECT_EQ(log_.log, "closed ");
}

TEST_F(TlsPeers, CloseNotifyIsReportedAsEndOfFile) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  peer.write("all of it");
  SSL_shutdown(peer.ssl());
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_EQ(log_.received, "all of it");
  EXPECT_EQ(log_.log, "end closed ");
  EXPECT_FALSE(log_.error);
  EXPECT_EQ(peer.until_done([&] { return SSL_shutdown(peer.ssl()); }), 1) << "answered";
}

TEST_F(TlsPeers, EndSendsCloseNotify) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  EXPECT_TRUE(stream_.write("bye"));
  stream_.end();
  EXPECT_EQ(peer.read(), "bye");
  EXPECT_EQ(peer.read(), "");
  EXPECT_EQ(SSL_get_shutdown(peer.ssl()), SSL_RECEIVED_SHUTDOWN);
  peer.write("not yet");
  run_until(*loop_, [&] { return log_.received == "not yet"; });
  SSL_shutdown(peer.ssl());
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_FALSE(log_.error);
}

TEST_F(TlsPeers, EofWithoutCloseNotifyIsAcceptedAfterClose) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  EXPECT_TRUE(stream_.write("bye"));
  stream_.close();
  EXPECT_EQ(peer.read(), "bye");
  run_turns(*loop_, 3);
  peer.receive();
  peer.close();
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_FALSE(log_.error) << log_.error.message();
}

TEST_F(TlsPeers, AbortSendsNoCloseNotify) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  stream_.abort();
  EXPECT_EQ(peer.read(), "");
  EXPECT_EQ(SSL_get_shutdown(peer.ssl()) & SSL_RECEIVED_SHUTDOWN, 0);
}

TEST_F(TlsPeers, CloseNotifyFollowsQueuedData) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  {
    const FullKernel full;
    stream_.end();
    run_turns(*loop_, 3);
    EXPECT_FALSE(stream_.is_writable());
  }
  EXPECT_EQ(peer.read(), "");
  EXPECT_EQ(SSL_get_shutdown(peer.ssl()), SSL_RECEIVED_SHUTDOWN);
}

// A read also sends the queued bytes. The EOF of the socket, which follows them, must not be lost.
TEST_F(TlsPeers, EndReachesPeerThoughReadingSentCloseNotify) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  FaultPlan plan;
  // Two in close(), two when the socket is writable. The next is made by a read.
  plan.fail_nth(SystemCall::send, 1, EAGAIN, 4);
  {
    const FaultScope scope(plan);
    peer.write("x");
    stream_.close();
    run_turns(*loop_, 1);
    ASSERT_EQ(plan.failures(SystemCall::send), 4u);
    run_turns(*loop_, 10);
  }
  EXPECT_TRUE(peer.has_end()) << "only the notice was sent";
}

// ---- messages other than data

TEST_F(TlsPeers, RenegotiationIsRefused) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer, TLS1_2_VERSION));
  SSL_renegotiate(peer.ssl());
  EXPECT_NE(peer.until_done([&] { return SSL_do_handshake(peer.ssl()); }), 1);
  EXPECT_LE(log_.closed_calls, 1);
}

TEST_F(TlsPeers, KeyUpdateIsSupported) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    peer.write("x");
    EXPECT_TRUE(stream_.write("y"));
    EXPECT_EQ(peer.read(), "y");
  }
  run_until(*loop_, [&] { return log_.received.size() == 10; });
}

TEST_F(TlsPeers, KeyUpdatesWithoutReadingUseBoundedMemory) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  const FullKernel full;
  for (int i = 0; i < 20'000; ++i) {
    SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    if (SSL_do_handshake(peer.ssl()) != 1 || SSL_write(peer.ssl(), "x", 1) != 1) break;
    if (i % 16 == 0) run_turns(*loop_, 2);
  }
  const std::size_t received = log_.received.size();
  run_turns(*loop_, 50);
  EXPECT_LT(log_.received.size() - received, 20'000u);
  EXPECT_LT(log_.received.size(), 10'000u) << "reading stops while answers wait";
}

TEST_F(TlsPeers, ModifiedRecordIsRefused) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  peer.send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_EQ(log_.error, Error::tls_protocol);
  EXPECT_EQ(log_.received, "");
}

TEST_F(TlsPeers, TooLongRecordIsRefused) {
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  peer.send(std::string("\x17\x03\x03\xff\xff", 5) + std::string(1'000, 'x'));
  run_until(*loop_, [&] { return log_.closed_calls == 1; });
  EXPECT_EQ(log_.error, Error::tls_protocol);
}

// ---- idle ones

TEST_F(TlsPeers, IdleConnectionIsServedAgain) {
  ScriptedClock clock;
  loop_ = std::move(*Loop::create({.clock = &clock}));
  RawPeer peer(*loop_);
  ASSERT_NO_FATAL_FAILURE(establish(peer));
  for (int i = 0; i < 5; ++i) {
    clock.advance(1500ms);
    run_turns(*loop_, 5);
    if (i % 2 == 1) continue;
    peer.write("x");
    run_turns(*loop_, 5);
    EXPECT_TRUE(stream_.write("y"));
    EXPECT_EQ(peer.read(), "y");
  }
  EXPECT_EQ(log_.received, "xxx");
}

TEST_F(TlsPeers, IdleConnectionDoesNotKeepLoopAlive) {
  Handshake shaken = shake(client(), server());
  ASSERT_TRUE(shaken.client && shaken.server);
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(runs_out(*loop_));
}

// ---- refusals

TEST_F(TlsPeers, SocketIsNotReleased) {
  Handshake shaken = shake(client(), server());
  ASSERT_TRUE(shaken.client && shaken.server);
  EXPECT_EQ(shaken.client->release().error(), std::errc::operation_not_supported);
  const int fd = 0;
  EXPECT_EQ(shaken.client->send_descriptors(bytes_of("x"), {&fd, 1}),
            std::errc::operation_not_supported);
  EXPECT_TRUE(shaken.client->is_open());
}

// ---- listeners

TEST_F(TlsPeers, ListenerAcceptsPeersAfterHandshake) {
  Recorder at_server;
  Stream accepted;
  std::vector<std::string> failures;
  Listener listener = std::move(*Listener::create(
      *loop_, Address::loopback_ipv4(0),
      with_tls(
          server(),
          [&](Stream stream, const Address& peer) {
            EXPECT_TRUE(peer.is_ip());
            accepted = std::move(stream);
            accepted.start(at_server);
          },
          [&](const TlsFailure& failure, const Address&) { failures.push_back(failure.text); })));
  const std::uint16_t port = listener.address().port();
  TlsResult<Stream> connected = std::unexpected(TlsFailure{});
  const Connecting good = connect(*loop_, "127.0.0.1", port, client(),
                                  [&](TlsResult<Stream> stream) { connected = std::move(stream); });
  run_until(*loop_, [&] { return connected.has_value() && accepted.is_open(); });
  EXPECT_EQ(listener.connections(), 1u);
  Recorder at_client;
  connected->start(at_client);
  EXPECT_TRUE(connected->write("hello"));
  run_until(*loop_, [&] { return at_server.received == "hello"; });

  Stream plain;
  Recorder at_plain;
  ASSERT_FALSE(plain.connect(*loop_, listener.address(), at_plain));
  EXPECT_TRUE(plain.write("GET / HTTP/1.0\r\n\r\n"));
  run_until(*loop_, [&] { return failures.size() == 1; });
  EXPECT_EQ(failures.front(), "the peer speaks HTTP, not TLS");
  plain.abort();
  connected->close();
  run_until(*loop_, [&] { return listener.connections() == 0; });
}

TEST_F(TlsPeers, HandshakeOfDestroyedListenerIsDropped) {
  bool is_called = false;
  Listener listener = std::move(
      *Listener::create(*loop_, Address::loopback_ipv4(0),
                        with_tls(server(), [&](Stream, const Address&) { is_called = true; })));
  const std::uint16_t port = listener.address().port();
  TlsResult<Stream> connected = std::unexpected(TlsFailure{});
  bool is_told = false;
  const Connecting attempt =
      connect(*loop_, "127.0.0.1", port, client(), [&](TlsResult<Stream> stream) {
        connected = std::move(stream);
        is_told = true;
      });
  run_until(*loop_, [&] { return listener.accepted() == 1; });
  listener = Listener();
  run_until(*loop_, [&] { return is_told; });
  run_turns(*loop_, 10);
  EXPECT_FALSE(is_called);
}

TEST_F(TlsPeers, ConnectErrorsAreDistinguished) {
  const Connecting attempt = connect(*loop_, "127.0.0.1", kClosedPort, client(), told());
  run_until_told();
  EXPECT_EQ(result_.error().code, std::errc::connection_refused);
}

TEST_F(TlsPeers, QueuedHandshakesEndWithLoop) {
  std::vector<std::pair<Stream, Stream>> pairs;
  std::vector<Connecting> attempts;
  const TlsContext context = server();
  for (int i = 0; i < 30; ++i) {
    pairs.push_back(must(Stream::memory_pair(*loop_)));
    attempts.push_back(accept_tls(std::move(pairs.back().first), context, told()));
    EXPECT_TRUE(pairs.back().second.write("\x16\x03\x01"));
  }
  loop_->run(Run::no_wait);
  loop_.reset();
  attempts.clear();
  EXPECT_FALSE(is_told_);
}

TEST_F(TlsPeers, HandshakesOfDestroyedLoopAreDropped) {
  RawPeer peer(*loop_);
  accept_tls_unattended(std::move(peer.stream()), server(), told());
  RawPeer other(*loop_);
  accept(other, server());
  run_turns(*loop_, 2);
  loop_.reset();
  EXPECT_FALSE(is_told_);
  attempt_.cancel();
}

}  // namespace
}  // namespace spate::testing
