// URIs: their parts, each of which can be set separately, and the joined text.
//
// Semantics: event2/http.h and RFC 3986; probed: the deviations (a future address may be empty, its
// "v" is small, a user without a host is not written, a port that is set may be any number).
//
// spate::http has its own URLs, which are those of HTTP. Here any URI is one.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "compat/libevent/http/characters.h"
#include "compat/libevent/http_api.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using std::string_view;

struct evhttp_uri {
  unsigned flags;
  int port;  // -1 if it is missing.
  char* scheme;
  char* userinfo;
  char* host;
  char* path;
  char* query;
  char* fragment;
};

namespace {

using namespace spate::libevent;

constexpr int kNoPort = -1;
constexpr int kPortMost = 65535;       // For a parsed port. evhttp_uri_set_port() accepts any.
constexpr std::size_t kIpv6Most = 63;  // For the characters between the brackets.
constexpr string_view kSubDelimiters = "!$&'()*+,;=";

// ---- the grammar of each part

// Returns true if the text has only unreserved characters, sub-delimiters, encoded ones and those
// of `also`.
bool consists_of(string_view text, string_view also) {
  while (!text.empty()) {
    const char c = text.front();
    if (begins_encoded(text)) {
      text.remove_prefix(3);
    } else if (is_unreserved(c) || is_one_of(c, kSubDelimiters) || is_one_of(c, also)) {
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

// If the program allows it, the other parts of a URI may have any characters that do not end them.
bool is_rest(string_view text, string_view also, string_view ends, const evhttp_uri* uri) {
  if ((uri->flags & EVHTTP_URI_NONCONFORMANT) == 0) return consists_of(text, also);
  return text.find_first_of(ends) == string_view::npos;
}

bool is_scheme(string_view text, const evhttp_uri*) {
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c) && !is_one_of(c, "+-.")) return false;
  }
  return true;
}

bool is_userinfo(string_view text, const evhttp_uri*) { return consists_of(text, ":"); }

bool is_ipv6(string_view text) {
  char copy[kIpv6Most + 1];
  in6_addr address;
  if (text.size() > kIpv6Most) return false;
  copy[text.copy(copy, kIpv6Most)] = '\0';
  return evutil_inet_pton(AF_INET6, copy, &address) == 1;
}

// A future address, after its "v".
bool is_future_address(string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == 0 || dot == string_view::npos) return false;
  for (const char c : text.substr(0, dot)) {
    if (!is_hex_digit(c)) return false;
  }
  const string_view rest = text.substr(dot + 1);
  return !is_one_of('%', rest) && consists_of(rest, ":");
}

bool is_host(string_view text, const evhttp_uri*) {
  if (!text.starts_with('[')) return consists_of(text, "");
  if (!text.ends_with(']')) return false;
  const string_view inside = text.substr(1, text.size() - 2);
  return inside.starts_with('v') ? is_future_address(inside.substr(1)) : is_ipv6(inside);
}

bool is_path(string_view text, const evhttp_uri* uri) { return is_rest(text, ":@/", "?#", uri); }

bool is_query(string_view text, const evhttp_uri* uri) { return is_rest(text, ":@/?", "#", uri); }

bool is_fragment(string_view text, const evhttp_uri* uri) { return is_rest(text, ":@/?", "", uri); }

// ---- setting

using Part = char* evhttp_uri::*;
using Check = bool (*)(string_view text, const evhttp_uri* uri);

// The copy is made first: the text may be in the part itself.
int set(evhttp_uri* uri, Part part, Check check, const char* text, const char* function) {
  if (text != nullptr && !check(text, uri)) return -1;
  char* copy = text != nullptr ? duplicate(text) : nullptr;
  release(uri->*part);
  uri->*part = copy;
  if (copy == nullptr && text != nullptr) {
    warn("%s: strdup()", function);
    return -1;
  }
  return 0;
}

