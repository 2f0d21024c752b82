#include "net/secure/tls_attempt.h"

#include <cerrno>
#include <new>
#include <utility>

#include "core/user_code.h"
#include "net/secure/tls_hub.h"
#include "net/secure/tls_transport.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"

namespace spate {

TlsFailure failure_of(std::error_code error) { return {error, error.message()}; }
TlsFailure failure_of(long result) { return failure_of(error_of(result)); }

Result<Stream> plain_result(TlsResult<Stream> result) {
  if (!result) return std::unexpected(result.error().code);
  return std::move(*result);
}

TlsAttempt* TlsAttempt::begin(Stream plain, const Plan& plan, Keeper keeper, OnSecured callback) {
  Connection* connection = Connection::of(plain);
  if (connection == nullptr || !connection->hub().is_alive()) return nullptr;
  TlsHub* hub = TlsHub::of(connection->hub().loop());
  if (hub == nullptr) return nullptr;
  auto* attempt =
      new (std::nothrow) TlsAttempt(*hub, std::move(plain), plan, keeper, std::move(callback));
  if (attempt != nullptr) attempt->start(plan);
  return attempt;
}

TlsAttempt::TlsAttempt(TlsHub& hub, Stream plain, const Plan& plan, Keeper keeper,
                       OnSecured callback)
    : hub_(hub),
      stream_(std::move(plain)),
      context_(plan.context),
      host_(plan.host),
      callback_(std::move(callback)),
      keeper_(keeper),
      due_(hub.loop(), bind<&TlsAttempt::on_due>(this)) {
  hub_.enter();
  if (keeper_ == Keeper::nobody) hub_.adopt(*this);
}

TlsAttempt::~TlsAttempt() {
  leave_transport();
  if (keeper_ == Keeper::nobody) hub_.disown(*this);
  stream_.abort();
  hub_.leave();
}

Connection& TlsAttempt::connection() const { return *Connection::of(stream_); }

// Inside the Stream's own callback it is not known yet what that leaves unread.
void TlsAttempt::start(const Plan& plan) {
  connection().forget_handler();
  if (!context_ || context_.provider()->side() != plan.side) return on_failed(failure_of(-EINVAL));
  if (!stream_.is_open()) return on_lost();
  if (!due_.start(plan.timeout)) return on_failed(failure_of(-ENOMEM));
  if (plan.side == TlsProvider::Side::client || connection().is_calling())
    return hub_.ask_later(*this);
  put_over();
}

void TlsAttempt::set_place(std::uint32_t place) {
  const bool was_in_line = std::exchange(place_, place) != 0;
  if (transport_ != nullptr && was_in_line != (place != 0))
    transport_->set_in_line(connection(), place != 0);
}

void TlsAttempt::step() {
  if (stage_ == Stage::waiting) {
    if (connection().is_calling()) return hub_.ask_later(*this);
    put_over();
  }
  if (stage_ == Stage::shaking && transport_ != nullptr) transport_->step(connection());
}

// What is unread, or waits to be sent, would be taken for a part of what is protected.
void TlsAttempt::put_over() {
  if (!stream_.is_open()) return on_lost();
  connection().send_waiting();
  const bool is_busy = stream_.queued() != 0 || !stream_.unread().empty();
  if (is_busy || !stream_.is_writable() || stream_.is_connecting())
    return on_failed({error_of(-EBUSY), "plaintext is unread, or waits to be sent"});
  TlsFailure why = failure_of(-ENOMEM);
  std::unique_ptr<TlsEngine> engine = hub_.make_engine(context_, host_, why);
  if (engine == nullptr) return on_failed(std::move(why));
  transport_ = TlsTransport::put_over(connection(), hub_, std::move(engine), *this);
  if (transport_ == nullptr) return on_failed(failure_of(-ENOMEM));
  stage_ = Stage::shaking;
  if (!transport_->want(connection(), Events::none)) on_failed(failure_of(-ENOMEM));
}

// ---- what comes of it

void TlsAttempt::on_failed(TlsFailure why) {
  if (!failure_) failure_ = std::move(why);
  settle_later();
}

void TlsAttempt::on_lost() {
  transport_ = nullptr;
  hub_.leave_line(*this);
  if (stage_ != Stage::told) stage_ = Stage::lost;
  if (hub_.is_alive()) due_.stop(), due_.feed();
}

void TlsAttempt::settle_later() {
  if (stage_ == Stage::lost) return;
  leave_transport();
  stage_ = Stage::told;
  due_.stop();
  due_.feed();
}

void TlsAttempt::leave_transport() {
  hub_.leave_line(*this);
  if (transport_ != nullptr) std::exchange(transport_, nullptr)->forget_attempt();
}

// Only a handler is told why a connection was closed, and it need not be there before.
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

// The last that is done: the callback may destroy us. A Stream that has failed sends its alert
// before it goes.
void TlsAttempt::settle() {
  stage_ = Stage::told;
  OnSecured callback = std::exchange(callback_, {});
  Stream stream = std::move(stream_);
  TlsResult<Stream> result = std::move(stream);
  if (failure_) result = std::unexpected(std::move(*failure_));
  if (keeper_ == Keeper::nobody) delete this;
  call_user("TLS", [&] { callback(std::move(result)); });
}

}  // namespace spate
