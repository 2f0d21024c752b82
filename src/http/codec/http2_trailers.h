// Http2TrailerSection: what comes behind a body of HTTP/2, field by field. It becomes what it is in
// HTTP/1: no longer than a head, and without what may not be there.
#pragma once

#include <cstddef>
#include <string_view>

#include "http/codec/chunked.h"
#include "http/codec/head.h"
#include "spate/http/fields.h"

namespace spate::http {

class Http2TrailerSection {
 public:
  // False: they are too long or too many, or memory has run out.
  bool take(std::string_view name, std::string_view value, const HeadLimits& limits,
            Fields& trailers) {
    size_ += name.size() + value.size();
    if (size_ > limits.head) return false;
    if (!may_be_trailer(field_id_of(name))) return true;
    return trailers.size() < limits.fields && trailers.add(name, value);
  }

 private:
  std::size_t size_ = 0;  // Also of what was left out.
};

}  // namespace spate::http
