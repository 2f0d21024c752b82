// The functions of tls.h. Those that make a context are in src/tls.
#include "spate/net/tls.h"

#include <cerrno>
#include <utility>

#include "core/user_code.h"
#include "net/connect/connect_attempt.h"
#include "net/secure/tls_attempt.h"
#include "net/secure/tls_engine.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"

namespace spate {

namespace {

using Keeper = TlsAttempt::Keeper;
using Side = TlsProvider::Side;

Nanos timeout_of(const TlsContext& context) {
  return context ? context.provider()->handshake_timeout() : Nanos{0};
}

Connecting secure(Stream plain, const TlsContext& context, Side side, std::string_view host,
                  OnSecured callback) {
  const TlsAttempt::Plan plan{context, side, host, timeout_of(context)};
  return Connecting(TlsAttempt::begin(std::move(plain), plan, Keeper::handle, std::move(callback)));
}

// Connects, and then shakes hands: within one time, if there is one.
class SecureConnect final : public ConnectAttempt {
 public:
  SecureConnect(Loop& loop, std::string_view host, const TlsContext& context, OnSecured callback,
                Nanos timeout)
      : loop_(loop),
        host_(host),
        context_(context),
        callback_(std::move(callback)),
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
    const Nanos left = std::max(deadline_ - loop_.now(), Nanos{1});
    const TlsAttempt::Plan plan{context_, Side::client, host_,
                                std::min(timeout_of(context_), left)};
    TlsAttempt* attempt =
        TlsAttempt::begin(std::move(*stream), plan, Keeper::handle,
                          [this](TlsResult<Stream> secured) { settle(std::move(secured)); });
    if (attempt == nullptr) return settle(std::unexpected(failure_of(-ENOMEM)));
    step_ = Connecting(attempt);
  }
  // The last that is done: the callback may destroy us.
  void settle(TlsResult<Stream> result) {
    OnSecured callback = std::exchange(callback_, {});
    call_user("connect()", [&] { callback(std::move(result)); });
  }

  Loop& loop_;
  const std::string host_;
  const TlsContext context_;
  OnSecured callback_;
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

Connecting accept_tls(Stream plain, const TlsContext& context, OnSecured callback) {
  return secure(std::move(plain), context, Side::server, {}, std::move(callback));
}

Connecting start_tls(Stream plain, const TlsContext& context, std::string_view host,
                     OnSecured callback) {
  return secure(std::move(plain), context, Side::client, host, std::move(callback));
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

std::optional<TlsInfo> tls_info(const Stream& stream) {
  Connection* connection = Connection::of(stream);
  const TlsEngine* engine = connection == nullptr ? nullptr : connection->transport().tls();
  if (engine == nullptr) return std::nullopt;
  return engine->info();
}

}  // namespace spate
