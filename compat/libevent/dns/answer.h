// The result of a lookup.
//
// Semantics: event2/dns.h (evdns_callback_type); probed: which records count, and for how long.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <span>

#include "compat/libevent/dns/message.h"

namespace spate::libevent::dns {

inline constexpr int kAddressesMost = 32;

struct Answer {
  int error;  // DNS_ERR_*
  std::uint32_t ttl;
  int count;
  union {
    in_addr ipv4[kAddressesMost];
    in6_addr ipv6[kAddressesMost];
    NameText name;
  };
  NameText canonical;  // The canonical name, or empty.
};

// Parses `message`, the answer to the query with these bytes: their headers, questions, and names
// as sent. An answer to another question is an error.
void read_answer(std::span<const std::uint8_t> message, std::span<const std::uint8_t> query,
                 Answer& answer);

}  // namespace spate::libevent::dns
