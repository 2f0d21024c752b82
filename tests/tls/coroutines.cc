// Handshakes that either side awaits, and cancelled ones.
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/tls.h"
#include "spate/net/listener.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

using TlsCoroutines = TlsTest;

Task<void> greets(Stream plain, const TlsContext* context, std::error_code* error) {
  TlsResult<Stream> secured = co_await coro::accept_tls(std::move(plain), *context);
  if (!secured) {
    *error = secured.error().code;
    co_return;
  }
  coro::Stream stream(*std::move(secured));
  const Result<Bytes> name = co_await stream.read(Delimiter{});
  EXPECT_TRUE(name);
  if (name) stream.write("hello " + std::string(text_of(*name)) + "\n");
  co_await stream.finish();
}

Task<std::string> says_its_name(coro::Stream* stream) {
  stream->write("name\n");
  const Result<Bytes> answer = co_await stream->read(Delimiter{});
  co_return answer ? std::string(text_of(*answer)) : answer.error().message();
}

// As in STARTTLS: a plain line, an answer, and then the handshake.
Task<std::string> starts(Stream plain, const TlsContext* context, std::string_view host) {
  coro::Stream before(std::move(plain));
  Stream connection = before.release();
  TlsResult<Stream> secured = co_await coro::start_tls(std::move(connection), *context, host);
  if (!secured) co_return secured.error().code.message();
  coro::Stream stream(*std::move(secured));
  const std::string answer = co_await says_its_name(&stream);
  co_return answer;
}

TEST_F(TlsCoroutines, BothSidesCompleteHandshakeAndExchangeData) {
  const TlsContext its_context = server();
  const TlsContext my_context = client();
  auto pair = must(Stream::socket_pair(*loop_));
  std::error_code error;
  coro::Scope scope(*loop_);
  scope.spawn(greets(std::move(pair.second), &its_context, &error));
  EXPECT_EQ(coro::run(*loop_, starts(std::move(pair.first), &my_context, "localhost")),
            "hello name");
  EXPECT_FALSE(error);
}

TEST_F(TlsCoroutines, RejectedCertificateIsError) {
  const TlsContext its_context = server();
  const TlsContext my_context = client();
  auto pair = must(Stream::socket_pair(*loop_));
  std::error_code error;
  coro::Scope scope(*loop_);
  scope.spawn(greets(std::move(pair.second), &its_context, &error));
  EXPECT_EQ(coro::run(*loop_, starts(std::move(pair.first), &my_context, "another.example")),
            make_error_code(Error::tls_certificate).message());
}

Task<std::string> connects(std::uint16_t port, const TlsContext* context) {
  TlsResult<Stream> secured = co_await coro::connect("localhost", port, *context);
  if (!secured) co_return secured.error().code.message();
  coro::Stream stream(*std::move(secured));
  const std::string answer = co_await says_its_name(&stream);
  co_return answer;
}

TEST_F(TlsCoroutines, ConnectionIsSecured) {
  const TlsContext its_context = server();
  const TlsContext my_context = client();
  std::error_code error;
  coro::Scope scope(*loop_);
  Listener listener =
      must(Listener::create(*loop_, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        scope.spawn(greets(std::move(stream), &its_context, &error));
      }));
  EXPECT_EQ(coro::run(*loop_, connects(listener.address().port(), &my_context)), "hello name");
}

TEST_F(TlsCoroutines, CancelledHandshakeResetsConnection) {
  const TlsContext its_context = server();
  auto pair = must(Stream::socket_pair(*loop_));
  std::error_code error;
  coro::Scope scope(*loop_);
  scope.spawn(greets(std::move(pair.second), &its_context, &error));
  loop_->run(Run::no_wait);
  scope.cancel();
  EXPECT_FALSE(error);
  bool is_closed = false;
  pair.first.start({.on_closed = [&](std::error_code) { is_closed = true; }});
  for (int i = 0; i < 10 && !is_closed; ++i) loop_->run(Run::no_wait);
  EXPECT_TRUE(is_closed);
}

TEST_F(TlsCoroutines, HandshakeThatCannotBeginIsError) {
  const TlsContext its_context = server();
  std::error_code error;
  coro::Scope scope(*loop_);
  scope.spawn(greets(Stream(), &its_context, &error));
  for (int i = 0; i < 5; ++i) loop_->run(Run::no_wait);
  EXPECT_EQ(error, std::errc::not_enough_memory);
}

}  // namespace
}  // namespace spate::testing
