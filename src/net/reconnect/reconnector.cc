#include "net/reconnect/reconnector.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/ownership.h"
#include "core/user_code.h"
#include "net/connect/connect_socket.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/tls/tls_attempt.h"
#include "spate/assert.h"
#include "spate/named_callback.h"
#include "sys/descriptor.h"

namespace spate {

Result<Reconnector*> Reconnector::make(Loop& loop, Target target, OnConnected callback,
                                       const ClientOptions& options) {
  SPATE_ASSERT(options.jitter >= 0 && options.jitter <= 1, "the jitter is a share, 0 ... 1");
  const auto no_memory = std::unexpected(sys::error_code(-ENOMEM));
  LoopStreams* loop_state = LoopStreams::of(loop);
  if (loop_state == nullptr) return no_memory;
  auto* reconnector =
      new (std::nothrow) Reconnector(*loop_state, std::move(target), std::move(callback), options);
  if (reconnector == nullptr) return no_memory;
  if (reconnector->transport_ != nullptr && reconnector->callback_.is_linked()) return reconnector;
  delete reconnector;
  return no_memory;
}

Reconnector::Reconnector(LoopStreams& loop_state, Target target, OnConnected callback,
                         const ClientOptions& options)
    : loop_state_(loop_state),
      target_(std::move(target)),
      callback_(loop_state.loop(), std::move(callback)),
      options_(options),
      transport_(new(std::nothrow) CountedTransport(loop_state, *this)),
      waiting_(loop_state.loop(),
               named<Timer, ActiveKind::reconnecting>(bind<&Reconnector::attempt>(this))),
      backoff_(static_cast<std::uint64_t>(loop_state.loop().now().count()) ^
               (loop_state.next_number() << 40)) {
  loop_state_.enter();
}

Reconnector::~Reconnector() {
  if (transport_ != nullptr) transport_->abandon();
  loop_state_.leave();
}

void Reconnector::abandon() {
  stop();
  std::exchange(transport_, nullptr)->abandon();
  Abandonable::abandon();
}

// ---- the functions of Client

bool Reconnector::may_be_touched() const {
  return !loop_state_.is_alive() || may_touch(loop_state_.loop());
}

void Reconnector::connect() {
  if (!loop_state_.is_alive()) return;
  wanted_ = true;
  if (connection_ != nullptr || is_connecting_) return;
  waiting_.stop();
  failures_ = 0;
  attempt();
}

void Reconnector::disconnect() {
  stop();
  if (connection_ == nullptr || is_closing_) return;
  is_closing_ = true;
  connection_->close();
}

void Reconnector::stop() {
  wanted_ = false;
  is_connecting_ = false;
  connecting_.cancel();
  waiting_.stop();
}

Client::State Reconnector::state() const {
  if (!loop_state_.is_alive()) return Client::State::idle;
  if (connection_ != nullptr) return Client::State::connected;
  if (is_connecting_) return Client::State::connecting;
  return waiting_.is_active() ? Client::State::waiting : Client::State::idle;
}

// ---- attempts

void Reconnector::attempt() {
  ++attempts_;
  is_connecting_ = true;
  const Nanos timeout = options_.connect.timeout;
  deadline_ = timeout == Nanos{0} ? kForever : deadline_after(loop_state_.loop().now(), timeout);
  OnSocket callback = [this](auto result) { on_result(std::move(result)); };
  connecting_ = target_.host.empty()
                    ? connect_socket(loop_state_.loop(), {target_.address}, std::move(callback),
                                     options_.connect)
                    : connect_socket(loop_state_.loop(), target_.host, target_.port,
                                     std::move(callback), options_.connect);
}

void Reconnector::on_result(Result<sys::Descriptor> socket) {
  TlsResult<Stream> stream = take(std::move(socket));
  if (stream && options_.tls) return shake_hands(std::move(*stream));
  settle(std::move(stream));
}

// Gives the connection our transport, which reports its end.
TlsResult<Stream> Reconnector::take(Result<sys::Descriptor> socket) {
  if (!socket) return std::unexpected(failure_of(socket.error()));
  Connection* connection = transport_->adopt(*socket);
  if (connection == nullptr) return std::unexpected(failure_of(-ENOMEM));
  return Connection::stream_of(connection);
}

void Reconnector::shake_hands(Stream plain) {
  const Nanos left = std::max(deadline_ - loop_state_.loop().now(), Nanos{1});
  connecting_ = start_tls_within(left, std::move(plain), options_.tls,
                                 target_.host.empty() ? target_.address.host() : target_.host,
                                 [this](TlsResult<Stream> secured) { settle(std::move(secured)); });
  if (!connecting_.is_pending()) settle(std::unexpected(failure_of(-ENOMEM)));
}

void Reconnector::settle(TlsResult<Stream> result) {
  is_connecting_ = false;
  last_failure_ = result ? TlsFailure{} : result.error();
  if (result) {
    ++connections_;
    connected_at_ = loop_state_.loop().now();
    connection_ = Connection::of(*result);
  } else {
    fail();
  }
  call([&] { call_user("Client", [&] { callback_(plain_result(std::move(result))); }); });
}

// Called at the end of a connection. If its handshake failed, it is not connection_ yet.
void Reconnector::on_left(Connection& connection) {
  if (&connection != connection_) return;
  connection_ = nullptr;
  if (!loop_state_.is_alive()) return;
  const bool was_asked_for = std::exchange(is_closing_, false);
  const bool was_steady = loop_state_.loop().now() - connected_at_ >= options_.steady_after;
  if (was_asked_for || was_steady) failures_ = 0;
  if (was_asked_for) {
    if (wanted_) wake_in(Nanos{0});
  } else if (was_steady) {
    wait();
  } else {
    fail();
  }
}

void Reconnector::fail() {
  ++failures_;
  if (failures_ == options_.max_failures) wanted_ = false;
  wait();
}

void Reconnector::wait() {
  if (wanted_) wake_in(delay());
}

// Without memory for the timer, retries in the next turn.
void Reconnector::wake_in(Nanos delay) {
  if (!waiting_.start(delay)) waiting_.feed();
}

Nanos Reconnector::delay() {
  return backoff_.after(failures_, options_.first_delay, options_.max_delay, options_.jitter);
}

}  // namespace spate
