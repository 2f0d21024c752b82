// Url, Query and paths: an accepted text is valid, prints and parses as itself, and does not leave
// the root of a file server.
#include "spate/http/url.h"

#include "input.h"

namespace spate::fuzz {
namespace {

using http::Query;
using http::Url;

bool is_clean(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c >= 127 || std::string_view("\"<>\\^`{|}").find(c) != text.npos) return false;
  }
  return true;
}

void use(const Url& url) {
  check(is_clean(url.to_string()) && !url.host().empty() && url.path().starts_with('/'));
  check(url.authority().starts_with(url.host()) && url.target().starts_with(url.path()));
  check(url.authority().find('@') == std::string_view::npos);
  const auto again = Url::parse(url.to_string());
  check(again && *again == url && again->has_origin_of(url) && again->port() == url.port());
}

void parse_urls(Input& input) {
  const std::string_view reference = input.text(64);
  const auto url = Url::parse(input.rest());
  if (!url) return check(static_cast<bool>(url.error()));
  use(*url);
  const auto target = url->resolve(reference);
  if (!target) return;
  use(*target);
  check(*target->resolve("") ==
        *Url::parse(target->to_string().substr(0, target->to_string().find('#'))));
}

void take_pairs(std::string_view text) {
  std::size_t size = 0;
  for (Query query(text); query.next();) size += query.name().size() + query.value().size();
  check(size <= text.size());
}

void normalise(std::string_view path) {
  const auto normal = http::normal_path(path);
  if (!normal) return;
  check(normal->starts_with('/') && normal->find('\0') == std::string::npos);
  check((*normal + "/").find("/../") == std::string::npos);
  check(http::normal_path(http::percent_encode_path(*normal)) == normal);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  switch (input.byte() % 3) {
    case 0:
      parse_urls(input);
      break;
    case 1:
      take_pairs(input.rest());
      check(spate::http::percent_decode(spate::http::percent_encode(input.rest())) == input.rest());
      break;
    default:
      normalise(input.rest());
  }
  return 0;
}
