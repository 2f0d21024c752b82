// Http2Text: the fields of a head of HTTP/2, put together in the form that those of HTTP/1 have:
// one text, and entries that refer to it.
//
// One is filled at a time, as the fields of a connection's heads never mix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "http/codec/head.h"

namespace spate::http {

class Http2Text {
 public:
  struct Part {
    std::size_t at = 0;
    std::size_t size = 0;
  };

  void clear();
  std::size_t size() const { return text_.size(); }
  // Whether a name and a value of that size are within the limits, with `more` that is elsewhere.
  bool has_room(std::size_t size, const HeadLimits& limits, std::size_t more = 0) const;
  Part put(std::string_view text);
  // False if there are too many.
  bool add(std::string_view name, std::string_view value, const HeadLimits& limits,
           std::span<FieldEntry> entries);

  // Until it is cleared.
  const char* data() const { return text_.data(); }
  std::string_view view(Part part) const {
    return std::string_view(text_).substr(part.at, part.size);
  }
  // Refers to `entries`.
  FieldsView fields(std::span<const FieldEntry> entries) const {
    return {text_.data(), entries.data(), count_, known_};
  }
  bool has(FieldId id) const { return (known_ & bit_of(id)) != 0; }
  std::uint64_t repeated() const { return repeated_; }

 private:
  std::string text_;
  std::size_t count_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace spate::http
