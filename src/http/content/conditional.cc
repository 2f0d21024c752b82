#include "spate/http/conditional.h"

#include <algorithm>

#include "http/codec/syntax.h"
#include "spate/http/date.h"

namespace spate::http {

namespace {

using std::chrono::sys_seconds;
using EqualTags = bool (*)(EntityTag, EntityTag);

bool is_tag_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte != '"' && byte != 0x7f;
}

// Returns the size of the tag at the front; zero if invalid. A backslash has no special meaning.
std::size_t size_of_tag(std::string_view text) {
  const std::size_t start = text.starts_with("W/") ? 2 : 0;
  if (!text.substr(start).starts_with('"')) return 0;
  std::size_t at = start + 1;
  while (at < text.size() && is_tag_byte(text[at])) ++at;
  return at < text.size() && text[at] == '"' ? at + 1 : 0;
}

EntityTag tag_of(std::string_view text) {
  const bool is_weak = text.starts_with("W/");
  return {is_weak ? text.substr(2) : text, is_weak};
}

// Returns whether a list of tags, or "*", matches the representation.
bool matches_any(std::string_view list, const Representation& present, EqualTags equal) {
  if (!present.exists) return false;
  list = trimmed(list);
  if (list == "*") return true;
  const auto current = parse_entity_tag(present.etag);
  while (current && !list.empty()) {
    const std::size_t size = size_of_tag(list);
    if (size > 0 && equal(tag_of(list.substr(0, size)), *current)) return true;
    list = trimmed(list.substr(size));
    if (!list.empty() && list.front() != ',') return false;
    list = trimmed(list.substr(std::min<std::size_t>(1, list.size())));
  }
  return false;
}

// Returns the date of a condition, if it is valid and applicable.
std::optional<sys_seconds> date_of(std::optional<std::string_view> value,
                                   const Representation& present, sys_seconds now) {
  if (!value || !present.exists || !present.last_modified) return {};
  return parse_date(*value, now);
}

bool if_range_holds(std::string_view value, const Representation& present, sys_seconds now) {
  const auto current = parse_entity_tag(present.etag);
  if (const auto tag = parse_entity_tag(value)) return current && is_strongly_equal(*tag, *current);
  const auto date = date_of(value, present, now);
  return date && *date == *present.last_modified;
}

// RFC 9110 §13.2.2, steps 1 and 2.
bool is_as_expected(const Conditions& conditions, const Representation& present, sys_seconds now) {
  if (conditions.if_match) return matches_any(*conditions.if_match, present, is_strongly_equal);
  const auto date = date_of(conditions.if_unmodified_since, present, now);
  return !date || *present.last_modified <= *date;
}

// Steps 3 and 4.
bool is_news(bool is_read, const Conditions& conditions, const Representation& present,
             sys_seconds now) {
  if (conditions.if_none_match)
    return !matches_any(*conditions.if_none_match, present, is_weakly_equal);
  if (!is_read) return true;
  const auto date = date_of(conditions.if_modified_since, present, now);
  return !date || *present.last_modified > *date;
}

}  // namespace

std::optional<EntityTag> parse_entity_tag(std::string_view text) {
  if (text.empty() || size_of_tag(text) != text.size()) return {};
  return tag_of(text);
}

bool is_strongly_equal(EntityTag a, EntityTag b) {
  return !a.is_weak && !b.is_weak && a.opaque == b.opaque;
}

bool is_weakly_equal(EntityTag a, EntityTag b) { return a.opaque == b.opaque; }

Verdict evaluate(Method method, const Conditions& conditions, const Representation& present,
                 sys_seconds now) {
  const bool is_read = method == Method::get || method == Method::head;
  if (!is_as_expected(conditions, present, now)) return Verdict::precondition_failed;
  if (!is_news(is_read, conditions, present, now))
    return is_read ? Verdict::not_modified : Verdict::precondition_failed;
  if (method == Method::get && conditions.if_range &&
      !if_range_holds(*conditions.if_range, present, now))
    return Verdict::ignore_range;
  return Verdict::proceed;
}

}  // namespace spate::http
