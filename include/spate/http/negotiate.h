// Proactive negotiation (RFC 9110 §12.5): which of what a server has suits an Accept or an
// Accept-Encoding. Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// How much a client wants something, in thousandths: 0, not at all, to 1000. Elements of a list
// that are not of its grammar are passed over, as if they were not there.

// A coding by the value of Accept-Encoding: "gzip", or "identity" for none. "x-gzip" is gzip. What
// the field does not name is as "*" says; if that is not there either, identity is acceptable, less
// than all that is named, and nothing else is. For a request without the field pass an empty value.
SPATE_EXPORT int weight_of_encoding(std::string_view accept_encoding, std::string_view coding);

// A media type, "text/html" or "text/html;level=1", by the value of Accept: what the most specific
// range says that it is in. An empty value accepts everything.
SPATE_EXPORT int weight_of_type(std::string_view accept, std::string_view type);

// The place in `offered` of what has the greatest weight, the first of equals: so put the favourite
// first. None if nothing is acceptable; then a server may send what it has, nevertheless.
SPATE_EXPORT std::optional<std::size_t> choose_encoding(std::string_view accept_encoding,
                                                        std::span<const std::string_view> offered);
SPATE_EXPORT std::optional<std::size_t> choose_type(std::string_view accept,
                                                    std::span<const std::string_view> offered);

}  // namespace spate::http
