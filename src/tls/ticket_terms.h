// TicketTerms: how long a session may be resumed, counted from its full handshake. Each resumption
// issues a new ticket, which therefore contains the terms of the first one (RFC 8446 section
// 4.6.1).
#pragma once

#include <cstdint>

#include "spate/time.h"
#include "tls/openssl.h"

namespace spate {

struct TicketTerms {
  std::int64_t begun = 0;        // Time of the full handshake, in nanoseconds of the wall clock.
  std::int64_t valid_until = 0;  // Expiry of the client's certificate chain, if any.

  // Returns whether a server whose tickets have `lifetime` accepts one with these terms.
  bool allow(std::int64_t now, Nanos lifetime) const {
    return now < valid_until && now >= begun && Nanos{now - begun} < lifetime;
  }
};

// Returns when the first certificate of the peer's verified chain expires, in nanoseconds of the
// wall clock. INT64_MAX without a chain.
std::int64_t end_of_chain(const SSL* ssl);
// Returns the wall clock, in nanoseconds.
std::int64_t wall_now();

// Makes a server's context put terms into its tickets, and accept no tickets without them. Returns
// false when memory runs out.
bool keep_ticket_terms(SSL_CTX* context);

}  // namespace spate
