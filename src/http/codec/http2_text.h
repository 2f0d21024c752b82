// Http2Text: assembles the fields of an HTTP/2 header section in the format of HTTP/1: one text,
// and entries that refer to it.
//
// One per connection suffices, because the header sections of a connection are never interleaved.
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
  // Returns whether a field of that size is within the limits, with `more` bytes stored elsewhere.
  bool has_room(std::size_t size, const HeadLimits& limits, std::size_t more = 0) const;
  Part put(std::string_view text);
  // Adds a field. False if there are too many.
  bool add(std::string_view name, std::string_view value, const HeadLimits& limits,
           std::span<FieldEntry> entries);

  // Valid until clear().
  const char* data() const { return text_.data(); }
  std::string_view view(Part part) const {
    return std::string_view(text_).substr(part.at, part.size);
  }
  // Returns a view that refers to `entries`.
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
