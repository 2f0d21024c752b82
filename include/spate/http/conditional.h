// Conditional requests (RFC 9110 §13): entity tags, and what If-Match, If-None-Match,
// If-Modified-Since, If-Unmodified-Since and If-Range come to. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "spate/export.h"
#include "spate/http/method.h"

namespace spate::http {

// An entity tag: "xyz" in its quotes, or W/"xyz", a weak one.
struct EntityTag {
  std::string_view opaque;  // With its quotes.
  bool is_weak = false;
};

// One tag, as ETag has it; none if it is not one.
SPATE_EXPORT std::optional<EntityTag> parse_entity_tag(std::string_view text);
// They stand for the same bytes: neither is weak.
SPATE_EXPORT bool is_strongly_equal(EntityTag a, EntityTag b);
// They stand for what serves the same purpose.
SPATE_EXPORT bool is_weakly_equal(EntityTag a, EntityTag b);

// The fields of a request; nullopt for one that it does not have. If a request has the lists,
// If-Match and If-None-Match, in several lines, pass them joined by commas.
struct Conditions {
  std::optional<std::string_view> if_match = {};
  std::optional<std::string_view> if_none_match = {};
  std::optional<std::string_view> if_modified_since = {};
  std::optional<std::string_view> if_unmodified_since = {};
  std::optional<std::string_view> if_range = {};
};

// What there is at present.
struct Representation {
  bool exists = true;
  std::string_view etag = {};  // Empty: it has none.
  std::optional<std::chrono::sys_seconds> last_modified = {};
};

enum class Verdict : std::uint8_t {
  proceed,              // As if there were no conditions; with Range, if there is one.
  not_modified,         // 304, with the fields that 200 would have had (RFC 9110 §15.4.5).
  precondition_failed,  // 412.
  ignore_range,         // Proceed, but send the whole: If-Range does not hold.
};

// In the order of §13.2.2. Ask only if the answer would be a 2xx otherwise. A date that is none is
// ignored, as is one where there is no `last_modified`; but for If-Range it does not hold. A list
// of tags counts up to the first thing that is none. `now` is for dates in the form of RFC 850.
// A date in If-Range holds only if it is exactly `last_modified`: give it only for what does not
// change twice within a second, or give a strong tag.
SPATE_EXPORT Verdict evaluate(Method method, const Conditions& conditions,
                              const Representation& present, std::chrono::sys_seconds now);

}  // namespace spate::http
