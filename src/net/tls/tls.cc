// The functions of tls.h, except those that make a context, which are in src/tls.
#include "spate/net/tls.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/loop_function.h"
#include "core/user_code.h"
#include "net/connect/connect_attempt.h"
#include "net/connect/connecting_end.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "net/tls/tls_attempt.h"
#include "net/tls/tls_engine.h"

namespace spate {

namespace {

using Keeper = TlsAttempt::Keeper;
using Side = TlsProvider::Side;

Nanos timeout_of(const TlsContext& context) {
  return context ? context.provider()->handshake_timeout() : Nanos{0};
}

// Connects, then performs the handshake, with one timeout for both.
class SecureConnect final : public ConnectAttempt {
 public:
  SecureConnect(Loop& loop, std::string_view host, const TlsContext& context, OnSecured callback,
                Nanos timeout)
      : loop_(loop),
        host_(host),
        context_(context),
        callback_(loop, std::move(callback)),
        deadline_(timeout == Nanos{0} ? kForever : deadline_after(loop.now(), timeout)) {}

  void begin(std::uint16_t port, const ConnectOptions& options) {
    step_ = connect(
        loop_, host_, port, [this](Result<Stream> stream) { on_connected(std::move(stream)); },
        options);
  }
  bool is_pending() const override { return static_cast<bool>(callback_); }

 private:
  void on_connected(Result<Stream> stream) {
    if (!stream) return settle(std::unexpected(failure_of(stream.error())));
    step_ =
        start_tls_within(std::max(deadline_ - loop_.now(), Nanos{1}), std::move(*stream), context_,
                         host_, [this](TlsResult<Stream> secured) { settle(std::move(secured)); });
    if (!step_.is_pending()) settle(std::unexpected(failure_of(-ENOMEM)));
  }
  // Must be the last action: the callback may destroy this.
  void settle(TlsResult<Stream> result) {
    call_user("connect()", [&] { callback_.call_last(std::move(result)); });
  }

  Loop& loop_;
  const std::string host_;
  const TlsContext context_;
  LoopFunction<void(TlsResult<Stream>)> callback_;
  const Nanos deadline_;
  Connecting step_;
};

}  // namespace

TlsResult<void> TlsContext::reload(const TlsServerOptions& options) const {
  if (!provider_) return std::unexpected(failure_of(-EINVAL));
  return provider_->reload(options);
}

TlsResult<void> TlsContext::reload(const TlsClientOptions& options) const {
  if (!provider_) return std::unexpected(failure_of(-EINVAL));
  return provider_->reload(options);
}

void TlsContext::rotate_tickets() const {
  if (provider_) provider_->rotate_tickets();
}

bool TlsContext::set_ticket_keys(std::span<const TlsTicketKey> keys) const {
  return provider_ && provider_->set_ticket_keys(keys);
}

bool TlsContext::is_server() const {
  return provider_ != nullptr && provider_->side() == Side::server;
}

bool TlsContext::is_client() const {
  return provider_ != nullptr && provider_->side() == Side::client;
}

bool TlsContext::offers(std::string_view protocol) const {
  return provider_ != nullptr && provider_->offers(protocol);
}

Connecting accept_tls(Stream plain, const TlsContext& context, OnSecured callback) {
  const TlsAttempt::Plan plan{context, Side::server, {}, timeout_of(context)};
  return Connecting(TlsAttempt::begin(std::move(plain), plan, Keeper::handle, std::move(callback)));
}

Connecting accept_tls_by(const TlsContext& context, Stream plain, OnSecured callback) {
  return context.provider()->accept(std::move(plain), context, std::move(callback));
}

Connecting start_tls(Stream plain, const TlsContext& context, std::string_view host,
                     OnSecured callback) {
  return start_tls_within(kForever, std::move(plain), context, host, std::move(callback));
}

Connecting start_tls_within(Nanos most, Stream plain, const TlsContext& context,
                            std::string_view host, OnSecured callback) {
  const TlsAttempt::Plan plan{context, Side::client, host, std::min(timeout_of(context), most)};
  return Connecting(TlsAttempt::begin(std::move(plain), plan, Keeper::handle, std::move(callback)));
}

void accept_tls_unattended(Stream plain, const TlsContext& context, OnSecured callback) {
  const TlsAttempt::Plan plan{context, Side::server, {}, timeout_of(context)};
  TlsAttempt::begin(std::move(plain), plan, Keeper::nobody, std::move(callback));
}

Connecting connect(Loop& loop, std::string_view host, std::uint16_t port, const TlsContext& context,
                   OnSecured callback, const ConnectOptions& options) {
  auto attempt =
      std::make_unique<SecureConnect>(loop, host, context, std::move(callback), options.timeout);
  attempt->begin(port, options);
  return Connecting(attempt.release());
}

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                const TlsContext& context, StreamHandler& handler,
                                const ConnectOptions& options) {
  ConnectingEnd* end = ConnectingEnd::begin(*this, loop, handler);
  if (end == nullptr) return error_of(-ENOMEM);
  const auto tell = [end](TlsResult<Stream> made) {
    end->on_result(plain_result(std::move(made)));
  };
  end->keep(spate::connect(loop, host, port, context, tell, options));
  return {};
}

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                const TlsContext& context, StreamHandler& handler) {
  return connect(loop, host, port, context, handler, ConnectOptions{});
}

std::optional<TlsInfo> tls_info(const Stream& stream) {
  Connection* connection = Connection::of(stream);
  const TlsEngine* engine = connection == nullptr ? nullptr : connection->transport().tls();
  if (engine == nullptr) return std::nullopt;
  return engine->info();
}

}  // namespace spate
