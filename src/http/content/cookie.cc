#include "spate/http/cookie.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>

#include "http/codec/host.h"
#include "http/codec/syntax.h"
#include "http/content/cookie_date.h"
#include "spate/http/date.h"

namespace spate::http {

namespace {

using std::chrono::seconds;

// Splits at the '=', and trims both sides. False without one.
bool split_pair(std::string_view pair, std::string_view& name, std::string_view& value) {
  const std::size_t sign = pair.find('=');
  name = trimmed(pair.substr(0, sign));
  value = sign < pair.size() ? trimmed(pair.substr(sign + 1)) : std::string_view();
  return sign < pair.size();
}

std::string_view take_cookie_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(';'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

bool is_cookie_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 0x7f && byte != '"' && byte != ',' && byte != ';' && byte != '\\';
}

bool is_cookie_value(std::string_view value) {
  if (value.size() > 1 && value.starts_with('"') && value.ends_with('"'))
    value = value.substr(1, value.size() - 2);
  return std::ranges::all_of(value, is_cookie_byte);
}

std::string_view without_leading_dot(std::string_view domain) {
  return domain.starts_with('.') ? domain.substr(1) : domain;
}

// Refuses an empty label: clients remove one leading dot, and ignore the cookie if another follows.
bool is_cookie_domain(std::string_view domain) {
  if (domain.contains(';') || domain.contains("..")) return false;
  const auto host = parse_host(without_leading_dot(domain));
  return host && host->host.size() == without_leading_dot(domain).size() &&
         (domain.empty() || !host->host.empty());
}

bool is_cookie_path(std::string_view path) {
  return path.empty() || (path.starts_with('/') && !has_control(path) && !path.contains(';'));
}

bool keeps_prefix_rules(const SetCookie& cookie) {
  if (cookie.name.starts_with("__Secure-")) return cookie.is_secure;
  if (!cookie.name.starts_with("__Host-")) return true;
  return cookie.is_secure && cookie.domain.empty() && cookie.path == "/";
}

int check_set_cookie(const SetCookie& cookie) {
  if (cookie.name.size() + cookie.value.size() > kMostCookie) return EMSGSIZE;
  if (cookie.path.size() > kMostCookieAttribute) return EMSGSIZE;
  if (!is_token(cookie.name) || !is_cookie_value(cookie.value)) return EINVAL;
  if (!is_cookie_domain(cookie.domain) || !is_cookie_path(cookie.path)) return EINVAL;
  if (cookie.same_site == SameSite::none && !cookie.is_secure) return EINVAL;
  return keeps_prefix_rules(cookie) ? 0 : EINVAL;
}

std::string_view name_of_same_site(SameSite same_site) {
  switch (same_site) {
    case SameSite::none:
      return "; SameSite=None";
    case SameSite::lax:
      return "; SameSite=Lax";
    case SameSite::strict:
      return "; SameSite=Strict";
    case SameSite::unset:
      break;
  }
  return {};
}

SameSite same_site_of(std::string_view value) {
  if (equal_ignoring_case(value, "none")) return SameSite::none;
  if (equal_ignoring_case(value, "lax")) return SameSite::lax;
  return equal_ignoring_case(value, "strict") ? SameSite::strict : SameSite::unset;
}

// Parses RFC 6265 §5.2.2; nullopt if it must be ignored.
std::optional<seconds> max_age_of(std::string_view value) {
  const bool is_negative = value.starts_with('-');
  const auto number = parse_number(value.substr(is_negative ? 1 : 0), Overflow::saturates);
  if (!number) return {};
  const auto most = static_cast<std::uint64_t>(seconds::max().count());
  return is_negative ? seconds(0) : seconds(static_cast<std::int64_t>(std::min(*number, most)));
}

void take_cookie_attribute(std::string_view part, SetCookie& cookie) {
  std::string_view name;
  std::string_view value;
  split_pair(part, name, value);
  if (value.size() > kMostCookieAttribute) return;
  if (equal_ignoring_case(name, "expires")) {
    if (const auto date = parse_cookie_date(value)) cookie.expires = date;
  } else if (equal_ignoring_case(name, "max-age")) {
    if (const auto age = max_age_of(value)) cookie.max_age = age;
  } else if (equal_ignoring_case(name, "domain")) {
    cookie.domain = without_leading_dot(value);
  } else if (equal_ignoring_case(name, "path")) {
    cookie.path = value.starts_with('/') ? value : std::string_view();
  } else if (equal_ignoring_case(name, "samesite")) {
    cookie.same_site = same_site_of(value);
  } else if (equal_ignoring_case(name, "secure")) {
    cookie.is_secure = true;
  } else if (equal_ignoring_case(name, "httponly")) {
    cookie.is_http_only = true;
  }
}

}  // namespace

bool Cookies::next() {
  while (!rest_.empty()) {
    const bool has_sign = split_pair(take_cookie_part(rest_), name_, value_);
    if (has_sign && !name_.empty()) return true;
  }
  return false;
}

std::optional<std::string_view> cookie_value(std::string_view field, std::string_view name) {
  for (Cookies cookies(field); cookies.next();) {
    if (cookies.name() == name) return cookies.value();
  }
  return {};
}

Result<std::string> format_set_cookie(const SetCookie& cookie) {
  if (const int error = check_set_cookie(cookie)) return std::unexpected(system_error(error));
  std::string text(cookie.name);
  text.append("=").append(cookie.value);
  if (cookie.expires) {
    char date[kDateSize];
    text.append("; Expires=").append(format_date(*cookie.expires, date));
  }
  if (cookie.max_age) text.append("; Max-Age=").append(std::to_string(cookie.max_age->count()));
  const std::string_view domain = without_leading_dot(cookie.domain);
  if (!domain.empty()) text.append("; Domain=").append(domain);
  if (!cookie.path.empty()) text.append("; Path=").append(cookie.path);
  if (cookie.is_secure) text.append("; Secure");
  if (cookie.is_http_only) text.append("; HttpOnly");
  return text.append(name_of_same_site(cookie.same_site));
}

std::optional<SetCookie> parse_set_cookie(std::string_view field) {
  SetCookie cookie;
  if (has_control(field)) return {};
  if (!split_pair(take_cookie_part(field), cookie.name, cookie.value)) return {};
  if (cookie.name.empty()) return {};
  if (cookie.name.size() + cookie.value.size() > kMostCookie) return {};
  while (!field.empty()) take_cookie_attribute(take_cookie_part(field), cookie);
  return cookie;
}

}  // namespace spate::http
