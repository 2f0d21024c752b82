// TLS for Streams: the server's and the client's side, TLS 1.2 and 1.3.
//
//   auto context = must(TlsContext::server({.identities = {{.chain_file = "chain.pem",
//                                                           .key_file = "key.pem"}}}));
//   auto listener = must(Listener::create(loop, address, with_tls(context, on_accept)));
//
// A Stream that carries TLS has the same queue, deadlines, back-pressure and endings as any other.
// It differs in three ways:
// - fd() is not for reading and writing;
// - release() and send_descriptors() return EOPNOTSUPP;
// - EOF without close_notify closes the Stream with Error::tls_truncated, unless it was closed by
//   Stream::close() before.
//
// A program that calls TlsContext::server() or client() links to spate::tls, which needs OpenSSL.
//
// Ownership: a TlsContext is a handle, copied cheaply; it may be destroyed before the Streams made
// with it.
// Threads: a TlsContext may be used from any thread; everything else on the loop's thread only.
// Each loop makes its own OpenSSL context, so that loops do not wait for each other.
// Callbacks: called once, from the loop and never from inside the function that takes them. Inside
// everything is allowed, destroying the Connecting included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

class TlsProvider;

// An error, and its description by OpenSSL or by the check of the certificate, for a log: "the
// certificate has expired (Nov 23 01:02:03 2026 GMT)".
struct TlsFailure {
  std::error_code code;
  std::string text;
};
template <class T>
using TlsResult = std::expected<T, TlsFailure>;

