// Media types (RFC 9110 §8.3), and those of files by their names. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// type/subtype; name=value; ... Views into the text that was parsed.
class SPATE_EXPORT MediaType {
 public:
  // None if it is not one: also if a parameter is bad.
  static std::optional<MediaType> parse(std::string_view text);

  std::string_view type() const { return type_; }
  std::string_view subtype() const { return subtype_; }
  // Whatever the case: is("text", "html").
  bool is(std::string_view type, std::string_view subtype) const;
  // The value of the first parameter of that name, whatever its case, without quotes.
  std::optional<std::string> parameter(std::string_view name) const;

 private:
  std::string_view type_;
  std::string_view subtype_;
  std::string_view parameters_;
};

// The value of Content-Type for a file of that name, by what follows its last dot:
// "text/html; charset=utf-8". "application/octet-stream" if that is not known. Text types say
// UTF-8.
SPATE_EXPORT std::string_view content_type_of(std::string_view filename);

// Whether bodies of the type become much shorter by compression: text, scripts, XML, JSON, SVG,
// fonts that are not compressed already. `type` may have parameters.
SPATE_EXPORT bool is_compressible(std::string_view type);

}  // namespace spate::http
