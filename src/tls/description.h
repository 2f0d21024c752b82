// Description: the options of a context, read and checked. Immutable, and shared by all loops. Each
// loop makes its own SSL_CTX of it, because loops that share one wait for each other's counters and
// locks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/tls/tls_engine.h"
#include "spate/net/tls.h"
#include "tls/openssl.h"
#include "tls/ticket_keys.h"

namespace spate {

// Whether a client verifies the server.
enum class PeerCheck : std::uint8_t { names_and_chain, nothing };

struct Description {
  TlsProvider::Side side;
  std::vector<TlsIdentity> identities;  // As text. A client has at most one.
  std::string alpn;                     // In the format of the handshake: each preceded by its
                                        // length.
  TlsVersion min_version;
  Nanos handshake_timeout;
  OwnStore trusted;          // nullptr: none.
  std::string trusted_text;  // For servers.

  // ---- for servers
  TlsClientCheck client_check = TlsClientCheck::none;
  unsigned tickets = 0;
  Nanos ticket_lifetime{0};
  std::shared_ptr<TicketKeys> ticket_keys;

  // ---- for clients
  PeerCheck peer_check = PeerCheck::names_and_chain;
  std::size_t max_sessions = 0;
};

// Returns whether `alpn`, in the format of the handshake, has `protocol`.
bool names(std::string_view alpn, std::string_view protocol);

using DescriptionMade = TlsResult<std::shared_ptr<const Description>>;
DescriptionMade describe(const TlsServerOptions& options, std::shared_ptr<TicketKeys> keys);
DescriptionMade describe(const TlsClientOptions& options, PeerCheck check);

}  // namespace spate
