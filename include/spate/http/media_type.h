// Media types (RFC 9110 §8.3), and the types of files by name. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// A media type: type/subtype; name=value; ... Has views into the text that was parsed.
class SPATE_EXPORT MediaType {
 public:
  // Parses a media type. Returns nullopt if it or a parameter is invalid.
  static std::optional<MediaType> parse(std::string_view text);

  std::string_view type() const { return type_; }
  std::string_view subtype() const { return subtype_; }
  // Compares without regard to case: is("text", "html").
  bool is(std::string_view type, std::string_view subtype) const;
  // Returns the value of the first parameter of that name, without quotes. Case is ignored.
  std::optional<std::string> parameter(std::string_view name) const;

 private:
  std::string_view type_;
  std::string_view subtype_;
  std::string_view parameters_;
};

// Returns the value of Content-Type for a file name, by its extension: "text/html; charset=utf-8".
// Text types have charset UTF-8. Unknown extensions are "application/octet-stream".
SPATE_EXPORT std::string_view content_type_of(std::string_view filename);

// Returns whether bodies of the type become much shorter by compression: text, scripts, XML, JSON,
// SVG, uncompressed fonts. `type` may have parameters.
SPATE_EXPORT bool is_compressible(std::string_view type);

}  // namespace spate::http