// As above, for a part that is not set yet, from the text of a URI.
bool take(evhttp_uri* uri, Part part, Check check, string_view text) {
  if (!check(text, uri)) return false;
  uri->*part = duplicate(text);
  if (uri->*part == nullptr) warn("evhttp_uri_parse_with_flags: strdup");
  return uri->*part != nullptr;
}

// ---- parsing: each function removes its part from the front of the text

string_view take_front(string_view& text, std::size_t size) {
  const string_view front = text.substr(0, size);
  text.remove_prefix(front.size());
  return front;
}

bool take_scheme(evhttp_uri* uri, string_view& text) {
  const std::size_t colon = text.find(':');
  if (colon == string_view::npos || !is_scheme(text.substr(0, colon), uri)) return true;
  const string_view scheme = take_front(text, colon);
  text.remove_prefix(1);
  return take(uri, &evhttp_uri::scheme, is_scheme, scheme);
}

// Removes the port from the end of an authority; an empty number is no port.
bool take_port(evhttp_uri* uri, string_view& authority) {
  const std::size_t colon = authority.find_last_not_of("0123456789");
  if (colon == string_view::npos || authority[colon] != ':') return true;
  int port = kNoPort;
  for (const char c : authority.substr(colon + 1)) {
    port = (port == kNoPort ? 0 : port * 10) + (c - '0');
    if (port > kPortMost) return false;
  }
  uri->port = port;
  authority = authority.substr(0, colon);
  return true;
}

bool take_authority(evhttp_uri* uri, string_view& text) {
  if (!text.starts_with("//")) return true;
  text.remove_prefix(2);
  string_view authority = take_front(text, text.find_first_of("/?#"));
  const std::size_t at = authority.find('@');
  if (at != string_view::npos) {
    const string_view userinfo = take_front(authority, at);
    authority.remove_prefix(1);
    if (!take(uri, &evhttp_uri::userinfo, is_userinfo, userinfo)) return false;
  }
  return take_port(uri, authority) && take(uri, &evhttp_uri::host, is_host, authority);
}

bool take_path(evhttp_uri* uri, string_view& text) {
  const string_view path = take_front(text, text.find_first_of("?#"));
  // Otherwise its first segment would have been parsed as a scheme.
  const bool has_colon = is_one_of(':', path.substr(0, path.find('/')));
  if (has_colon && uri->scheme == nullptr) return false;
  return take(uri, &evhttp_uri::path, is_path, path);
}

bool take_query(evhttp_uri* uri, string_view& text) {
  if (!text.starts_with('?')) return true;
  return take(uri, &evhttp_uri::query, is_query, take_front(text, text.find('#')).substr(1));
}

bool take_fragment(evhttp_uri* uri, string_view text) {
  return text.empty() || take(uri, &evhttp_uri::fragment, is_fragment, text.substr(1));
}

bool parse(evhttp_uri* uri, string_view text) {
  return take_scheme(uri, text) && take_authority(uri, text) && take_path(uri, text) &&
         take_query(uri, text) && take_fragment(uri, text);
}

// ---- joining

// The pieces of a URI's text, at most two for each part.
struct Pieces {
  string_view at[12];
  int count = 0;

  void add(string_view piece) { at[count++] = piece; }
  // Adds a part with its delimiters, if the part is set.
  void add(string_view before, const char* part, string_view after = {}) {
    if (part == nullptr) return;
    if (!before.empty()) add(before);
    add(part);
    if (!after.empty()) add(after);
  }

  std::size_t length() const {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += at[i].size();
    return sum;
  }
};

char* join(const Pieces& pieces, char* text, std::size_t limit) {
  if (pieces.length() >= limit) return nullptr;
  char* end = text;
  for (int i = 0; i < pieces.count; ++i) end += pieces.at[i].copy(end, string_view::npos);
  *end = '\0';
  return text;
}

}  // namespace

// ---- the exported functions

