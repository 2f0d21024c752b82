// Proactive negotiation (RFC 9110 §12.5): selects the representation that suits Accept or
// Accept-Encoding best. Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// Weights are in thousandths: from 0, not acceptable, to 1000. Invalid elements of a list are
// ignored.

// Returns the weight of a coding ("gzip", or "identity" for none) by the value of Accept-Encoding.
// "x-gzip" is gzip. Codings that are not listed have the weight of "*". Without "*", identity is
// acceptable with a lower weight than any listed coding, and all others are not acceptable. For a
// request without the field pass an empty value.
SPATE_EXPORT int weight_of_encoding(std::string_view accept_encoding, std::string_view coding);

// Returns the weight of a media type, "text/html" or "text/html;level=1", by the value of Accept:
// that of the most specific range that matches. An empty value accepts everything.
SPATE_EXPORT int weight_of_type(std::string_view accept, std::string_view type);

// Return the index in `offered` of the element with the greatest weight. The first of several wins,
// so put the preferred one first. Return nullopt if nothing is acceptable; a server may then send
// any representation.
SPATE_EXPORT std::optional<std::size_t> choose_encoding(std::string_view accept_encoding,
                                                        std::span<const std::string_view> offered);
SPATE_EXPORT std::optional<std::size_t> choose_type(std::string_view accept,
                                                    std::span<const std::string_view> offered);

}  // namespace spate::http
