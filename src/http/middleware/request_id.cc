#include <algorithm>
#include <cstddef>
#include <utility>

#include "http/codec/characters.h"
#include "spate/assert.h"
#include "spate/http/middleware.h"
#include "sys/random.h"

namespace spate::http {

namespace {

constexpr std::size_t kRandomBytes = 16;
constexpr std::size_t kLongestKept = 128;

constexpr Attribute<std::string> kId;

bool is_id_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestKept && std::ranges::all_of(text, is_id_byte);
}

// Empty if the kernel has no random bytes.
std::string random_id() { return sys::random_hex<kRandomBytes>().value_or(""); }

}  // namespace

RequestId::RequestId(Service& next, RequestIdOptions options)
    : next_(next), options_(std::move(options)) {
  Fields fields;
  const bool is_valid = fields.add(options_.field, "");
  SPATE_ASSERT(is_valid, "the field of a request id must be a valid field name");
  static_cast<void>(is_valid);
}

void RequestId::on_request(Exchange exchange) {
  const std::string_view sent = exchange.request()[options_.field];
  std::string id = options_.keep && is_id(sent) ? std::string(sent) : random_id();
  exchange.add_field(options_.field, id);
  exchange.set_attribute(kId, std::move(id));
  next_.on_request(std::move(exchange));
}

std::string_view RequestId::of(const Request& request) {
  const std::string* id = request.attribute(kId);
  return id == nullptr ? std::string_view() : *id;
}

}  // namespace spate::http
