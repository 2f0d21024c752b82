#include "spate/http/response.h"

#include "http/codec/syntax.h"

namespace spate::http {

// Connections refuse a response with an invalid Content-Length.
std::optional<std::uint64_t> Response::content_length() const {
  return parse_number(fields_[FieldId::content_length], Overflow::is_refused);
}

}  // namespace spate::http
