// Cookies (RFC 6265): those of a request, those that a response sets, and the jar of a client.
//
// Cookies and SetCookie are views; they keep no text. A CookieJar owns the cookies it stores. One
// thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/url.h"

namespace spate::http {

// Limits in bytes, as in browsers: of a name and its value, and of an attribute.
inline constexpr std::size_t kMostCookie = 4096;
inline constexpr std::size_t kMostCookieAttribute = 1024;

// The pairs of a Cookie field:
//
//   for (Cookies cookies(value); cookies.next();) use(cookies.name(), cookies.value());
//
// A quoted value keeps its quotes. Elements without a name or without '=' are skipped.
class SPATE_EXPORT Cookies {
 public:
  // `field` must outlive the Cookies.
  explicit Cookies(std::string_view field) : rest_(field) {}

  // Moves to the next pair, initially the first. False at the end.
  bool next();
  // Views into the field.
  std::string_view name() const { return name_; }
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view name_;
  std::string_view value_;
};

// Returns the value of the first cookie of that name; names are case-sensitive.
SPATE_EXPORT std::optional<std::string_view> cookie_value(std::string_view field,
                                                          std::string_view name);

enum class SameSite : std::uint8_t { unset, none, lax, strict };

// One Set-Cookie field.
struct SetCookie {
  std::string_view name;
  std::string_view value = {};
  std::string_view domain = {};  // Empty: only the host that sets it. A leading dot is dropped.
  std::string_view path = {};    // Empty: the directory of the request's path.
  std::optional<std::chrono::sys_seconds> expires = {};
  std::optional<std::chrono::seconds> max_age = {};  // Takes precedence over `expires`. 0 or less
                                                     // expires at once.
  bool is_secure = false;                            // Sent over TLS only.
  bool is_http_only = false;                         // Hidden from scripts.
  SameSite same_site = SameSite::unset;
};

// Returns the value of a Set-Cookie field. Errors:
// - EINVAL for a name that is not a token;
// - EINVAL for a value with controls, blanks, inner quotes, commas, semicolons, backslashes or
//   bytes above 126 (percent_encode() it);
// - EINVAL for a domain that is not a host or has an empty label;
// - EINVAL for a path that does not begin with a slash, or has controls or semicolons;
// - EINVAL for combinations that browsers refuse: SameSite=None or the prefix __Secure- without
//   Secure; the prefix __Host- without Secure, with a domain, or without the path "/";
// - EMSGSIZE for more than kMostCookie bytes of name and value, or kMostCookieAttribute bytes of
//   path.
SPATE_EXPORT Result<std::string> format_set_cookie(const SetCookie& cookie);

// Parses a Set-Cookie field as user agents do (RFC 6265 §5.2). Unknown attributes, invalid dates
// and attributes above kMostCookieAttribute are ignored; the last attribute of a name wins. Returns
// nullopt for a field without a name or '=', with controls, or above kMostCookie.
SPATE_EXPORT std::optional<SetCookie> parse_set_cookie(std::string_view field);

// The cookies of a client.
//
// A jar has no list of public suffixes: a server of shop.co.uk may set cookies for co.uk. So share
// a jar only among servers that may see each other's cookies. A domain of a single label ("com") is
// refused.
class SPATE_EXPORT CookieJar {
 public:
  struct Limits {
    std::size_t per_domain = 50;
    std::size_t total = 3000;
    std::size_t header = 8 * 1024;  // Bytes returned by header().
  };

  CookieJar() : CookieJar(Limits()) {}
  explicit CookieJar(const Limits& limits) : limits_(limits) {}

  // Stores the value of one Set-Cookie field of a response from `url`. Returns false if it is
  // refused: it is invalid, its domain is not that of the host, it is Secure but was not received
  // over TLS, it would replace a Secure cookie over plain HTTP, or it violates the rule of its
  // prefix (__Host-, __Secure-). Above a limit, the cookie that was not sent for the longest time
  // is removed. Secure cookies are removed only if there are no others, so that plain HTTP cannot
  // evict them (RFC 6265bis §5.7).
  bool store(const Url& url, std::string_view field, std::chrono::sys_seconds now);
  // Returns the value of the Cookie field for a request to `url`. Empty: send none. Cookies beyond
  // Limits::header are omitted; Secure cookies take precedence.
  std::string header(const Url& url, std::chrono::sys_seconds now);

  // Returns the number of stored cookies. Expired ones count until they are removed.
  std::size_t size() const { return cookies_.size(); }
  void remove_expired(std::chrono::sys_seconds now);
  void clear() { cookies_.clear(); }

 private:
  struct Stored {
    std::string name;
    std::string value;
    std::string domain;
    std::string path;
    std::chrono::sys_seconds expires;
    std::uint64_t created;  // `created` and `used` count operations.
    std::uint64_t used;
    bool is_host_only;
    bool is_secure;

    // Returns the size of "name=value".
    std::size_t size() const { return name.size() + 1 + value.size(); }
    bool is_for(const Url& url) const;
    bool is_same(const Stored& other) const;
  };

  bool may_store(const Url& url, const SetCookie& set, const Stored& made) const;
  std::vector<Stored*> cookies_for(const Url& url, std::chrono::sys_seconds now);
  void keep_limits(const std::string& domain);
  void remove_oldest(const std::string* domain);
  static bool goes_before(const Stored& a, const Stored& b);

  Limits limits_;
  std::uint64_t operations_ = 0;
  std::vector<Stored> cookies_;
};

}  // namespace spate::http
