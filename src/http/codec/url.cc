#include "spate/http/url.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>

#include "base/hex.h"
#include "http/codec/host.h"
#include "http/codec/syntax.h"
#include "http/codec/uri_chars.h"

namespace spate::http {

// The components of RFC 3986 §3. A null view is an absent one.
struct Url::Parts {
  std::string_view scheme = {};
  std::string_view authority = {};
  std::string_view path = {};
  std::string_view query = {};
  std::string_view fragment = {};

  static bool has(std::string_view part) { return part.data() != nullptr; }
};

namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

std::unexpected<std::error_code> url_failed(int error) {
  return std::unexpected(system_error(error));
}

std::uint16_t port_of_scheme(std::string_view scheme) {
  if (scheme == "http" || scheme == "ws") return 80;
  return scheme == "https" || scheme == "wss" ? 443 : 0;
}

// Truncates `text` at `at`, and returns the text after that byte.
std::string_view cut_off(std::string_view& text, std::size_t at) {
  if (at == kNowhere) return {};
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

// Returns the size of the scheme and its colon; zero without one.
std::size_t size_of_scheme(std::string_view text) {
  const std::size_t size = span_of(text, kSchemeByte);
  const bool has_one =
      size > 0 && is_of(text.front(), kUriAlpha) && text.substr(size).starts_with(':');
  return has_one ? size + 1 : 0;
}

void append_lower(std::string& target, std::string_view text) {
  for (const char c : text) target += lower(c);
}

void append_escape(std::string& target, char c) {
  target += '%';
  append_hex(target, static_cast<unsigned char>(c), kUpperHexDigits);
}

// Appends `text`, and encodes characters that RFC 3986 does not allow; `signs` are allowed in
// addition to pchar.
void append_clean(std::string& target, std::string_view text, std::string_view signs) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool stays = is_of(c, kUnreserved | kSubDelims) || signs.find(c) != kNowhere ||
                       (c == '%' && is_escape(text, i));
    stays ? target.push_back(c) : append_escape(target, c);
  }
}

// Removes the last segment and its slash.
void drop_segment(std::string& path, std::size_t root) {
  const std::size_t slash = path.rfind('/');
  path.resize(slash == kNowhere || slash < root ? root : slash);
}

// Appends a path without its dot segments (RFC 3986 §5.2.4). The result begins with a slash.
void append_without_dots(std::string& target, std::string_view path) {
  const std::size_t root = target.size();
  if (path.starts_with('/')) path.remove_prefix(1);
  for (;;) {
    const std::size_t size = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, size);
    const bool is_last = size == path.size();
    if (segment == "..") drop_segment(target, root);
    if (segment != "." && segment != "..")
      append_clean(target.append("/"), segment, ":@");
    else if (is_last)
      target += '/';
    if (is_last) return;
    path.remove_prefix(size + 1);
  }
}

// Splits a reference as in RFC 3986 §3. Path and authority are not validated.
template <class Parts>
Parts split_reference(std::string_view text) {
  Parts parts;
  parts.fragment = cut_off(text, text.find('#'));
  parts.query = cut_off(text, text.find('?'));
  if (const std::size_t size = size_of_scheme(text)) {
    parts.scheme = text.substr(0, size - 1);
    text.remove_prefix(size);
  }
  if (text.starts_with("//")) {
    const std::size_t slash = std::min(text.find('/', 2), text.size());
    parts.authority = text.substr(2, slash - 2);
    text.remove_prefix(slash);
  }
  parts.path = text;
  return parts;
}

int check_url_text(std::string_view text) {
  if (text.size() > kMostUrl) return ENAMETOOLONG;
  return text.find('\t') != kNowhere || has_control(text) ? EINVAL : 0;
}

int check_url_host(std::string_view authority) {
  const std::string_view host = authority.substr(0, authority.rfind(':'));
  return host.size() > kMostHost && authority.find('@') == kNowhere ? ENAMETOOLONG : EINVAL;
}

}  // namespace

