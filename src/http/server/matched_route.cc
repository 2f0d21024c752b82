#include "http/server/matched_route.h"

#include <span>

#include "spate/http/url.h"

namespace spate::http {

bool MatchedRoute::add_param(std::string_view name, std::size_t offset, std::size_t size) {
  if (count_ == kMostParams) return false;
  params_[count_++] = {name, offset, size};
  return true;
}

std::string MatchedRoute::param(std::string_view name, std::string_view path) const {
  for (const Param& param : std::span(params_).first(count_)) {
    if (param.name != name) continue;
    const std::string_view value = path.substr(param.offset, param.size);
    return percent_decode(value).value_or(std::string(value));
  }
  return {};
}

}  // namespace spate::http
