#include "http/codec/target.h"

#include <algorithm>

#include "http/codec/uri_chars.h"

namespace spate::http {

namespace {

using Form = RequestTarget::Form;

// Parses the path and the query up to the end of the text.
bool take_path_and_query(std::string_view text, RequestTarget& target) {
  const std::size_t size = escaped_span_of(text, kPathByte);
  target.path = {text.data(), size};
  if (size == text.size()) return true;
  target.has_query = true;
  target.query = {text.data() + size + 1, text.size() - size - 1};
  return text[size] == '?' && is_all_of(target.query, kQueryByte);
}

std::optional<RequestTarget> parse_origin(std::string_view text) {
  std::optional<RequestTarget> target(std::in_place);
  if (!take_path_and_query(text, *target)) target.reset();
  return target;
}

bool take_authority(std::string_view text, RequestTarget& target) {
  const auto host = parse_host(text);
  if (!host || host->host.empty()) return false;
  target.authority = text;
  target.host = *host;
  return true;
}

// OPTIONS without a path is for the whole server (RFC 9112 §3.2.4).
std::optional<RequestTarget> parse_absolute(std::string_view text, Method method) {
  RequestTarget target{.form = Form::absolute};
  const std::size_t colon = span_of(text, kSchemeByte);
  if (!is_of(text.front(), kUriAlpha) || !text.substr(colon).starts_with("://")) return {};
  target.scheme = text.substr(0, colon);
  text.remove_prefix(colon + 3);
  const std::size_t size = std::min(text.find_first_of("/?"), text.size());
  if (!take_authority(text.substr(0, size), target)) return {};
  if (!take_path_and_query(text.substr(size), target)) return {};
  if (target.path.empty())
    target.path = method == Method::options && !target.has_query ? "*" : "/";
  return target;
}

// CONNECT has no default port (RFC 9110 §9.3.6).
std::optional<RequestTarget> parse_authority(std::string_view text) {
  RequestTarget target{.form = Form::authority};
  if (!take_authority(text, target)) return {};
  if (!target.host.port || *target.host.port == 0) return {};
  return target;
}

}  // namespace

std::optional<RequestTarget> parse_target(std::string_view text, Method method) {
  if (text.empty()) return {};
  if (method == Method::connect) return parse_authority(text);
  if (text.front() == '/') return parse_origin(text);
  if (text != "*") return parse_absolute(text, method);
  if (method != Method::options) return {};
  return RequestTarget{.form = Form::asterisk, .path = text};
}

}  // namespace spate::http
