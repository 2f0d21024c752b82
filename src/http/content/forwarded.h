// The client of a request that proxies have forwarded: Forwarded (RFC 7239) and X-Forwarded-For.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "spate/http/fields.h"
#include "spate/net/address.h"
#include "spate/net/network.h"

namespace spate::http {

// How many elements of the list are read, from the right.
inline constexpr std::size_t kMostHops = 32;

// Returns the first address from the right of the field `name` that is in no trusted network.
// `last` is the address of the trusted proxy that sent the request. The walk ends at an element
// that has no address, and after kMostHops elements; the result is then the last address before it.
//
// Each proxy appends to the right. Elements are therefore parsed from the right, so that no bytes
// on the left, which come from the client, change how an element of a proxy is read.
Address client_behind(const FieldsView& fields, std::string_view name, const Address& last,
                      std::span<const Network> trusted);

// Returns whether one of the networks contains the address.
bool is_in_any(std::span<const Network> networks, const Address& address);

}  // namespace spate::http