evhttp_uri* evhttp_uri_new() {
  auto* uri = static_cast<evhttp_uri*>(allocate_zeroed(sizeof(evhttp_uri)));
  if (uri != nullptr) uri->port = kNoPort;
  return uri;
}

void evhttp_uri_free(evhttp_uri* uri) {
  for (const Part part : {&evhttp_uri::scheme, &evhttp_uri::userinfo, &evhttp_uri::host,
                          &evhttp_uri::path, &evhttp_uri::query, &evhttp_uri::fragment}) {
    release(uri->*part);
  }
  release(uri);
}

evhttp_uri* evhttp_uri_parse(const char* text) { return evhttp_uri_parse_with_flags(text, 0); }

evhttp_uri* evhttp_uri_parse_with_flags(const char* text, unsigned flags) {
  if (text == nullptr) {
    errno = EINVAL;
    warn("%s: strdup", __func__);
    return nullptr;
  }
  evhttp_uri* uri = evhttp_uri_new();
  if (uri == nullptr) {
    warn("%s: calloc", __func__);
    return nullptr;
  }
  uri->flags = flags;
  if (parse(uri, text)) return uri;
  evhttp_uri_free(uri);
  return nullptr;
}

void evhttp_uri_set_flags(evhttp_uri* uri, unsigned flags) { uri->flags = flags; }

const char* evhttp_uri_get_scheme(const evhttp_uri* uri) { return uri->scheme; }
const char* evhttp_uri_get_userinfo(const evhttp_uri* uri) { return uri->userinfo; }
const char* evhttp_uri_get_host(const evhttp_uri* uri) { return uri->host; }
int evhttp_uri_get_port(const evhttp_uri* uri) { return uri->port; }
const char* evhttp_uri_get_path(const evhttp_uri* uri) { return uri->path; }
const char* evhttp_uri_get_query(const evhttp_uri* uri) { return uri->query; }
const char* evhttp_uri_get_fragment(const evhttp_uri* uri) { return uri->fragment; }

int evhttp_uri_set_scheme(evhttp_uri* uri, const char* scheme) {
  return set(uri, &evhttp_uri::scheme, is_scheme, scheme, __func__);
}

int evhttp_uri_set_userinfo(evhttp_uri* uri, const char* userinfo) {
  return set(uri, &evhttp_uri::userinfo, is_userinfo, userinfo, __func__);
}

int evhttp_uri_set_host(evhttp_uri* uri, const char* host) {
  return set(uri, &evhttp_uri::host, is_host, host, __func__);
}

int evhttp_uri_set_port(evhttp_uri* uri, int port) {
  if (port < kNoPort) return -1;
  uri->port = port;
  return 0;
}

int evhttp_uri_set_path(evhttp_uri* uri, const char* path) {
  return set(uri, &evhttp_uri::path, is_path, path, __func__);
}

int evhttp_uri_set_query(evhttp_uri* uri, const char* query) {
  return set(uri, &evhttp_uri::query, is_query, query, __func__);
}

int evhttp_uri_set_fragment(evhttp_uri* uri, const char* fragment) {
  return set(uri, &evhttp_uri::fragment, is_fragment, fragment, __func__);
}

char* evhttp_uri_join(evhttp_uri* uri, char* text, size_t limit) {
  if (uri == nullptr || text == nullptr) return nullptr;
  char port[16] = "";
  Pieces pieces;
  pieces.add("", uri->scheme, ":");
  if (uri->host != nullptr) {
    const string_view path = uri->path != nullptr ? uri->path : "";
    if (!path.empty() && !path.starts_with('/')) return nullptr;  // It would extend the host.
    if (uri->port != kNoPort) std::snprintf(port, sizeof port, ":%d", uri->port);
    pieces.add("//");
    pieces.add("", uri->userinfo, "@");
    pieces.add(uri->host);
    pieces.add(port);
  }
  pieces.add("", uri->path);
  pieces.add("?", uri->query);
  pieces.add("#", uri->fragment);
  return join(pieces, text, limit);
}
