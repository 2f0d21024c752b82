// Http2TrailerSection: collects the trailers of an HTTP/2 body, field by field, under the rules of
// HTTP/1: the limits of a header section, and without the fields that must not be there.
#pragma once

#include <cstddef>
#include <string_view>

#include "http/codec/chunked.h"
#include "http/codec/head.h"
#include "spate/http/fields.h"

namespace spate::http {

class Http2TrailerSection {
 public:
  // Adds a field. False if they are too long or too many, or when memory runs out.
  bool take(std::string_view name, std::string_view value, const HeadLimits& limits,
            Fields& trailers) {
    size_ += name.size() + value.size();
    if (size_ > limits.head) return false;
    if (!may_be_trailer(field_id_of(name))) return true;
    return trailers.size() < limits.fields && trailers.add(name, value);
  }

 private:
  std::size_t size_ = 0;  // Including fields that were dropped.
};

}  // namespace spate::http
