// LoopContext: the SSL_CTX of one loop, the state of its callbacks, and the single BIO of all its
// connections, which refers to the TlsWire of the connection being called.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "net/tls/tls_engine.h"
#include "tls/description.h"
#include "tls/identity.h"
#include "tls/openssl.h"
#include "tls/session_store.h"

namespace spate {

// Exists while one of its engines does.
class LoopContext : public std::enable_shared_from_this<LoopContext> {
 public:
  static std::shared_ptr<LoopContext> make(std::shared_ptr<const Description> description,
                                           TlsFailure& why);
  explicit LoopContext(std::shared_ptr<const Description> description)
      : description_(std::move(description)), sessions_(description_->max_sessions) {}

  std::unique_ptr<TlsEngine> make_engine(std::string_view host, TlsFailure& why);

  const Description& description() const { return *description_; }
  SessionStore& sessions() { return sessions_; }
  SSL_CTX* context() const { return context_.get(); }
  BIO* bio() const { return bio_.get(); }

  // Selects the certificate for `name`; the first one, if none matches.
  void choose_identity(SSL* ssl, const char* name) const;

 private:
  bool open(TlsFailure& why);
  bool configure();
  bool configure_server();
  bool configure_client();
  bool load_identities(TlsFailure& why);

  const std::shared_ptr<const Description> description_;
  OwnContext context_;
  OwnBio bio_;
  std::vector<Identity> identities_;
  SessionStore sessions_;
};

}  // namespace spate
