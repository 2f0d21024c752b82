// The functions that make a TlsContext. Programs that call them need OpenSSL.
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "net/tls/tls_engine.h"
#include "spate/net/tls.h"
#include "tls/description.h"
#include "tls/loop_context.h"
#include "tls/openssl.h"

namespace spate {

namespace {

class SharedLoopContext final : public TlsLoopContext {
 public:
  explicit SharedLoopContext(std::shared_ptr<LoopContext> context) : context_(std::move(context)) {}
  std::unique_ptr<TlsEngine> make_engine(std::string_view host, TlsFailure& why) override {
    return context_->make_engine(host, why);
  }

 private:
  std::shared_ptr<LoopContext> context_;
};

class Provider final : public TlsProvider {
 public:
  explicit Provider(std::shared_ptr<const Description> description)
      : side_(description->side),
        peer_check_(description->peer_check),
        description_(std::move(description)) {}

  Side side() const override { return side_; }
  Nanos handshake_timeout() const override { return description()->handshake_timeout; }
  bool offers(std::string_view protocol) const override {
    return names(description()->alpn, protocol);
  }
  std::uint64_t generation() const override { return generation_.load(); }

  std::unique_ptr<TlsLoopContext> open_for_loop(TlsFailure& why) override {
    auto context = LoopContext::make(description(), why);
    if (context == nullptr) return nullptr;
    return std::make_unique<SharedLoopContext>(std::move(context));
  }

  Connecting accept(Stream plain, const TlsContext& context, OnSecured callback) override {
    return accept_tls(std::move(plain), context, std::move(callback));
  }

  TlsResult<void> reload(const TlsServerOptions& options) override {
    if (side_ != Side::server) return wrong_side();
    return replace(describe(options, description()->ticket_keys));
  }
  TlsResult<void> reload(const TlsClientOptions& options) override {
    if (side_ != Side::client) return wrong_side();
    return replace(describe(options, peer_check_));
  }

  void rotate_tickets() override {
    if (const auto keys = description()->ticket_keys) keys->rotate();
  }
  bool set_ticket_keys(std::span<const TlsTicketKey> keys) override {
    const auto ours = description()->ticket_keys;
    return ours != nullptr && ours->set(keys);
  }

 private:
  static TlsResult<void> wrong_side() {
    return std::unexpected(
        TlsFailure{{EINVAL, std::system_category()},
                   "a server context cannot become a client context, nor the reverse"});
  }

  std::shared_ptr<const Description> description() const {
    const std::scoped_lock lock(mutex_);
    return description_;
  }

  // Tests the new description before it is used, so that errors are reported here and not by the
  // loops.
  TlsResult<void> replace(DescriptionMade made) {
    if (!made) return std::unexpected(std::move(made.error()));
    TlsFailure why;
    if (LoopContext::make(*made, why) == nullptr) return std::unexpected(std::move(why));
    const std::scoped_lock lock(mutex_);
    description_ = std::move(*made);
    ++generation_;
    return {};
  }

  const Side side_;
  const PeerCheck peer_check_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Description> description_;
  std::atomic<std::uint64_t> generation_{1};
};

// While the process exits, other threads may still be running their loops, so OpenSSL must not
// clean up.
void begin_openssl() { OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr); }

TlsResult<TlsContext> context_of(DescriptionMade made) {
  if (!made) return std::unexpected(std::move(made.error()));
  TlsFailure why;
  if (LoopContext::make(*made, why) == nullptr) return std::unexpected(std::move(why));
  return TlsContext(std::make_shared<Provider>(std::move(*made)));
}

}  // namespace

TlsResult<TlsContext> TlsContext::server(const TlsServerOptions& options) {
  begin_openssl();
  return context_of(describe(options, std::make_shared<TicketKeys>()));
}

TlsResult<TlsContext> TlsContext::client(const TlsClientOptions& options) {
  begin_openssl();
  return context_of(describe(options, PeerCheck::names_and_chain));
}

TlsResult<TlsContext> TlsContext::client_without_verification(const TlsClientOptions& options) {
  begin_openssl();
  return context_of(describe(options, PeerCheck::nothing));
}

}  // namespace spate
