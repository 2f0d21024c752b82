#include <algorithm>

#include "http/codec/host.h"
#include "http/codec/syntax.h"
#include "spate/http/cookie.h"

namespace spate::http {

namespace {

using std::chrono::sys_seconds;

constexpr std::string_view kBetweenCookies = "; ";

// RFC 6265 §5.1.3: equal, or a subdomain.
bool is_in_domain(std::string_view host, std::string_view domain) {
  if (host == domain) return true;
  if (!host.ends_with(domain) || is_ipv4(host) || host.starts_with('[')) return false;
  return host[host.size() - domain.size() - 1] == '.';
}

// RFC 6265 §5.1.4.
bool is_below_path(std::string_view path, std::string_view cookie_path) {
  if (!path.starts_with(cookie_path)) return false;
  return path.size() == cookie_path.size() || cookie_path.ends_with('/') ||
         path[cookie_path.size()] == '/';
}

std::string_view directory_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string in_lower_case(std::string_view text) {
  std::string made;
  for (const char c : text) made += lower(c);
  return made;
}

// True for more than one label (a single one is a top-level domain), without a trailing dot.
bool has_labels(std::string_view domain) {
  return domain.contains('.') && !domain.starts_with('.') && !domain.ends_with('.');
}

sys_seconds expiry_of(const SetCookie& cookie, sys_seconds now) {
  if (!cookie.max_age) return cookie.expires.value_or(sys_seconds::max());
  if (cookie.max_age->count() <= 0) return sys_seconds::min();
  const bool is_beyond = *cookie.max_age > sys_seconds::max() - now;
  return is_beyond ? sys_seconds::max() : now + *cookie.max_age;
}

bool breaks_prefix_rules(const Url& url, const SetCookie& cookie) {
  const auto begins_with = [&cookie](std::string_view prefix) {
    return equal_ignoring_case(cookie.name.substr(0, prefix.size()), prefix);
  };
  if (begins_with("__Secure-")) return !cookie.is_secure || !url.is_secure();
  if (!begins_with("__Host-")) return false;
  return !cookie.is_secure || !url.is_secure() || !cookie.domain.empty() || cookie.path != "/";
}

}  // namespace

bool CookieJar::Stored::is_for(const Url& url) const {
  if (is_secure && !url.is_secure()) return false;
  const bool is_host = is_host_only ? url.host() == domain : is_in_domain(url.host(), domain);
  return is_host && is_below_path(url.path(), path);
}

bool CookieJar::Stored::is_same(const Stored& other) const {
  return name == other.name && domain == other.domain && path == other.path &&
         is_host_only == other.is_host_only;
}

bool CookieJar::may_store(const Url& url, const SetCookie& set, const Stored& made) const {
  if (!made.is_host_only && (!has_labels(made.domain) || !is_in_domain(url.host(), made.domain)))
    return false;
  if (breaks_prefix_rules(url, set)) return false;
  if (url.is_secure()) return true;
  if (set.is_secure) return false;
  return std::ranges::none_of(cookies_, [&made](const Stored& known) {
    return known.is_secure && known.name == made.name && is_below_path(made.path, known.path) &&
           (is_in_domain(known.domain, made.domain) || is_in_domain(made.domain, known.domain));
  });
}

bool CookieJar::store(const Url& url, std::string_view field, sys_seconds now) {
  const auto set = parse_set_cookie(field);
  if (!set) return false;
  const std::string domain = in_lower_case(set->domain);
  const bool is_host_only = domain.empty() || (domain == url.host() && !has_labels(domain));
  ++operations_;
  Stored made{.name = std::string(set->name),
              .value = std::string(set->value),
              .domain = domain.empty() ? std::string(url.host()) : domain,
              .path = std::string(set->path.empty() ? directory_of(url.path()) : set->path),
              .expires = expiry_of(*set, now),
              .created = operations_,
              .used = operations_,
              .is_host_only = is_host_only,
              .is_secure = set->is_secure};
  if (!may_store(url, *set, made)) return false;
  remove_expired(now);
  const auto known =
      std::ranges::find_if(cookies_, [&made](const Stored& other) { return made.is_same(other); });
  if (known != cookies_.end()) {
    made.created = known->created;
    cookies_.erase(known);
  }
  if (made.expires <= now) return true;
  cookies_.push_back(std::move(made));
  keep_limits(cookies_.back().domain);
  return true;
}

// Returns the matching cookies in the order of RFC 6265 §5.4.
std::vector<CookieJar::Stored*> CookieJar::cookies_for(const Url& url, sys_seconds now) {
  std::vector<Stored*> found;
  for (Stored& cookie : cookies_) {
    if (cookie.expires > now && cookie.is_for(url)) found.push_back(&cookie);
  }
  std::ranges::sort(found, [](const Stored* a, const Stored* b) {
    if (a->path.size() != b->path.size()) return a->path.size() > b->path.size();
    return a->created < b->created;
  });
  return found;
}

std::string CookieJar::header(const Url& url, sys_seconds now) {
  ++operations_;
  const std::vector<Stored*> found = cookies_for(url, now);
  std::size_t room = limits_.header;
  for (const bool is_secure : {true, false}) {
    for (Stored* cookie : found) {
      const std::size_t size = cookie->size() + kBetweenCookies.size();
      if (cookie->is_secure != is_secure || size > room + kBetweenCookies.size()) continue;
      room -= std::min(room, size);
      cookie->used = operations_;
    }
  }
  std::string text;
  for (const Stored* cookie : found) {
    if (cookie->used != operations_) continue;
    if (!text.empty()) text += kBetweenCookies;
    text.append(cookie->name).append("=").append(cookie->value);
  }
  return text;
}

void CookieJar::remove_expired(sys_seconds now) {
  std::erase_if(cookies_, [now](const Stored& cookie) { return cookie.expires <= now; });
}

void CookieJar::keep_limits(const std::string& domain) {
  const std::string of_one = domain;
  const auto count =
      static_cast<std::size_t>(std::ranges::count(cookies_, of_one, &Stored::domain));
  if (count > limits_.per_domain) remove_oldest(&of_one);
  if (cookies_.size() > limits_.total) remove_oldest(nullptr);
}

// Removes from one domain, or from all.
void CookieJar::remove_oldest(const std::string* domain) {
  auto oldest = cookies_.end();
  for (auto cookie = cookies_.begin(); cookie != cookies_.end(); ++cookie) {
    if (domain != nullptr && cookie->domain != *domain) continue;
    if (oldest == cookies_.end() || goes_before(*cookie, *oldest)) oldest = cookie;
  }
  cookies_.erase(oldest);
}

bool CookieJar::goes_before(const Stored& a, const Stored& b) {
  return a.is_secure != b.is_secure ? b.is_secure : a.used < b.used;
}

}  // namespace spate::http
