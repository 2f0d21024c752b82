// JSON in requests and responses, without a JSON library: types, limits and refusals.
//
// Programs include nlohmann_json.h or simdjson.h, whichever library they use. Both headers use only
// the functions of this one, and so can an adapter for another library.
// Threads: the loop's thread only for functions with an Exchange; any thread for the others.
#pragma once

#include <cstddef>
#include <string_view>

#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/exchange.h"

namespace spate::http {

struct JsonLimits {
  std::size_t max_size = 1024 * 1024;  // Bytes of the body.
  std::size_t max_depth = 64;          // Arrays and objects inside each other.
  bool any_type = false;               // Accepts a body whose Content-Type is not that of JSON.
};

// Returns whether a value of Content-Type is application/json, or a type that ends in "+json" (RFC
// 6839 §3.1). Parameters and case are ignored.
SPATE_EXPORT bool is_json_type(std::string_view content_type);

// Returns whether more than `depth` arrays and objects are inside each other. Checks only brackets
// and strings; `json` need not be valid.
SPATE_EXPORT bool is_json_deeper(std::string_view json, std::size_t depth);

// Receives the text of a body, valid until it returns.
using OnJsonText = Function<void(Exchange exchange, std::string_view json)>;

// Receives the whole body as read_body() does, then calls `on_text`, which must check the syntax.
// Other bodies get an error response: 415 for another type, 413 for more than `max_size` bytes, and
// 400 if they are nested too deep. `on_text` is destroyed uncalled then.
SPATE_EXPORT void read_json_text(Exchange exchange, const JsonLimits& limits, OnJsonText on_text);

// Sends a response with type application/json. Returns false as Exchange::respond().
SPATE_EXPORT bool respond_json_text(Exchange& exchange, Status status, std::string_view json);

// Sends the description of an error, of type application/problem+json (RFC 9457):
// {"status":400,"title":"Bad Request","detail":"..."}. Returns false as Exchange::respond().
SPATE_EXPORT bool respond_problem(Exchange& exchange, Status status, std::string_view detail);

// Sends 400 with the place of a syntax error, which is at the byte `offset` of `json`. Returns
// false as Exchange::respond().
SPATE_EXPORT bool respond_bad_json(Exchange& exchange, std::string_view json, std::size_t offset);

}  // namespace spate::http
