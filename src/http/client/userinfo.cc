#include "http/client/userinfo.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/codec/base64.h"
#include "http/codec/characters.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "spate/http/url.h"

namespace spate::http {

Result<UrlUserinfo> take_userinfo(std::string_view url) {
  const std::size_t sign = url.find("://");
  if (sign == url.npos) return UrlUserinfo{std::string(url)};
  const std::size_t begin = sign + 3;
  const std::string_view authority = url.substr(begin, url.find_first_of("/\\?#", begin) - begin);
  const std::size_t at = authority.rfind('@');
  if (at == authority.npos) return UrlUserinfo{std::string(url)};
  const std::string_view userinfo = authority.substr(0, at);
  const std::size_t colon = std::min(userinfo.find(':'), userinfo.size());
  auto user = percent_decode(userinfo.substr(0, colon));
  auto password = percent_decode(userinfo.substr(std::min(colon + 1, userinfo.size())));
  if (!user || !password) return std::unexpected(system_error(EINVAL));
  return UrlUserinfo{std::string(url.substr(0, begin)).append(url.substr(begin + at + 1)),
                     Credentials{std::move(*user), std::move(*password)}};
}

bool is_valid(const Credentials& credentials) {
  return !credentials.user.contains(':') && !has_control(credentials.user) &&
         !has_control(credentials.password);
}

std::string basic_credentials(const Credentials& credentials) {
  return "Basic " + base64(credentials.user + ":" + credentials.password);
}

}  // namespace spate::http
