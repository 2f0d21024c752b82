// Cookies (RFC 6265): what a request brings, what an answer sets, and the jar of a client.
//
// Cookies and SetCookie are views; they keep no text. A CookieJar owns what it stores. One thread
// at a time.
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

// Bytes of a name and its value; bytes of an attribute. As browsers have them.
inline constexpr std::size_t kMostCookie = 4096;
inline constexpr std::size_t kMostCookieAttribute = 1024;

// The pairs of a Cookie field:
//
//   for (Cookies cookies(value); cookies.next();) use(cookies.name(), cookies.value());
//
// A value in quotes keeps them. What has no name or no = is passed over.
class SPATE_EXPORT Cookies {
 public:
  // `field` must outlive the Cookies.
  explicit Cookies(std::string_view field) : rest_(field) {}

  // Goes on to the next pair, at first the first. False at the end.
  bool next();
  // Views into the field.
  std::string_view name() const { return name_; }
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view name_;
  std::string_view value_;
};

// The value of the first cookie of that name; names are case-sensitive.
SPATE_EXPORT std::optional<std::string_view> cookie_value(std::string_view field,
                                                          std::string_view name);

enum class SameSite : std::uint8_t { unset, none, lax, strict };

// One Set-Cookie field.
struct SetCookie {
  std::string_view name;
  std::string_view value = {};
  std::string_view domain = {};  // Empty: only the host that sets it. A dot in front is dropped.
  std::string_view path = {};    // Empty: the directory of the request's path.
  std::optional<std::chrono::sys_seconds> expires = {};
  std::optional<std::chrono::seconds> max_age = {};  // Goes before `expires`. 0 or less: at once.
  bool is_secure = false;                            // Over TLS only.
  bool is_http_only = false;                         // Not for scripts.
  SameSite same_site = SameSite::unset;
};

// The value of a Set-Cookie field. Errors: EINVAL for a name that is no token; a value with
// controls, blanks, quotes but around it, commas, semicolons, backslashes or bytes above 126
// (percent_encode() it); a domain that is no host; a path that does not begin with a slash, or has
// controls or semicolons; what browsers refuse: SameSite=None without Secure, a name that begins
// with __Secure- without Secure, or with __Host- without Secure, with a domain, or without the path
// "/". EMSGSIZE above kMostCookie bytes of name and value, or kMostCookieAttribute of the path.
SPATE_EXPORT Result<std::string> format_set_cookie(const SetCookie& cookie);

// What user agents make of a Set-Cookie field (RFC 6265 §5.2): unknown attributes and bad dates are
// ignored, as are attributes above kMostCookieAttribute; the last attribute of a name counts. None
// without a name or an =, with controls, or above kMostCookie.
SPATE_EXPORT std::optional<SetCookie> parse_set_cookie(std::string_view field);

// The cookies of a client.
//
// A jar knows no list of public suffixes: a server of shop.co.uk may set cookies for co.uk. So use
// one jar for servers that may know of each other. A domain of a single label ("com") is refused.
class SPATE_EXPORT CookieJar {
 public:
  struct Limits {
    std::size_t per_domain = 50;
    std::size_t total = 3000;
  };

  CookieJar() : CookieJar(Limits()) {}
  explicit CookieJar(const Limits& limits) : limits_(limits) {}

  // Takes the value of one Set-Cookie field of an answer from `url`. False if it is refused: it is
  // no cookie, is for a domain that is not that of the host, is Secure and does not come over TLS,
  // would replace one that is, or breaks the rule of its prefix (__Host-, __Secure-). Above a
  // limit, the cookie goes that has not been sent for the longest time.
  bool store(const Url& url, std::string_view field, std::chrono::sys_seconds now);
  // The value of Cookie for a request to `url`. Empty: send none.
  std::string header(const Url& url, std::chrono::sys_seconds now);

  // Those that have not expired, as far as is known.
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
    std::uint64_t created;  // Both count operations.
    std::uint64_t used;
    bool is_host_only;
    bool is_secure;

    bool is_for(const Url& url) const;
    bool is_same(const Stored& other) const;
  };

  bool may_store(const Url& url, const SetCookie& set, const Stored& made) const;
  void keep_limits(const std::string& domain);
  void remove_oldest(const std::string* domain);

  Limits limits_;
  std::uint64_t operations_ = 0;
  std::vector<Stored> cookies_;
};

}  // namespace spate::http
