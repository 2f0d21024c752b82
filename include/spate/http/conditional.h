// Conditional requests (RFC 9110 §13): entity tags, and the evaluation of If-Match, If-None-Match,
// If-Modified-Since, If-Unmodified-Since and If-Range. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "spate/export.h"
#include "spate/http/method.h"

namespace spate::http {

// An entity tag: "xyz" with its quotes, or a weak one, W/"xyz".
struct EntityTag {
  std::string_view opaque;  // Includes the quotes.
  bool is_weak = false;
};

// Parses one tag, as in an ETag field; nullopt if it is invalid.
SPATE_EXPORT std::optional<EntityTag> parse_entity_tag(std::string_view text);
// True if both denote the same bytes: equal and not weak.
SPATE_EXPORT bool is_strongly_equal(EntityTag a, EntityTag b);
// True if both denote equivalent representations.
SPATE_EXPORT bool is_weakly_equal(EntityTag a, EntityTag b);

// The fields of a request; nullopt for an absent one. If a request has If-Match or If-None-Match,
// which are lists, in several lines, pass them joined by commas.
struct Conditions {
  std::optional<std::string_view> if_match = {};
  std::optional<std::string_view> if_none_match = {};
  std::optional<std::string_view> if_modified_since = {};
  std::optional<std::string_view> if_unmodified_since = {};
  std::optional<std::string_view> if_range = {};
};

// The current state of the resource.
struct Representation {
  bool exists = true;
  std::string_view etag = {};  // Empty: no tag.
  std::optional<std::chrono::sys_seconds> last_modified = {};
};

enum class Verdict : std::uint8_t {
  proceed,              // As without conditions; apply Range, if there is one.
  not_modified,         // Respond 304, with the fields that 200 would have had (RFC 9110 §15.4.5).
  precondition_failed,  // Respond 412.
  ignore_range,         // Proceed, but send the whole: If-Range does not match.
};

// Evaluates the conditions in the order of RFC 9110 §13.2.2. Call it only if the response would
// otherwise be a 2xx. An invalid date is ignored, as is a date if there is no `last_modified`; in
// If-Range either does not match. A list of tags is read up to the first invalid element. `now` is
// needed for dates in the format of RFC 850.
// A date in If-Range matches only if it equals `last_modified`. So set that only for files that do
// not change twice within a second, or set a strong tag.
SPATE_EXPORT Verdict evaluate(Method method, const Conditions& conditions,
                              const Representation& present, std::chrono::sys_seconds now);

}  // namespace spate::http
