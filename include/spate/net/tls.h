// TLS for Streams: the server's and the client's side, TLS 1.2 and 1.3.
//
//   auto context = must(TlsContext::server({.identities = {{.chain_file = "chain.pem",
//                                                           .key_file = "key.pem"}}}));
//   auto listener = must(Listener::create(loop, address, with_tls(context, on_accept)));
//
// A Stream that carries TLS is a Stream as any other, with the same queue, deadlines, back-pressure
// and endings. What differs: fd() is not for reading and writing, release() and send_descriptors()
// return EOPNOTSUPP, and the peer's end is an end only if the peer has said so: a connection that
// is cut off is closed with Error::tls_truncated. After the Stream's close() that is forgiven.
//
// A program that calls TlsContext::server() or client() links to spate::tls, which needs OpenSSL.
//
// Ownership: a TlsContext is a handle, copied cheaply; it may go before the Streams made with it.
// Threads: a TlsContext may be used from any thread; all else, the loop's thread only. Each loop
// makes its own OpenSSL context, so that loops do not wait for each other.
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
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

class TlsProvider;

// An error, and what OpenSSL or the check of the certificate says about it, for a log: "the
// certificate has expired (Nov 23 01:02:03 2026 GMT)".
struct TlsFailure {
  std::error_code code;
  std::string text;
};
template <class T>
using TlsResult = std::expected<T, TlsFailure>;

// As must() in error.h: for start-up code.
template <class T>
T must(TlsResult<T> result, std::source_location where = std::source_location::current()) {
  if (!result) give_up(result.error().code, where);
  return std::move(*result);
}

enum class TlsVersion : std::uint8_t { tls_1_2, tls_1_3 };

// A certificate with its chain and its key. Each either as a file or as text (PEM); in the chain
// the certificate itself comes first, and the root is left out.
struct TlsIdentity {
  std::string chain_file{};
  std::string key_file{};
  std::string chain{};
  std::string key{};
};

// Whether a server asks for a certificate of the client's.
enum class TlsClientCheck : std::uint8_t {
  none,
  optional,  // Without one the connection goes on; tls_info() tells.
  required,
};

struct TlsServerOptions {
  // The first serves whoever asks for no name, or for one that none of them has. Of the others each
  // serves the names that its certificate is for, wildcards included. At least one.
  std::vector<TlsIdentity> identities{};
  // Protocols above TLS, the one preferred first ("h2", "http/1.1"). If there are any, a client
  // that offers others only is refused; one that offers none is not.
  std::vector<std::string> alpn{};
  TlsClientCheck client_check = TlsClientCheck::none;
  // Who has to have issued a client's certificate, as a file or as text.
  std::string client_ca_file{};
  std::string client_ca{};
  TlsVersion min_version = TlsVersion::tls_1_2;
  Nanos handshake_timeout{10'000'000'000};
  // Sessions can be resumed by tickets: how many a client of TLS 1.3 is given, another one for each
  // that it resumes with, and for how long each is good. A new key is made after that time, and two
  // older ones are kept.
  unsigned tickets = 2;
  Nanos ticket_lifetime{7'200'000'000'000};
};

struct TlsClientOptions {
  // Who may have issued the server's certificate: those whom the system trusts, and those of the
  // file and the text.
  bool system_cas = true;
  std::string ca_file{};
  std::string ca{};
  std::optional<TlsIdentity> identity{};  // For a server that asks.
  std::vector<std::string> alpn{};        // Offered, the one preferred first.
  TlsVersion min_version = TlsVersion::tls_1_2;
  Nanos handshake_timeout{10'000'000'000};
  // For how many hosts each loop keeps a session to resume; 0 for none.
  std::size_t max_sessions = 256;
};

// Keys with which tickets are encrypted: for several processes that share a port.
struct TlsTicketKey {
  std::array<std::byte, 16> name;
  std::array<std::byte, 32> cipher;
  std::array<std::byte, 32> mac;
};

class SPATE_EXPORT TlsContext {
 public:
  // None: whatever is begun with it fails with EINVAL.
  TlsContext() = default;