// Makes a Url of absolute `parts`.
Result<Url> Url::make(const Parts& parts) {
  const auto host = parse_host(parts.authority);
  if (!host) return url_failed(check_url_host(parts.authority));
  if (host->host.empty()) return url_failed(EINVAL);
  Url url;
  append_lower(url.text_, parts.scheme);
  const std::uint16_t usual = port_of_scheme(url.text_);
  url.port_ = host->port.value_or(usual);
  url.host_ = static_cast<std::uint32_t>(url.text_.append("://").size());
  append_lower(url.text_, host->host);
  url.host_end_ = static_cast<std::uint32_t>(url.text_.size());
  if (host->port && url.port_ != usual) url.text_.append(":").append(std::to_string(url.port_));
  url.path_ = static_cast<std::uint32_t>(url.text_.size());
  append_without_dots(url.text_, parts.path);
  url.path_end_ = static_cast<std::uint32_t>(url.text_.size());
  if (Parts::has(parts.query)) append_clean(url.text_.append("?"), parts.query, ":@/?");
  url.query_end_ = static_cast<std::uint32_t>(url.text_.size());
  if (Parts::has(parts.fragment)) append_clean(url.text_.append("#"), parts.fragment, ":@/?");
  if (url.text_.size() > kMostUrl) return url_failed(ENAMETOOLONG);
  return url;
}

Result<Url> Url::parse(std::string_view text) {
  if (const int error = check_url_text(text)) return url_failed(error);
  const Parts parts = split_reference<Parts>(text);
  if (!Parts::has(parts.scheme) || !Parts::has(parts.authority)) return url_failed(EINVAL);
  return make(parts);
}

// Resolves as in RFC 3986 §5.2.2. `path` stores a merged path.
Url::Parts Url::resolved(const Url& base, const Parts& reference, std::string& path) {
  Parts parts = reference;
  parts.scheme = base.scheme();
  if (Parts::has(reference.authority)) return parts;
  parts.authority = base.authority();
  if (reference.path.empty()) {
    parts.path = base.path();
    if (!Parts::has(reference.query) && base.has_query()) parts.query = base.query();
  } else if (!reference.path.starts_with('/')) {
    path = base.path().substr(0, base.path().rfind('/') + 1);
    parts.path = path.append(reference.path);
  }
  return parts;
}

Result<Url> Url::resolve(std::string_view reference) const {
  if (const int error = check_url_text(reference)) return url_failed(error);
  const Parts parts = split_reference<Parts>(reference);
  if (Parts::has(parts.scheme)) return parse(reference);
  std::string path;
  return make(resolved(*this, parts, path));
}

std::string_view Url::host_name() const {
  const std::string_view name = host();
  return name.starts_with('[') ? name.substr(1, name.size() - 2) : name;
}

bool Url::is_secure() const { return scheme() == "https" || scheme() == "wss"; }

bool Url::has_origin_of(const Url& other) const {
  return scheme() == other.scheme() && host() == other.host() && port() == other.port();
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text)
    is_of(c, kUnreserved) ? encoded.push_back(c) : append_escape(encoded, c);
  return encoded;
}

std::string percent_encode_path(std::string_view path) {
  std::string encoded;
  for (const char c : path)
    is_of(c, kUnreserved) || c == '/' ? encoded.push_back(c) : append_escape(encoded, c);
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (!is_escape(text, i)) return {};
      decoded += escaped_byte(text, i);
      i += 2;
    }
  }
  return decoded;
}

std::optional<std::string> normal_path(std::string_view path) {
  if (!path.starts_with('/')) return {};
  std::string normal;
  bool ends_in_slash = true;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t size = std::min(path.find('/'), path.size());
    const auto segment = percent_decode(path.substr(0, size));
    path.remove_prefix(size);
    if (!segment || segment->find('/') != kNowhere || segment->find('\0') != kNowhere) return {};
    if (segment == ".." && normal.empty()) return {};
    if (segment == "..") drop_segment(normal, 0);
    ends_in_slash = segment->empty() || segment == "." || segment == "..";
    if (!ends_in_slash) normal.append("/").append(*segment);
  }
  if (ends_in_slash) normal += '/';
  return normal;
}

}  // namespace spate::http
