// Url: an absolute URL with a host, as used by clients and in redirects. Percent-encoding, the
// pairs of a query, and the paths of a file server.
//
// A Url is a value, made by parse() or resolve(), and always valid by RFC 3986. Common deviations
// from the RFC are normalized, so two equivalent URLs are often equal. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"

namespace spate::http {

// Bytes of a URL, before and after normalization.
inline constexpr std::size_t kMostUrl = 64 * 1024;

class SPATE_EXPORT Url {
 public:
  // Parses scheme://host:port/path?query#fragment; everything from the port on is optional. Scheme
  // and host become lower-case, the scheme's default port is dropped, dot segments are removed, and
  // an empty path becomes "/". Blanks, bytes above 126, misplaced reserved characters and a '%'
  // that begins no escape are percent-encoded.
  // Errors: ENAMETOOLONG above kMostUrl, or above 255 bytes of host. EINVAL for a relative
  // reference, a scheme without "://", no host, an invalid host or port, controls (also CR, LF, tab
  // and NUL), and userinfo ("user@"), which is mostly used to mislead people.
  static Result<Url> parse(std::string_view text);
  // Resolves a reference relative to this Url, as for Location (RFC 3986 §5.2): another URL, or
  // "//host/path", "/path", "path", "?query", "#fragment", or an empty one. Errors: as parse().
  Result<Url> resolve(std::string_view reference) const;

  std::string_view scheme() const { return part(0, host_ - 3); }
  // Returns a name, an IPv4 address, or an IPv6 address with its brackets.
  std::string_view host() const { return part(host_, host_end_); }
  // Returns the host as a resolver takes it: without brackets.
  std::string_view host_name() const;
  // Returns the port of the URL, or the scheme's default (80 for http and ws, 443 for https and
  // wss), or 0.
  std::uint16_t port() const { return port_; }
  // Returns the value of Host, without a default port.
  std::string_view authority() const { return part(host_, path_); }
  bool is_secure() const;  // https or wss.

  // Returns the path, percent-encoded; begins with a slash.
  std::string_view path() const { return part(path_, path_end_); }
  // Returns the query without the question mark. Empty also if there is no query.
  std::string_view query() const { return behind_sign(path_end_, query_end_); }
  bool has_query() const { return query_end_ > path_end_; }
  // Returns the fragment without the '#'. Empty also if there is no fragment.
  std::string_view fragment() const { return behind_sign(query_end_, text_.size()); }
  bool has_fragment() const { return text_.size() > query_end_; }
  // Returns path and query, as in a request line.
  std::string_view target() const { return part(path_, query_end_); }

  // Returns whether scheme, host and port are equal. Only then may the other URL's credentials be
  // sent to this one.
  bool has_origin_of(const Url& other) const;

  const std::string& to_string() const { return text_; }
  bool operator==(const Url& other) const { return text_ == other.text_; }

 private:
  struct Parts;

  Url() = default;
  static Result<Url> make(const Parts& parts);
  static Parts resolved(const Url& base, const Parts& reference, std::string& path);
  std::string_view part(std::size_t from, std::size_t to) const {
    return std::string_view(text_).substr(from, to - from);
  }
  std::string_view behind_sign(std::size_t from, std::size_t to) const {
    return to > from ? part(from + 1, to) : std::string_view();
  }

  std::string text_;
  std::uint32_t host_ = 0;
  std::uint32_t host_end_ = 0;
  std::uint32_t path_ = 0;
  std::uint32_t path_end_ = 0;
  std::uint32_t query_end_ = 0;
  std::uint16_t port_ = 0;
};

// Encodes all bytes except letters, digits and - . _ ~, for one name or value, or one segment of a
// path.
SPATE_EXPORT std::string percent_encode(std::string_view text);
// As above, but keeps slashes: for a whole path.
SPATE_EXPORT std::string percent_encode_path(std::string_view path);
// Decodes a text. Returns nullopt if a '%' begins no escape. A plus sign is not changed.
SPATE_EXPORT std::optional<std::string> percent_decode(std::string_view text);

// The pairs of a query, or of a body of application/x-www-form-urlencoded:
//
//   for (Query query(text); query.next();) use(query.name(), query.value());
//
// Names and values are decoded: '+' is a blank. A '%' that begins no escape is kept. An element
// without '=' is a name with an empty value; empty elements are skipped. Allocates only for names
// and values that need decoding.
class SPATE_EXPORT Query {
 public:
  // `text` must outlive the Query.
  explicit Query(std::string_view text) : rest_(text) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Moves to the next pair, initially the first. False at the end.
  bool next();
  // Views into the text or the Query, valid until next().
  std::string_view name() const { return name_; }
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view name_;
  std::string_view value_;
  std::string name_room_;
  std::string value_room_;
};

// Returns the value of the first pair of that name.
SPATE_EXPORT std::optional<std::string> query_value(std::string_view query, std::string_view name);

// Returns the path of a request as a path in a tree of files: decoded, without dot segments (also
// percent-encoded ones), and without empty segments. It begins with a slash, and ends with one if
// the path does, or if a dot segment ended it. Returns nullopt for a path that must not be served:
// it does not begin with a slash, has an invalid escape, an escaped slash or NUL, or leaves the
// root by "..".
SPATE_EXPORT std::optional<std::string> normal_path(std::string_view path);

}  // namespace spate::http
