// Engine: the SSL object of one connection, and the description of a failed handshake.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/tls/tls_engine.h"
#include "tls/loop_context.h"
#include "tls/openssl.h"

namespace spate {

class Engine final : public TlsEngine {
 public:
  Engine(std::shared_ptr<LoopContext> context, std::string_view host)
      : context_(std::move(context)), host_(host) {}

  // The second half of construction, which can fail. A client's engine has a host.
  bool open(TlsFailure& why);

  Progress shake_hands(TlsWire& wire, TlsFailure& why) override;
  long decrypt(TlsWire& wire, std::span<std::byte> room) override;
  long encrypt(TlsWire& wire, Bytes bytes) override;
  void say_goodbye(TlsWire& wire) override;
  bool has_decrypted() const override { return SSL_pending(ssl_.get()) > 0; }
  void rest() override { SSL_free_buffers(ssl_.get()); }
  TlsInfo info() const override;

  // ---- called by the callbacks of LoopContext

  static Engine& of(const SSL* ssl) { return *static_cast<Engine*>(SSL_get_app_data(ssl)); }
  LoopContext& context() const { return *context_; }
  const std::string& host() const { return host_; }
  // Returns until when a client may resume this session. A resumed session has no verified chain.
  std::int64_t end_of_trust() const;
  void note_refusal(std::string words) { refusal_ = std::move(words); }

 private:
  bool expect_host();
  bool is_checking() const;
  long result_of_failure(const TlsWire& wire, int outcome);

  std::shared_ptr<LoopContext> context_;    // Destroyed last.
  const std::string host_;                  // For clients: the expected server.
  std::string refusal_;                     // Why the peer's certificate was rejected.
  std::int64_t resumed_until_ = INT64_MAX;  // When the session that a client offers ends.
  OwnSsl ssl_;
};

// Makes a BIO that reads from and writes to the TlsWire that is its data.
OwnBio make_wire_bio();

}  // namespace spate
