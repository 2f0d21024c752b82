// BasicAuth, BearerAuth (RFC 9110 §11, RFC 7617, RFC 6750).
#include <optional>
#include <utility>

#include "http/codec/base64.h"
#include "http/codec/characters.h"
#include "http/server/exchange_state.h"
#include "spate/assert.h"
#include "spate/http/middleware.h"

namespace spate::http {

namespace {

// As a quoted string (RFC 9110 §5.6.4).
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string challenge(std::string_view scheme, std::string_view realm) {
  SPATE_ASSERT(is_field_value(realm), "a realm must be a valid field value");
  return std::string(scheme) + " realm=" + quoted(realm);
}

// Returns the credentials of the scheme; none if the field is absent, occurs twice, or has
// another scheme.
std::optional<std::string_view> credentials(const Request& request, std::string_view scheme) {
  if (request.fields().count(FieldId::authorization) != 1) return {};
  const std::string_view value = request[FieldId::authorization];
  const std::size_t space = value.find(' ');
  if (space == std::string_view::npos) return {};
  if (!equal_ignoring_case(value.substr(0, space), scheme)) return {};
  const std::size_t begin = value.find_first_not_of(' ', space);
  if (begin == std::string_view::npos) return {};
  return value.substr(begin);
}

void respond_401(Exchange exchange, const std::string& challenge) {
  Fields fields;
  fields.add(FieldId::www_authenticate, challenge);
  constexpr Refusal kRefusal = {Status::unauthorized, "authentication is required"};
  ExchangeState::of(exchange)->respond_refusal(kRefusal, kRefusal.reason, &fields);
}

}  // namespace

bool equal_in_constant_time(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (left[i] ^ right[i]));
  }
  return difference == 0;
}

BasicAuth::BasicAuth(Service& next, Check check, std::string_view realm)
    : next_(next),
      check_(std::move(check)),
      challenge_(challenge("Basic", realm) + ", charset=\"UTF-8\"") {}

void BasicAuth::on_request(Exchange exchange) {
  const auto sent = credentials(exchange.request(), "basic");
  const auto text = sent ? decode_base64(*sent) : std::nullopt;
  const std::size_t colon = text ? text->find(':') : std::string::npos;
  if (colon != std::string::npos) {
    const std::string_view pair = *text;
    if (check_(exchange, pair.substr(0, colon), pair.substr(colon + 1)))
      return next_.on_request(std::move(exchange));
  }
  respond_401(std::move(exchange), challenge_);
}

BearerAuth::BearerAuth(Service& next, Check check, std::string_view realm)
    : next_(next), check_(std::move(check)), challenge_(challenge("Bearer", realm)) {}

// Without credentials the challenge has no error (RFC 6750 §3).
void BearerAuth::on_request(Exchange exchange) {
  const auto token = credentials(exchange.request(), "bearer");
  if (!token) return respond_401(std::move(exchange), challenge_);
  if (check_(exchange, *token)) return next_.on_request(std::move(exchange));
  respond_401(std::move(exchange), challenge_ + ", error=\"invalid_token\"");
}

}  // namespace spate::http
