// Values of fields: dates, ranges, conditions, cookies, media types, negotiation. An accepted value
// is written and parsed again as the same.
#include <string>

#include "http/content/cookie_date.h"
#include "input.h"
#include "spate/http/conditional.h"
#include "spate/http/cookie.h"
#include "spate/http/date.h"
#include "spate/http/media_type.h"
#include "spate/http/negotiate.h"
#include "spate/http/range.h"

namespace spate::fuzz {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr sys_seconds kNow{seconds(1800000000)};

void parse_dates(std::string_view text) {
  http::parse_cookie_date(text);
  const auto time = http::parse_date(text, kNow);
  char room[http::kDateSize];
  if (time) check(http::parse_date(http::format_date(*time, room), kNow) == *time);
}

void parse_ranges(std::string_view value, std::uint64_t size) {
  const http::Ranges ranges = http::Ranges::parse(value, size);
  check((ranges.state() == http::Ranges::State::some) == !ranges.ranges().empty());
  std::uint64_t sum = 0;
  for (const http::ByteRange& range : ranges.ranges()) {
    check(range.first <= range.last && range.last < size);
    sum += range.size();
    char room[http::kMostContentRange];
    const auto again = http::parse_content_range(http::format_content_range(range, size, room));
    check(again && again->range == range && again->size == size);
  }
  check(sum <= size);
  http::parse_content_range(value);
}

void evaluate(Input& input) {
  const std::string_view one = input.text(32);
  const std::string_view two = input.text(32);
  http::Conditions conditions;
  if (input.flag()) conditions.if_match = one;
  if (input.flag()) conditions.if_none_match = two;
  if (input.flag()) conditions.if_modified_since = one;
  if (input.flag()) conditions.if_unmodified_since = two;
  if (input.flag()) conditions.if_range = two;
  const auto method = input.flag() ? http::Method::get : http::Method::put;
  const http::Representation present{
      .exists = input.flag(), .etag = input.rest(), .last_modified = kNow};
  const http::Verdict verdict = http::evaluate(method, conditions, present, kNow);
  check(method == http::Method::get || verdict != http::Verdict::not_modified);
  if (const auto tag = http::parse_entity_tag(input.rest())) check(is_weakly_equal(*tag, *tag));
}

void take_cookies(std::string_view text) {
  for (http::Cookies cookies(text); cookies.next();) check(!cookies.name().empty());
  const auto cookie = http::parse_set_cookie(text);
  if (!cookie) return;
  const auto written = http::format_set_cookie(*cookie);
  if (!written) return;
  const auto again = http::parse_set_cookie(*written);
  check(again && http::format_set_cookie(*again) == *written);
}

// Cookies are sent only to their host, and secure ones only over TLS.
void use_jar(Input& input) {
  http::CookieJar jar({.per_domain = 4, .total = 6});
  const http::Url urls[] = {
      *http::Url::parse("http://a.test/x"), *http::Url::parse("https://b.a.test/x/y"),
      *http::Url::parse("http://other/"), *http::Url::parse("https://192.0.2.1/")};
  while (!input.empty()) {
    const http::Url& from = urls[input.below(4)];
    const sys_seconds now = kNow + seconds(input.below(100));
    const std::string_view field = input.text(96);
    if (jar.store(from, field, now)) check(http::parse_set_cookie(field).has_value());
    check(jar.size() <= 6);
    for (const http::Url& to : urls) {
      const std::string sent = jar.header(to, now);
      check(sent.find_first_of("\r\n") == std::string::npos);
    }
  }
  http::CookieJar other;
  for (const http::Url& url : urls) check(other.header(url, kNow).empty());
}

void negotiate(Input& input) {
  const std::string_view offered[] = {input.text(20), "gzip", "text/html;level=1", "identity"};
  const std::string_view accept = input.rest();
  for (const std::string_view one : offered) {
    check(http::weight_of_encoding(accept, one) <= 1000 &&
          http::weight_of_type(accept, one) <= 1000);
    check(http::weight_of_encoding(accept, one) >= 0 && http::weight_of_type(accept, one) >= 0);
  }
  const auto chosen = http::choose_encoding(accept, offered);
  check(!chosen || http::weight_of_encoding(accept, offered[*chosen]) > 0);
  const auto type = http::MediaType::parse(accept);
  if (type) check(type->is(type->type(), type->subtype()));
  if (type) type->parameter("boundary");
  http::is_compressible(accept);
  check(http::MediaType::parse(http::content_type_of(accept)).has_value());
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  switch (input.byte() % 6) {
    case 0:
      parse_dates(input.rest());
      break;
    case 1: {
      const std::uint64_t whole = input.number(input.flag() ? 8 : 1);
      parse_ranges(input.rest(), whole);
      break;
    }
    case 2:
      evaluate(input);
      break;
    case 3:
      take_cookies(input.rest());
      break;
    case 4:
      use_jar(input);
      break;
    default:
      negotiate(input);
  }
  return 0;
}
