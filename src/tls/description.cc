#include "tls/description.h"

#include <openssl/err.h>

#include <cerrno>
#include <utility>

#include "tls/failure.h"
#include "tls/identity.h"

namespace spate {

namespace {

using Made = TlsResult<std::shared_ptr<Description>>;

std::unexpected<TlsFailure> invalid(std::string text) {
  return std::unexpected(TlsFailure{{EINVAL, std::system_category()}, std::move(text)});
}

TlsResult<std::string> alpn_of(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255)
      return invalid("a protocol's name (ALPN) has 1 to 255 bytes");
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  if (wire.size() > 65'535) return invalid("too many protocols (ALPN)");
  return wire;
}

// Reads the options common to server and client.
template <class Options>
Made begin(TlsProvider::Side side, const Options& options) {
  auto alpn = alpn_of(options.alpn);
  if (!alpn) return std::unexpected(std::move(alpn.error()));
  if (options.handshake_timeout <= Nanos{0}) return invalid("a handshake needs some time");
  auto made = std::make_shared<Description>();
  made->side = side;
  made->alpn = std::move(*alpn);
  made->min_version = options.min_version;
  made->handshake_timeout = options.handshake_timeout;
  return made;
}

TlsResult<void> add(Description& to, const TlsIdentity& identity) {
  auto read = read_files(identity);
  if (!read) return std::unexpected(std::move(read.error()));
  if (auto loaded = load(*read); !loaded) return std::unexpected(std::move(loaded.error()));
  to.identities.push_back(std::move(*read));
  return {};
}

TlsResult<void> trust_all(Description& made, const std::string& file, std::string text) {
  if (!file.empty()) {
    auto read = read_text(file);
    if (!read) return std::unexpected(std::move(read.error()));
    text += "\n" + *read;
  }
  if (text.empty()) return {};
  auto trusted = trust(*made.trusted, text, file);
  made.trusted_text = std::move(text);
  return trusted;
}

bool make_store(Description& made) {
  made.trusted.reset(X509_STORE_new());
  return made.trusted != nullptr;
}

}  // namespace

bool names(std::string_view alpn, std::string_view protocol) {
  while (!alpn.empty()) {
    const std::size_t size = static_cast<unsigned char>(alpn.front());
    if (alpn.substr(1, size) == protocol) return true;
    alpn.remove_prefix(1 + size);
  }
  return false;
}

DescriptionMade describe(const TlsServerOptions& options, std::shared_ptr<TicketKeys> keys) {
  Made made = begin(TlsProvider::Side::server, options);
  if (!made) return std::unexpected(std::move(made.error()));
  if (options.identities.empty()) return invalid("a server needs a certificate");
  Description& to = **made;
  for (const TlsIdentity& identity : options.identities) {
    if (auto added = add(to, identity); !added) return std::unexpected(std::move(added.error()));
  }
  const bool has_ca = !options.client_ca.empty() || !options.client_ca_file.empty();
  if (has_ca != (options.client_check != TlsClientCheck::none))
    return invalid("`client_check` and `client_ca` go together");
  if (options.ticket_lifetime <= Nanos{0} && options.tickets > 0)
    return invalid("tickets need a lifetime");
  to.client_check = options.client_check;
  to.tickets = options.tickets;
  to.ticket_lifetime = options.ticket_lifetime;
  to.ticket_keys = std::move(keys);
  if (!make_store(to)) return std::unexpected(take_failure(Error::tls_certificate));
  if (auto done = trust_all(to, options.client_ca_file, options.client_ca); !done)
    return std::unexpected(std::move(done.error()));
  return *made;
}

// Reads the system's certificates here, not during a handshake.
DescriptionMade describe(const TlsClientOptions& options, PeerCheck check) {
  Made made = begin(TlsProvider::Side::client, options);
  if (!made) return std::unexpected(std::move(made.error()));
  Description& to = **made;
  to.peer_check = check;
  to.max_sessions = options.max_sessions;
  if (options.identity) {
    if (auto added = add(to, *options.identity); !added)
      return std::unexpected(std::move(added.error()));
  }
  ERR_clear_error();
  if (!make_store(to)) return std::unexpected(take_failure(Error::tls_certificate));
  if (options.system_cas && check == PeerCheck::names_and_chain &&
      X509_STORE_set_default_paths(to.trusted.get()) != 1)
    return std::unexpected(take_failure(Error::tls_certificate));
  if (auto done = trust_all(to, options.ca_file, options.ca); !done)
    return std::unexpected(std::move(done.error()));
  return *made;
}

}  // namespace spate
