#include "net/tls/tls_attempt.h"

#include <cerrno>
#include <new>
#include <utility>

#include "core/user_code.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "net/tls/loop_tls.h"
#include "net/tls/tls_transport.h"
#include "spate/named_callback.h"

namespace spate {

TlsFailure failure_of(std::error_code error) { return {error, error.message()}; }
TlsFailure failure_of(long result) { return failure_of(error_of(result)); }

Result<Stream> plain_result(TlsResult<Stream> result) {
  if (!result) return std::unexpected(result.error().code);
  return std::move(*result);
}

TlsAttempt* TlsAttempt::begin(Stream plain, const Plan& plan, Keeper keeper, OnSecured callback) {
  Connection* connection = Connection::of(plain);
  if (connection == nullptr || !connection->loop_state().is_alive()) return nullptr;
  LoopTls* loop_state = LoopTls::of(connection->loop_state().loop());
  if (loop_state == nullptr) return nullptr;
  auto* attempt = new (std::nothrow)
      TlsAttempt(*loop_state, std::move(plain), plan, keeper, std::move(callback));
  if (attempt != nullptr) attempt->start(plan);
  return attempt;
}

TlsAttempt::TlsAttempt(LoopTls& loop_state, Stream plain, const Plan& plan, Keeper keeper,
                       OnSecured callback)
    : loop_state_(loop_state),
      stream_(std::move(plain)),
      context_(plan.context),
      host_(plan.host),
      callback_(loop_state.loop(), std::move(callback)),
      keeper_(keeper),
      due_(loop_state.loop(),
           named<Timer, ActiveKind::tls_handshake>(bind<&TlsAttempt::on_due>(this))) {
  loop_state_.enter();
  if (keeper_ == Keeper::nobody) loop_state_.adopt(*this);
}

TlsAttempt::~TlsAttempt() {
  leave_transport();
  if (keeper_ == Keeper::nobody) loop_state_.disown(*this);
  stream_.abort();
  loop_state_.leave();
}

Connection& TlsAttempt::connection() const { return *Connection::of(stream_); }

// Begins in a later turn if the Stream's own callback is running: the bytes it leaves unread are
// not known before it returns.
void TlsAttempt::start(const Plan& plan) {
  connection().forget_handler();
  if (!context_ || context_.provider()->side() != plan.side) return on_failed(failure_of(-EINVAL));
  if (!stream_.is_open()) return on_lost();
  if (!due_.start(plan.timeout)) return on_failed(failure_of(-ENOMEM));
  if (plan.side == TlsProvider::Side::client || connection().is_calling())
    return loop_state_.ask_later(*this);
  put_over();
}

void TlsAttempt::on_queued(bool is_queued) {
  if (transport_ != nullptr) transport_->set_queued(connection(), is_queued);
}

void TlsAttempt::step() {
  if (stage_ == Stage::waiting) {
    if (connection().is_calling()) return loop_state_.ask_later(*this);
    put_over();
  }
  if (stage_ == Stage::shaking && transport_ != nullptr) transport_->step(connection());
}

// Fails if input is unread or output unsent: it would be taken for a part of the protected data.
void TlsAttempt::put_over() {
  if (!stream_.is_open()) return on_lost();
  connection().send_waiting();
  const bool is_busy = stream_.queued() != 0 || !stream_.unread().empty();
  if (is_busy || !stream_.is_writable() || stream_.is_connecting())
    return on_failed({error_of(-EBUSY), "unread or queued plaintext is left"});
  TlsFailure why = failure_of(-ENOMEM);
  std::unique_ptr<TlsEngine> engine = loop_state_.make_engine(context_, host_, why);
  if (engine == nullptr) return on_failed(std::move(why));
  transport_ = TlsTransport::put_over(connection(), loop_state_, std::move(engine), *this);
  if (transport_ == nullptr) return on_failed(failure_of(-ENOMEM));
  stage_ = Stage::shaking;
  if (!transport_->want(connection(), Events::none)) on_failed(failure_of(-ENOMEM));
}

// ---- the result

void TlsAttempt::on_failed(TlsFailure why) {
  if (!failure_) failure_ = std::move(why);
  settle_later();
}

void TlsAttempt::on_lost() {
  transport_ = nullptr;
  loop_state_.dequeue(*this);
  if (stage_ != Stage::told) stage_ = Stage::lost;
  if (loop_state_.is_alive()) due_.stop(), due_.feed();
}

void TlsAttempt::settle_later() {
  if (stage_ == Stage::lost) return;
  leave_transport();
  stage_ = Stage::told;
  due_.stop();
  due_.feed();
}

void TlsAttempt::leave_transport() {
  loop_state_.dequeue(*this);
  if (transport_ != nullptr) std::exchange(transport_, nullptr)->forget_attempt();
}

// A stage's timer has expired. If the connection was lost, the Stream is started only to learn the
// reason, which only a handler receives.
void TlsAttempt::on_due() {
  if (stage_ == Stage::told) return settle();
  if (stage_ == Stage::lost) return stream_.start(*this);
  failure_ = {Error::deadline, "the TLS handshake was not done in time"};
  leave_transport();
  stream_.abort();
  settle();
}

void TlsAttempt::on_closed(std::error_code error) {
  if (!failure_) failure_ = failure_of(error);
  settle();
}

// Must be the last action: the callback may destroy this. A failed Stream sends its alert before it
// is closed.
void TlsAttempt::settle() {
  stage_ = Stage::told;
  OnSecured callback = callback_.take();
  Stream stream = std::move(stream_);
  TlsResult<Stream> result = std::move(stream);
  if (failure_) result = std::unexpected(std::move(*failure_));
  if (keeper_ == Keeper::nobody) delete this;
  if (callback) call_user("TLS", [&] { callback(std::move(result)); });
}

}  // namespace spate