  // Errors: Error::tls_certificate for a certificate or key that cannot be read, or that do not
  // belong together; EINVAL for other options; ENOENT, EACCES, ... for files; ENOMEM.
  static TlsResult<TlsContext> server(const TlsServerOptions& options);
  static TlsResult<TlsContext> client(const TlsClientOptions& options = {});
  // Of a client that talks to whoever answers, under any name: anybody on the way can read and
  // change everything. For tests.
  static TlsResult<TlsContext> client_that_verifies_nobody(const TlsClientOptions& options = {});

  // Replaces the options, for all copies of this handle and all handshakes that begin from now on;
  // what is established goes on. The keys of the tickets stay. A context of the other kind: EINVAL.
  // With an error nothing has changed.
  TlsResult<void> reload(const TlsServerOptions& options) const;
  TlsResult<void> reload(const TlsClientOptions& options) const;

  // A server's. New tickets get a new key; the two before are good until their tickets are too old.
  void rotate_tickets() const;
  // The first encrypts, all decrypt; at most three. No key of our own is made from now on. False if
  // there are none or more.
  bool set_ticket_keys(std::span<const TlsTicketKey> keys) const;

  explicit operator bool() const { return provider_ != nullptr; }
  bool is_server() const;
  bool is_client() const;

  // For the library.
  explicit TlsContext(std::shared_ptr<TlsProvider> provider) : provider_(std::move(provider)) {}
  const std::shared_ptr<TlsProvider>& provider() const { return provider_; }

 private:
  std::shared_ptr<TlsProvider> provider_;
};

using OnTlsFailure = std::function<void(const TlsFailure& failure, const Address& peer)>;
using OnSecured = std::move_only_function<void(TlsResult<Stream>)>;

// Shakes hands as the server, on a Stream that was accepted; as the client of `host`, a name or an
// IP address, on one that was connected, or on one that has agreed by its own protocol to change to
// TLS (STARTTLS). Destroying the Connecting cancels, and resets the connection. The handler of
// `plain`, if it had one, is called no more; the Stream of the callback is not started, and has
// otherwise what was set on `plain`.
// A plain Stream must have used all that has come, and sent all that was written: else EBUSY, as
// the bytes behind might be an attacker's.
// For an empty Stream, or without memory even to begin, the Connecting is not pending, and nothing
// is called.
// Errors: EBUSY, also while it is connecting; Error::deadline after the context's
// `handshake_timeout`; Error::tls_certificate if a certificate was not accepted, by us or by the
// peer; Error::tls_handshake for all else that the two do not agree on; EINVAL for an empty
// context, one of the other side, or no host; those of StreamHandler::on_closed(); ENOMEM. Of all
// the handshakes of a loop, eight steps are done a turn, so that others have theirs.
SPATE_EXPORT Connecting accept_tls(Stream plain, const TlsContext& context, OnSecured callback);
SPATE_EXPORT Connecting start_tls(Stream plain, const TlsContext& context, std::string_view host,
                                  OnSecured callback);
// Connects, and does that. `options.timeout` includes the handshake.
SPATE_EXPORT Connecting connect(Loop& loop, std::string_view host, std::uint16_t port,
                                const TlsContext& context, OnSecured callback,
                                const ConnectOptions& options = {});

// accept_tls() that nobody has to keep; the handshake's deadline and the loop's end are its end.
SPATE_EXPORT void accept_tls_unattended(Stream plain, const TlsContext& context,
                                        OnSecured callback);

// For Listener::create() and Workers::listen(): calls `on_accept` with what has shaken hands, and
// `on_failure(const TlsFailure&, const Address&)` of what has not. Neither is called once what this
// returns has gone, with the Listener.
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

// What the two have agreed on.
struct TlsInfo {
  std::string version;      // "TLSv1.3"
  std::string cipher;       // "TLS_AES_256_GCM_SHA384"
  std::string alpn;         // Empty: none.
  std::string server_name;  // That the client has asked for; empty: none.
  bool is_resumed = false;
  // The peer's certificate, if it has shown one: its subject, the names it is for (DNS names and IP
  // addresses), and all of it (DER). A client's are verified, as a server's.
  std::string subject;
  std::vector<std::string> names;
  std::vector<std::byte> certificate;
};
// Nothing, if the stream does not carry TLS, or is closed.
SPATE_EXPORT std::optional<TlsInfo> tls_info(const Stream& stream);

}  // namespace spate
