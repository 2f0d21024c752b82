// serve(), Client and Stream::connect() over TLS.
#include <atomic>
#include <thread>
#include <vector>

#include "spate/net/client.h"
#include "spate/net/server.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// The callbacks of a test's sessions.
struct Guestbook {
  std::atomic<int> opened{0};
  std::atomic<int> drained{0};
  std::atomic<int> resumed{0};
  std::vector<std::error_code> ends{};  // On a loop only.
};

class Guest : public Session {
 public:
  explicit Guest(Guestbook& book) : book_(book) {}
  void on_open() override {
    ++book_.opened;
    book_.resumed += tls_info(stream())->is_resumed;
  }
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
  void on_drain() override {
    ++book_.drained;
    Session::on_drain();
  }

 private:
  Guestbook& book_;
};

class TlsServe : public TlsTest {
 protected:
  Server<Guest> serve_here(TlsContext tls) {
    return must(serve<Guest>(*loop_, Address::loopback_ipv4(0),
                             {.tls = std::move(tls),
                              .on_tls_failure =
                                  [this](const TlsFailure& failure, const Address& peer) {
                                    EXPECT_TRUE(peer.is_ip());
                                    failures_.push_back(failure.text);
                                  }},
                             std::ref(book_)));
  }
  // Checks that bytes are echoed over TLS.
  void expect_echo(std::uint16_t port) {
    Recorder log;
    Stream stream;
    ASSERT_FALSE(stream.connect(*loop_, "127.0.0.1", port, client(), log));
    EXPECT_TRUE(stream.write("hello"));
    run_until(*loop_, [&] { return log.received == "hello" || log.closed_calls > 0; });
    EXPECT_FALSE(log.error) << log.error.message();
    stream.end();
    run_until(*loop_, [&] { return log.closed_calls == 1; });
    EXPECT_FALSE(log.error) << log.error.message();
  }
  // Connects, and sends nothing.
  Stream silent(std::uint16_t port, Recorder& log) {
    Stream stream;
    EXPECT_FALSE(stream.connect(*loop_, Address::loopback_ipv4(port), log));
    return stream;
  }

  Guestbook book_;
  std::vector<std::string> failures_;
};

