// JSON parsed by simdjson (https://simdjson.org), for large bodies of which little is used.
//
//   read_json_document(std::move(exchange), [](Exchange whole, simdjson::dom::element order) {
//     std::uint64_t count = 0;
//     if (order["count"].get(count))
//       return respond_problem(whole, Status::bad_request, "no count");
//     ...
//   });
//
// simdjson writes no JSON: respond_json_text() sends a text.
// Needs simdjson.h (in Debian: libsimdjson-dev). The library itself does not.
// Threads: the loop's thread only.
#pragma once

#include <simdjson.h>

#include <string_view>
#include <utility>

#include "spate/function.h"
#include "spate/http/json.h"

namespace spate::http {

// Receives the body's value, valid until it returns.
using OnJsonDocument = Function<void(Exchange exchange, simdjson::dom::element)>;

// Receives the whole body, parses it, and calls `on_document`, from the loop. Other bodies get an
// error response: 415 for another type, 413 for more than `limits.max_size` bytes, and 400 with
// simdjson's reason if the body is not JSON or is nested too deep. The response is 503 if memory
// runs out. If the client disconnects, or after such a response, `on_document` is destroyed
// uncalled.
inline void read_json_document(Exchange exchange, OnJsonDocument on_document,
                               const JsonLimits& limits = {}) {
  read_json_text(
      std::move(exchange), limits,
      [on_document = std::move(on_document)](Exchange whole, std::string_view text) mutable {
        simdjson::dom::parser parser;
        simdjson::dom::element document;
        // parse() must not get a null pointer, even for zero bytes.
        const char* bytes = text.empty() ? "" : text.data();
        const simdjson::error_code error = parser.parse(bytes, text.size()).get(document);
        if (error == simdjson::SUCCESS) return on_document(std::move(whole), document);
        if (error == simdjson::MEMALLOC) {
          whole.respond(Status::service_unavailable);
          return;
        }
        respond_problem(whole, Status::bad_request, simdjson::error_message(error));
      });
}

}  // namespace spate::http
