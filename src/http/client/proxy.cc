#include "spate/http/proxy.h"

#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/http/url.h"

namespace spate::http {

Result<Proxy> Proxy::parse(std::string_view text) {
  const Result<Url> url = Url::parse(text);
  if (!url) return std::unexpected(url.error());
  Proxy proxy;
  if (url->scheme() == "http") {
    proxy.kind = ProxyKind::http;
  } else if (url->scheme() == "socks5") {
    proxy.kind = ProxyKind::socks5;
  } else {
    return std::unexpected(system_error(EINVAL));
  }
  proxy.host = url->host_name();
  proxy.port = url->port() == 0 ? 1080 : url->port();
  return proxy;
}

}  // namespace spate::http
