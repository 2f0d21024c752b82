#include "spate/http/proxy.h"

#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/http/url.h"

namespace spate::http {

namespace {

// Removes "user:password@" after the scheme, which Url::parse() does not accept.
bool take_credentials(std::string& url, Proxy& proxy) {
  const std::size_t begin = url.find("://") + 3;
  const std::size_t end = url.substr(0, url.find('/', begin)).rfind('@');
  if (end == std::string::npos || end < begin) return true;
  const std::string_view text = std::string_view(url).substr(begin, end - begin);
  const std::size_t colon = text.find(':');
  auto user = percent_decode(text.substr(0, colon));
  auto password =
      percent_decode(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
  if (!user || user->empty() || !password) return false;
  proxy.user = std::move(*user);
  proxy.password = std::move(*password);
  url.erase(begin, end + 1 - begin);
  return true;
}

std::optional<ProxyKind> kind_of(std::string_view scheme) {
  if (scheme == "http") return ProxyKind::http;
  if (scheme == "socks5" || scheme == "socks5h") return ProxyKind::socks5;
  return {};
}

}  // namespace

Result<Proxy> Proxy::parse(std::string_view text) {
  Proxy proxy;
  std::string plain(text);
  if (!text.contains("://") || !take_credentials(plain, proxy))
    return std::unexpected(system_error(EINVAL));
  const Result<Url> url = Url::parse(plain);
  if (!url) return std::unexpected(url.error());
  const std::optional<ProxyKind> kind = kind_of(url->scheme());
  if (!kind || url->target() != "/") return std::unexpected(system_error(EINVAL));
  proxy.kind = *kind;
  proxy.host = url->host_name();
  proxy.port = url->port() == 0 ? 1080 : url->port();
  return proxy;
}

}  // namespace spate::http
