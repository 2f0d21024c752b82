// What a lookup comes to.
//
// Semantics: event2/dns.h (evdns_callback_type); which records count, and for how long: probes.
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
  NameText canonical;  // What the name stands for, or empty.
};

// Of the message that answers the query of these bytes: of its header, its question, and the name
// of the query as it was sent. An answer to another question is an error.
void read_answer(std::span<const std::uint8_t> message, std::span<const std::uint8_t> query,
                 Answer& answer);

}  // namespace spate::libevent::dns
