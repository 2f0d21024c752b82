#include "http/codec/websocket_handshake.h"

#include <algorithm>

#include "http/codec/base64.h"
#include "http/codec/characters.h"
#include "http/codec/message_coding.h"
#include "http/codec/sha1.h"
#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr std::string_view kAcceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::size_t kKeySize = 24;

bool is_base64(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '+' || c == '/';
}

// The parameters of permessage-deflate (RFC 7692 §7.1), each at most once.
struct DeflateParameters {
  bool is_ours = false;  // The extension is permessage-deflate.
  bool is_bad = false;
  bool server_begins_anew = false;
  bool client_begins_anew = false;
  int server_window = 0;  // In bits; 0 if absent.
  int client_window = 0;
};

int window_of(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
  const auto bits = parse_number(value, Overflow::saturates);
  const bool is_good = bits && *bits >= 8 && *bits <= kLargestWindow && value.front() != '0';
  return is_good ? static_cast<int>(*bits) : 0;
}

// False if it is invalid or a duplicate.
bool take_flag(bool& flag, std::string_view value) {
  return value.empty() && !std::exchange(flag, true);
}
bool take_window(int& window, std::string_view value) {
  if (window != 0) return false;
  window = window_of(value);
  return window != 0;
}

bool take(DeflateParameters& all, std::string_view name, std::string_view value) {
  if (name == "server_no_context_takeover") return take_flag(all.server_begins_anew, value);
  if (name == "client_no_context_takeover") return take_flag(all.client_begins_anew, value);
  if (name == "server_max_window_bits") return take_window(all.server_window, value);
  if (name != "client_max_window_bits") return false;
  if (!value.empty()) return take_window(all.client_window, value);
  return std::exchange(all.client_window, kLargestWindow) == 0;
}

DeflateParameters parse_extension(std::string_view text) {
  DeflateParameters all;
  all.is_ours = trimmed(take_element(text, ';')) == "permessage-deflate";
  while (!text.empty() && !all.is_bad) {
    std::string_view value = take_element(text, ';');
    const std::string_view name = trimmed(take_element(value, '='));
    all.is_bad = !take(all, name, trimmed(value));
  }
  return all;
}

}  // namespace

std::string websocket_key(std::array<char, 16> bytes) {
  return base64({bytes.data(), bytes.size()});
}

// 16 bytes in base64: 22 digits, of the last of which only two bits are used.
bool is_websocket_key(std::string_view key) {
  return key.size() == kKeySize && key.ends_with("==") &&
         std::ranges::all_of(key.substr(0, kKeySize - 2), is_base64);
}

std::string websocket_accept(std::string_view key) {
  const std::array<char, 20> sum = sha1(std::string(key).append(kAcceptSuffix));
  return base64({sum.data(), sum.size()});
}

std::string DeflateAgreement::response() const {
  std::string text(kDeflate);
  if (names_window) text += "; server_max_window_bits=" + std::to_string(window);
  return text;
}

// The client's own window may have any size. zlib does not support 8 bits.
DeflateAgreement agree_to_deflate(const FieldsView& fields) {
  const auto offers = fields.list(FieldId::sec_websocket_extensions);
  for (const std::string_view each : offers) {
    const DeflateParameters offer = parse_extension(each);
    const int window = offer.server_window == 0 ? kLargestWindow : offer.server_window;
    if (offer.is_ours && !offer.is_bad && window >= kSmallestWindow)
      return {.window = window, .names_window = offer.server_window != 0};
  }
  return {};
}

AgreedExtensions agreed_extensions(const FieldsView& fields, bool has_offered_deflate) {
  AgreedExtensions agreed = AgreedExtensions::none;
  for (const std::string_view each : fields.list(FieldId::sec_websocket_extensions)) {
    const DeflateParameters response = parse_extension(each);
    const bool is_good = has_offered_deflate && agreed == AgreedExtensions::none &&
                         response.is_ours && !response.is_bad && response.server_begins_anew &&
                         response.client_window == 0;
    if (!is_good) return AgreedExtensions::bad;
    agreed = AgreedExtensions::deflate;
  }
  return agreed;
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  if (origin.empty()) return true;
  const std::size_t scheme = origin.find("://");
  return scheme != origin.npos && equal_ignoring_case(origin.substr(scheme + 3), host);
}

}  // namespace spate::http