// As must() in error.h: for start-up code. Prints the text, which names the file.
template <class T>
T must(TlsResult<T> result, std::source_location where = std::source_location::current()) {
  if (!result) give_up(std::string_view(result.error().text), where);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

enum class TlsVersion : std::uint8_t { tls_1_2, tls_1_3 };

// A certificate with its chain, and its private key. Each is given either as a file or as text
// (PEM). In the chain the certificate itself comes first, and the root is left out.
struct TlsIdentity {
  std::string chain_file{};
  std::string key_file{};
  std::string chain{};
  std::string key{};
};

// Whether a server requests a client certificate.
enum class TlsClientCheck : std::uint8_t {
  none,
  optional,  // Connections without one are accepted; see tls_info().
  required,
};

struct TlsServerOptions {
  // At least one. The first is used for clients that send no server name, or a name that no
  // certificate has. Each of the others is used for the names in its certificate, wildcards
  // included.
  std::vector<TlsIdentity> identities{};
  // Application protocols, most preferred first ("h2", "http/1.1"). If there are any, a client that
  // offers only other ones is refused; a client that offers none is accepted.
  std::vector<std::string> alpn{};
  TlsClientCheck client_check = TlsClientCheck::none;
  // The issuers accepted for client certificates, as a file or as text.
  std::string client_ca_file{};
  std::string client_ca{};
  TlsVersion min_version = TlsVersion::tls_1_2;
  Nanos handshake_timeout{10'000'000'000};
  // Session resumption by tickets. `tickets` is how many a TLS 1.3 client receives after a full
  // handshake; after each resumption it receives another one. A session can be resumed for
  // `ticket_lifetime` after its full handshake, and no longer than the client's certificate is
  // valid. After each `ticket_lifetime` a new key is made; the two previous keys are kept.
  unsigned tickets = 2;
  Nanos ticket_lifetime{7'200'000'000'000};
};

struct TlsClientOptions {
  // The issuers accepted for the server's certificate: the system's, and those of the file and the
  // text.
  bool system_cas = true;
  std::string ca_file{};
  std::string ca{};
  std::optional<TlsIdentity> identity{};  // For a server that requests a certificate.
  std::vector<std::string> alpn{};        // Offered protocols, most preferred first.
  TlsVersion min_version = TlsVersion::tls_1_2;
  Nanos handshake_timeout{10'000'000'000};
  // How many hosts each loop keeps a session for; 0 disables resumption.
  std::size_t max_sessions = 256;
};

// Keys that encrypt tickets: for several processes that share a port.
struct TlsTicketKey {
  std::array<std::byte, 16> name;
  std::array<std::byte, 32> cipher;
  std::array<std::byte, 32> mac;
};

class SPATE_EXPORT TlsContext {
 public:
  // Makes an empty context; every handshake with it fails with EINVAL.
  TlsContext() = default;

  // Make a context. Errors: Error::tls_certificate for a certificate or key that cannot be read, or
  // that do not match; EINVAL for other options; ENOENT, EACCES, ... for files; ENOMEM.
  static TlsResult<TlsContext> server(const TlsServerOptions& options);
  static TlsResult<TlsContext> client(const TlsClientOptions& options = {});
  // Makes a client context that accepts any certificate: an attacker on the network path can read
  // and change everything. For tests.
  static TlsResult<TlsContext> client_without_verification(const TlsClientOptions& options = {});

  // Replaces the options, for all copies of this handle and all handshakes that begin from now on.
  // Established connections are not affected, and the ticket keys stay. Errors: as server() and
  // client(); EINVAL for a context of the other side. On an error nothing changes.
  TlsResult<void> reload(const TlsServerOptions& options) const;
  TlsResult<void> reload(const TlsClientOptions& options) const;

  // Makes a new key for new tickets. Server contexts only. The two previous keys decrypt tickets
  // until these expire.
  void rotate_tickets() const;
  // Sets the ticket keys, at most three: the first encrypts, all decrypt. The context then makes no
  // key itself. False for an empty list or a longer one.
  bool set_ticket_keys(std::span<const TlsTicketKey> keys) const;

  explicit operator bool() const { return provider_ != nullptr; }
  bool is_server() const;
  bool is_client() const;
  // Returns whether `protocol` is one of the names in `alpn`.
  bool offers(std::string_view protocol) const;

  // Called by the library.
  explicit TlsContext(std::shared_ptr<TlsProvider> provider) : provider_(std::move(provider)) {}
  const std::shared_ptr<TlsProvider>& provider() const { return provider_; }

 private:
  std::shared_ptr<TlsProvider> provider_;
};

using OnTlsFailure = std::function<void(const TlsFailure& failure, const Address& peer)>;
using OnSecured = Function<void(TlsResult<Stream>)>;

// Perform the TLS handshake: accept_tls() as the server, on an accepted Stream; start_tls() as the
// client of `host`, a name or an IP address. The Stream of start_tls() was connected, or has agreed
// by its own protocol to switch to TLS (STARTTLS). Destroying the Connecting cancels, and resets
// the connection. The handler of `plain` is not called any more. The Stream passed to the callback
// is not started; it keeps the other settings of `plain`.
//
// A plain Stream must have used all its input and sent all its output. Otherwise the result is
// EBUSY, because plaintext after the switch might come from an attacker.
//
// For an empty Stream, or when memory runs out at the beginning, the Connecting is not pending, and
// the callback is not called.
//
// Errors: EBUSY, also while it is connecting; Error::deadline after the context's
// `handshake_timeout`; Error::tls_certificate if a certificate was rejected, by us or by the peer;
// Error::tls_handshake for all other handshake failures; EINVAL for an empty context, one of the
// other side, or no host; those of StreamHandler::on_closed(); ENOMEM.
//
// A loop performs at most eight steps of handshakes per turn, so that they do not delay other
// events.
SPATE_EXPORT Connecting accept_tls(Stream plain, const TlsContext& context, OnSecured callback);
SPATE_EXPORT Connecting start_tls(Stream plain, const TlsContext& context, std::string_view host,
                                  OnSecured callback);
// Connects, and performs the handshake of start_tls(). `options.timeout` includes the handshake.
SPATE_EXPORT Connecting connect(Loop& loop, std::string_view host, std::uint16_t port,
                                const TlsContext& context, OnSecured callback,
                                const ConnectOptions& options = {});

// As accept_tls(), without a handle. The handshake ends with its deadline or with the loop.
SPATE_EXPORT void accept_tls_unattended(Stream plain, const TlsContext& context,
                                        OnSecured callback);

// Calls accept_tls() through the context, which must not be empty. For code that every server has,
// so that a static program without a context does not contain TLS.
SPATE_EXPORT Connecting accept_tls_by(const TlsContext& context, Stream plain, OnSecured callback);

// Returns a callback for Listener::create() and Workers::listen(). It calls `on_accept` after each
// completed handshake, and `on_failure(const TlsFailure&, const Address&)` after each failed one.
// It calls neither after the returned callback was destroyed, with the Listener.
template <class OnAccept, class OnFailure>
auto with_tls(TlsContext context, OnAccept on_accept, OnFailure on_failure) {
  struct Both {
    OnAccept on_accept;
    OnFailure on_failure;
  };
  auto both = std::make_shared<Both>(std::move(on_accept), std::move(on_failure));
  return [context = std::move(context), both](Stream plain, const Address& peer) {
    accept_tls_unattended(std::move(plain), context,
                          [heard = std::weak_ptr(both), peer](TlsResult<Stream> secured) {
                            const std::shared_ptr<Both> hearer = heard.lock();
                            if (hearer == nullptr) return;
                            if (secured) {
                              hearer->on_accept(std::move(*secured), peer);
                            } else {
                              hearer->on_failure(secured.error(), peer);
                            }
                          });
  };
}
template <class OnAccept>
auto with_tls(TlsContext context, OnAccept on_accept) {
  return with_tls(std::move(context), std::move(on_accept),
                  [](const TlsFailure&, const Address&) {});
}

// The parameters of an established TLS connection.
struct TlsInfo {
  std::string version;      // "TLSv1.3"
  std::string cipher;       // "TLS_AES_256_GCM_SHA384"
  std::string alpn;         // Empty: none.
  std::string server_name;  // The name that the client sent; empty: none.
  bool is_resumed = false;
  // The peer's certificate, if it sent one: its subject, the names it is valid for (DNS names and
  // IP addresses), and the whole certificate (DER). A client's certificate is verified, as a
  // server's is.
  std::string subject;
  std::vector<std::string> names;
  std::vector<std::byte> certificate;
};
// Returns nullopt if the stream does not carry TLS, or is closed.
SPATE_EXPORT std::optional<TlsInfo> tls_info(const Stream& stream);

}  // namespace spate
