// Url: an absolute URL with a host, as clients are given and servers redirect to. Percent-encoding,
// the pairs of a query, and paths as a file server needs them.
//
// A Url is a value, made by parse() or resolve(), and always valid by RFC 3986: what users and
// servers commonly write beside it is brought into that form. So two that mean the same are often
// equal. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"

namespace spate::http {

// Bytes of a URL, before and after it is brought into its form.
inline constexpr std::size_t kMostUrl = 64 * 1024;

class SPATE_EXPORT Url {
 public:
  // scheme://host:port/path?query#fragment; from the port on all may be missing. Scheme and host
  // become lower-case, the scheme's own port is dropped, dot segments are removed, an empty path
  // becomes "/". Blanks, bytes above 126, and signs that have no place where they are become
  // escapes, also a % that begins none.
  // Errors: ENAMETOOLONG above kMostUrl, 255 bytes of host. EINVAL for all else: a relative
  // reference, a scheme without "://", no host, a bad host or port, controls (also CR, LF, tab and
  // NUL), userinfo ("user@"), which misleads people more often than it is of use.
  static Result<Url> parse(std::string_view text);
  // What `reference` means in a document at this Url, as Location has it (RFC 3986 §5.2): another
  // URL, or "//host/path", "/path", "path", "?query", "#fragment", or nothing. Errors: as parse().
  Result<Url> resolve(std::string_view reference) const;

  std::string_view scheme() const { return part(0, host_ - 3); }
  // A name, an IPv4 address, or an IPv6 address with its brackets.
  std::string_view host() const { return part(host_, host_end_); }
  // The host as a resolver takes it: without brackets.
  std::string_view host_name() const;
  // That of the URL, or the scheme's (80 for http and ws, 443 for https and wss), or 0.
  std::uint16_t port() const { return port_; }
  // The value of Host: the port is left out where it is the scheme's.
  std::string_view authority() const { return part(host_, path_); }
  bool is_secure() const;  // https or wss.

  // In escapes, as it is sent; begins with a slash.
  std::string_view path() const { return part(path_, path_end_); }
  // Without the question mark. Empty also if there is none.
  std::string_view query() const { return behind_sign(path_end_, query_end_); }
  bool has_query() const { return query_end_ > path_end_; }
  // Without the #. Empty also if there is none.
  std::string_view fragment() const { return behind_sign(query_end_, text_.size()); }
  bool has_fragment() const { return text_.size() > query_end_; }
  // Path and query: what a request line says.
  std::string_view target() const { return part(path_, query_end_); }

  // The same scheme, host and port: who may see the other's credentials.
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

// Escapes all but letters, digits and - . _ ~: for one name or value, or one segment of a path.
SPATE_EXPORT std::string percent_encode(std::string_view text);
// The same, but keeps slashes: for a whole path.
SPATE_EXPORT std::string percent_encode_path(std::string_view path);
// None if a % begins no escape. A plus sign remains one.
SPATE_EXPORT std::optional<std::string> percent_decode(std::string_view text);

// The pairs of a query, or of a body of application/x-www-form-urlencoded:
//
//   for (Query query(text); query.next();) use(query.name(), query.value());
//
// Decoded: + is a blank. A % that begins no escape is itself. What has no = is a name with an empty
// value; empty pairs are passed over. Allocates only for what has something to decode.
class SPATE_EXPORT Query {
 public:
  // `text` must outlive the Query.
  explicit Query(std::string_view text) : rest_(text) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Goes on to the next pair, at first the first. False at the end.
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

// The value of the first pair of that name.
SPATE_EXPORT std::optional<std::string> query_value(std::string_view query, std::string_view name);

// The path of a request as one in a tree of files: decoded, without dot segments, also those that
// escapes hide, and without empty ones. Begins with a slash; ends with one as the path does, or
// where a dot segment ended it. None if it is not to be served: it does not begin with a slash, an
// escape is bad, hides a slash or a NUL, or ".." would leave the root.
SPATE_EXPORT std::optional<std::string> normal_path(std::string_view path);

}  // namespace spate::http
