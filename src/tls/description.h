// What a context was made of, read and checked: immutable, and shared by all loops. Each loop makes
// its own SSL_CTX of it, since those that share one wait for each other's counters and locks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/secure/tls_engine.h"
#include "spate/net/tls.h"
#include "tls/openssl.h"
#include "tls/ticket_keys.h"

namespace spate {

// Whether a client looks at who answers.
enum class PeerCheck : std::uint8_t { names_and_chain, nothing };

struct Description {
  TlsProvider::Side side;
  std::vector<TlsIdentity> identities;  // Text. A client has one at most.
  std::string alpn;                     // As the handshake has it: each behind its length.
  TlsVersion min_version;
  Nanos handshake_timeout;
  OwnStore trusted;          // nullptr: nobody.
  std::string trusted_text;  // Of a server.

  // A server's.
  TlsClientCheck client_check = TlsClientCheck::none;
  unsigned tickets = 0;
  Nanos ticket_lifetime{0};
  std::shared_ptr<TicketKeys> ticket_keys;

  // A client's.
  PeerCheck peer_check = PeerCheck::names_and_chain;
  std::size_t max_sessions = 0;
};

using DescriptionMade = TlsResult<std::shared_ptr<const Description>>;
DescriptionMade describe(const TlsServerOptions& options, std::shared_ptr<TicketKeys> keys);
DescriptionMade describe(const TlsClientOptions& options, PeerCheck check);

}  // namespace spate