TEST_F(TlsServe, OpensSessionAfterHandshake) {
  const Server<Guest> server = serve_here(this->server());
  expect_echo(server.address().port());
  EXPECT_EQ(book_.opened, 1);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(TlsServe, ReportsFailedHandshakes) {
  Server<Guest> server = serve_here(this->server());
  Recorder log;
  Stream plain = silent(server.address().port(), log);
  EXPECT_TRUE(plain.write("GET / HTTP/1.0\r\n\r\n"));
  run_until(*loop_, [&] { return log.closed_calls == 1; });
  EXPECT_EQ(failures_, std::vector<std::string>{"the peer speaks HTTP, not TLS"});
  EXPECT_EQ(book_.opened, 0);
  EXPECT_TRUE(server.sessions().empty());
}

// How a handshake fails, while another one is in progress.
enum class Fails : std::uint8_t { speaks_http, sends_garbage, ends, resets, says_nothing, drained };

void PrintTo(Fails how, std::ostream* out) {
  constexpr const char* kNames[] = {"speaks_http", "sends_garbage", "ends",
                                    "resets",      "says_nothing",  "drained"};
  *out << kNames[static_cast<std::size_t>(how)];
}

class TlsFailureDestroysServer : public TlsServe, public ::testing::WithParamInterface<Fails> {
 protected:
  void fail(Server<Guest>& server, Stream& client) {
    switch (GetParam()) {
      case Fails::speaks_http:
        client.write("GET / HTTP/1.0\r\n\r\n");
        return;
      case Fails::sends_garbage:
        client.write(std::string(100, '\1'));
        return;
      case Fails::ends:
        return client.end();
      case Fails::resets:
        return client.abort();
      case Fails::says_nothing:
        return clock_.advance(11s);
      case Fails::drained:
        server.drain(2s, [this] { ++drained_; });
        return clock_.advance(3s);
    }
  }

  ScriptedClock clock_;
  int drained_ = 0;
};

TEST_P(TlsFailureDestroysServer, NoFurtherCallFollows) {
  loop_ = must(Loop::create({.clock = &clock_}));
  Server<Guest> server;
  std::string told;
  int failures = 0;
  // Long enough to lie on the heap: a function that is destroyed while it runs is found.
  auto note = [&, text = std::string(100, 't')](const TlsFailure& failure, const Address& peer) {
    server = Server<Guest>();
    told = text + failure.text + peer.to_string();
    ++failures;
  };
  server = must(serve<Guest>(*loop_, Address::loopback_ipv4(0),
                             {.tls = this->server(), .on_tls_failure = std::move(note)},
                             std::ref(book_)));
  Recorder one, other;
  Stream failing = silent(server.address().port(), one);
  Stream waiting = silent(server.address().port(), other);
  run_until(*loop_, [&] { return server.listener().accepted() == 2; });
  run_turns(*loop_, 10);
  fail(server, failing);
  run_until(*loop_, [&] { return other.closed_calls == 1; });
  const bool is_reported = GetParam() != Fails::drained;
  EXPECT_EQ(failures, is_reported ? 1 : 0);
  if (is_reported) EXPECT_EQ(told.substr(0, 100), std::string(100, 't'));
  EXPECT_EQ(drained_, is_reported ? 0 : 1);
  EXPECT_EQ(book_.opened, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryFailure, TlsFailureDestroysServer,
                         ::testing::Values(Fails::speaks_http, Fails::sends_garbage, Fails::ends,
                                           Fails::resets, Fails::says_nothing, Fails::drained),
                         ::testing::PrintToStringParamName());

TEST_F(TlsServe, RejectsClientContext) {
  const auto refused = [&](const TlsContext& tls) {
    return serve<Guest>(*loop_, Address::loopback_ipv4(0), {.tls = tls}, std::ref(book_)).error();
  };
  EXPECT_EQ(refused(client()), std::errc::invalid_argument);
  const auto workers = must(Workers::create({.threads = 1}));
  EXPECT_EQ(
      serve<Guest>(*workers, Address::loopback_ipv4(0), {.tls = client()}, std::ref(book_)).error(),
      std::errc::invalid_argument);
}

TEST_F(TlsServe, DestructionDropsPendingHandshakes) {
  Server<Guest> server = serve_here(this->server());
  Recorder log;
  const Stream plain = silent(server.address().port(), log);
  run_until(*loop_, [&] { return server.listener().accepted() == 1; });
  server = Server<Guest>();
  run_until(*loop_, [&] { return log.closed_calls == 1; });
  EXPECT_TRUE(failures_.empty());
}

TEST_F(TlsServe, DrainAbortsUnfinishedHandshakes) {
  ScriptedClock clock;
  loop_ = must(Loop::create({.clock = &clock}));
  Server<Guest> server = serve_here(this->server());
  Recorder log;
  const Stream plain = silent(server.address().port(), log);
  run_until(*loop_, [&] { return server.listener().accepted() == 1; });
  bool is_done = false;
  server.drain(2s, [&] { is_done = true; });
  run_turns(*loop_, 10);
  EXPECT_FALSE(is_done) << "it may still become a session";
  clock.advance(2s - 1ns);
  run_turns(*loop_, 10);
  EXPECT_FALSE(is_done);
  clock.advance(1ns);
  run_until(*loop_, [&] { return is_done && log.closed_calls == 1; });
  EXPECT_EQ(log.error, std::errc::connection_reset);
}

TEST_F(TlsServe, DrainsConnectionsInHandshake) {
  Server<Guest> server = serve_here(this->server());
  TlsResult<Stream> secured = std::unexpected(TlsFailure{});
  const Connecting attempt =
      connect(*loop_, "127.0.0.1", server.address().port(), client(),
              [&](TlsResult<Stream> stream) { secured = std::move(stream); });
  run_until(*loop_, [&] { return server.listener().accepted() == 1; });
  bool is_done = false;
  server.drain(10s, [&] { is_done = true; });
  run_until(*loop_, [&] { return secured.has_value(); });
  Recorder log;
  secured->start(log);
  run_until(*loop_, [&] { return is_done && log.closed_calls == 1; });
  EXPECT_EQ(book_.opened, 1);
  EXPECT_EQ(book_.drained, 1);
  EXPECT_EQ(log.log, "end closed ");
}

TEST_F(TlsServe, IsDestroyedAfterItsLoop) {
  Server<Guest> server = serve_here(this->server());
  Recorder log;
  Stream plain = silent(server.address().port(), log);
  run_until(*loop_, [&] { return server.listener().accepted() == 1; });
  loop_.reset();
  server = Server<Guest>();
  EXPECT_EQ(book_.opened, 0);
}

TEST_F(TlsServe, ServesOnWorkersWhileCertificatesChange) {
  const TlsContext tls = server();
  const Certificate other({.subject = "other", .names = {"IP:127.0.0.1"}}, &test_root());
  const auto workers = must(Workers::create({.threads = 2}));
  const Address address =
      must(serve<Guest>(*workers, Address::loopback_ipv4(0),
                        {.balance = Balance::round_robin, .tls = tls}, std::ref(book_)))
          .address();
  for (int i = 0; i < 6; ++i) {
    expect_echo(address.port());
    const Certificate& next = i % 2 == 0 ? other : test_server();
    EXPECT_TRUE(tls.reload(TlsServerOptions{.identities = {next.identity()}}));
  }
  EXPECT_EQ(book_.opened, 6);
  EXPECT_TRUE(workers->stop(10s));
}

TEST_F(TlsServe, StopsWorkersDespiteUnfinishedHandshakes) {
  const auto workers = must(Workers::create({.threads = 1}));
  const auto serving =
      must(serve<Guest>(*workers, Address::loopback_ipv4(0), {.tls = server()}, std::ref(book_)));
  Recorder log;
  const Stream plain = silent(serving.address().port(), log);
  while (serving.connections() == 0) {  // Polls, since the other thread does not wake this loop.
    loop_->run(Run::no_wait);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(workers->stop(1ms));
  EXPECT_EQ(serving.connections(), 0u);
  EXPECT_EQ(book_.opened, 0);
}

// ---- Stream::connect()

class TlsStreamConnect : public TlsServe {
 protected:
  // Returns the error with which a connection to a server without TLS, or with a wrong certificate,
  // is closed.
  std::error_code outcome(std::string_view host, std::uint16_t port, const TlsContext& context,
                          const ConnectOptions& options = {}) {
    Recorder log;
    Stream stream;
    EXPECT_FALSE(stream.connect(*loop_, host, port, context, log, options));
    EXPECT_TRUE(stream.is_connecting());
    run_until(*loop_, [&] { return log.closed_calls == 1; });
    EXPECT_EQ(log.log, "closed ") << "and nothing else";
    return log.error;
  }
};

TEST_F(TlsStreamConnect, ReportsWhyItFailed) {
  const Server<Guest> server = serve_here(this->server());
  const std::uint16_t port = server.address().port();
  EXPECT_EQ(outcome("127.0.0.1", port, must_be(TlsContext::client())), Error::tls_certificate);
  EXPECT_EQ(outcome("127.0.0.1", port, this->server()), std::errc::invalid_argument);
  EXPECT_EQ(outcome("127.0.0.1", 1, client()), std::errc::connection_refused);
}

TEST_F(TlsStreamConnect, TimesOut) {
  Listener deaf =
      must(Listener::create(*loop_, Address::loopback_ipv4(0), [](Stream, const Address&) {}));
  deaf.pause();
  EXPECT_EQ(outcome("127.0.0.1", deaf.address().port(), client(), {.timeout = 20ms}),
            Error::deadline);
  EXPECT_EQ(outcome("127.0.0.1", deaf.address().port(), client({.handshake_timeout = 20ms})),
            Error::deadline);
}

TEST_F(TlsStreamConnect, MayBeEndedAndDestroyedBeforeConnected) {
  Server<Guest> server = serve_here(this->server());
  const std::uint16_t port = server.address().port();
  Recorder log;
  Stream stream;
  ASSERT_FALSE(stream.connect(*loop_, "127.0.0.1", port, client(), log));
  stream.end();
  run_until(*loop_, [&] { return log.closed_calls == 1; });
  EXPECT_FALSE(log.error) << log.error.message();
  EXPECT_EQ(log.log, "end closed ");
  ASSERT_FALSE(stream.connect(*loop_, "127.0.0.1", port, client(), log));
  run_turns(*loop_, 3);
  stream = Stream();
  run_turns(*loop_, 10);
  ASSERT_FALSE(stream.connect(*loop_, "127.0.0.1", port, client(), log));
  run_turns(*loop_, 3);
  loop_.reset();
  EXPECT_FALSE(stream.is_open());
  EXPECT_EQ(log.closed_calls, 1);
}

// ---- Client

class TlsClientTest : public TlsServe {
 protected:
  ClientOptions options(TlsContext tls) {
    return {.first_delay = 1ms, .max_delay = 1ms, .tls = std::move(tls)};
  }
  OnConnected told() {
    return [this](Result<Stream> result) {
      ++calls_;
      if (!result) return;
      stream_ = std::move(*result);
      stream_.start(log_);
    };
  }

  int calls_ = 0;
  Stream stream_;
  Recorder log_;
};

TEST_F(TlsClientTest, ReconnectsWhenServerDisconnects) {
  Server<Guest> server = serve_here(this->server());
  const std::uint16_t port = server.address().port();
  Client client = must(Client::create(*loop_, "127.0.0.1", port, told(), options(this->client())));
  client.connect();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    run_until(*loop_, [&] { return client.connections() == i; });
    EXPECT_EQ(client.state(), Client::State::connected);
    EXPECT_EQ(tls_info(stream_)->subject, "CN = server");
    EXPECT_EQ(client.last_failure(), "");
    server.sessions().end_all(Error::deadline);
    run_until(*loop_, [&] { return client.state() != Client::State::connected; });
  }
  EXPECT_EQ(log_.closed_calls, 3);
  client.disconnect();
}

TEST_F(TlsClientTest, CountsRejectedCertificateAsFailure) {
  const Server<Guest> server = serve_here(this->server());
  Client client = must(
      Client::create(*loop_, server.address(), told(), options(must_be(TlsContext::client()))));
  client.connect();
  run_until(*loop_, [&] { return calls_ == 3; });
  EXPECT_EQ(client.connections(), 0u);
  EXPECT_EQ(client.failures(), 3u);
  EXPECT_EQ(client.last_error(), Error::tls_certificate);
  EXPECT_EQ(client.last_failure(),
            "the issuer of the certificate is not trusted, or missing in the chain: "
            "CN = Test Root");
  EXPECT_NE(client.state(), Client::State::connected);
}

TEST_F(TlsClientTest, HandshakeTimesOut) {
  Recorder log;
  Listener listener =
      must(Listener::create(*loop_, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        stream_ = std::move(stream);
        stream_.start(log);
      }));
  ClientOptions options = this->options(client({.handshake_timeout = 1h}));
  options.connect.timeout = 20ms;
  Client client = must(Client::create(*loop_, listener.address(), told(), options));
  client.connect();
  run_until(*loop_, [&] { return stream_.is_open(); });
  EXPECT_EQ(client.state(), Client::State::connecting);
  run_until(*loop_, [&] { return calls_ == 1; });
  EXPECT_EQ(client.last_error(), Error::deadline);
}

TEST_F(TlsClientTest, MayBeStoppedDuringHandshake) {
  Recorder log;
  Listener listener =
      must(Listener::create(*loop_, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        stream_ = std::move(stream);
        stream_.start(log);
      }));
  Client client = must(Client::create(*loop_, listener.address(), told(), options(this->client())));
  client.connect();
  run_until(*loop_, [&] { return stream_.is_open(); });
  client.stop();
  EXPECT_EQ(client.state(), Client::State::idle);
  run_until(*loop_, [&] { return log.closed_calls == 1; });
  EXPECT_EQ(calls_, 0);
}

TEST_F(TlsClientTest, RequiresClientContextAndNamedPeer) {
  const auto error = [&](const Address& address, const TlsContext& tls) {
    return Client::create(*loop_, address, told(), options(tls)).error();
  };
  EXPECT_EQ(error(Address::loopback_ipv4(1), server()), std::errc::invalid_argument);
  EXPECT_EQ(error(must(Address::path("somewhere")), client()), std::errc::invalid_argument);
  EXPECT_EQ(Client::create(*loop_, "localhost", 1, told(), options(server())).error(),
            std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
