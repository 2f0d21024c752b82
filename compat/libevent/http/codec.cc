// Escaping text for URIs and for HTML, and decoding it, and the parameters of a query.
//
// Semantics: event2/http.h; probed: an invalid encoding stays as it is, the end of a query's list,
// and that keys are not decoded.
//
// spate::http has its own of these. It is another library, and stricter than libevent.
#include <sys/queue.h>

#include <cstdint>
#include <cstring>

#include "compat/libevent/http/characters.h"
#include "compat/libevent/http/headers.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using spate::libevent::allocate;
using spate::libevent::begins_encoded;
using spate::libevent::hex_value;
using spate::libevent::is_unreserved;
using spate::libevent::warn;

namespace {

// Which plus signs are decoded as blanks.
enum class Plus { none, all, in_query };

constexpr std::size_t kEncodedSize = 3;

char* put_encoded(char* to, unsigned char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  *to++ = '%';
  *to++ = kDigits[c >> 4];
  *to++ = kDigits[c & 0xf];
  return to;
}

char* encode(std::string_view text, bool space_to_plus) {
  char* encoded = nullptr;
  if (text.size() < PTRDIFF_MAX / kEncodedSize) {
    encoded = static_cast<char*>(allocate(text.size() * kEncodedSize + 1));
  }
  if (encoded == nullptr) return nullptr;
  char* end = encoded;
  for (const char c : text) {
    if (is_unreserved(c)) {
      *end++ = c;
    } else if (c == ' ' && space_to_plus) {
      *end++ = '+';
    } else {
      end = put_encoded(end, static_cast<unsigned char>(c));
    }
  }
  *end = '\0';
  return encoded;
}

// Writes the text and a terminating zero, at most text.size() + 1 characters. Returns the length
// without the zero.
std::size_t decode(std::string_view text, Plus plus, char* decoded) {
  char* end = decoded;
  while (!text.empty()) {
    std::size_t size = 1;
    char c = text.front();
    if (begins_encoded(text)) {
      c = static_cast<char>(hex_value(text[1]) << 4 | hex_value(text[2]));
      size = kEncodedSize;
    } else if (c == '?' && plus == Plus::in_query) {
      plus = Plus::all;
    } else if (c == '+' && plus == Plus::all) {
      c = ' ';
    }
    *end++ = c;
    text.remove_prefix(size);
  }
  *end = '\0';
  return static_cast<std::size_t>(end - decoded);
}

// Allocates a string of so many characters; without memory, warns in the name of the function.
char* room_for(std::size_t length, const char* function) {
  auto* room = static_cast<char*>(allocate(length + 1));
  if (room == nullptr) warn("%s: malloc(%zu)", function, length + 1);
  return room;
}

std::string_view escape_of(const char& c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#039;";
    case '&':
      return "&amp;";
    default:
      return {&c, 1};
  }
}

// Returns the text before the separator; removes both from the front of the text.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view taken = text.substr(0, text.find(separator));
  text.remove_prefix(taken.size() < text.size() ? taken.size() + 1 : taken.size());
  return taken;
}

int add_parameter(evkeyvalq& headers, std::string_view parameter) {
  const std::size_t key_size = parameter.find('=');
  if (key_size == 0 || key_size == std::string_view::npos) return -1;
  const std::string_view value = parameter.substr(key_size + 1);
  auto* decoded = static_cast<char*>(allocate(value.size() + 1));
  if (decoded == nullptr) {
    warn("%s: mm_malloc", "evhttp_parse_query_impl");
    return -1;
  }
  decode(value, Plus::all, decoded);
  const int status = spate::libevent::add_header(headers, parameter.substr(0, key_size), decoded);
  spate::libevent::release(decoded);
  return status;
}

int parse_query(std::string_view query, evkeyvalq* headers) {
  while (!query.empty()) {
    if (add_parameter(*headers, take_until(query, '&')) != 0) {
      evhttp_clear_headers(headers);
      return -1;
    }
  }
  return 0;
}

}  // namespace

// ---- the exported functions

char* evhttp_encode_uri(const char* text) { return encode(text, false); }

char* evhttp_uriencode(const char* text, ev_ssize_t size, int space_to_plus) {
  const std::size_t length = size < 0 ? std::strlen(text) : static_cast<std::size_t>(size);
  return encode({text, length}, space_to_plus != 0);
}

char* evhttp_decode_uri(const char* uri) {
  const std::string_view text = uri;
  char* decoded = room_for(text.size(), __func__);
  if (decoded != nullptr) decode(text, Plus::in_query, decoded);
  return decoded;
}

char* evhttp_uridecode(const char* uri, int decode_plus, size_t* size_out) {
  const std::string_view text = uri;
  char* decoded = room_for(text.size(), __func__);
  if (decoded == nullptr) return nullptr;
  const std::size_t size = decode(text, decode_plus != 0 ? Plus::all : Plus::none, decoded);
  if (size_out != nullptr) *size_out = size;
  return decoded;
}

char* evhttp_htmlescape(const char* html) {
  if (html == nullptr) return nullptr;
  const std::string_view text = html;
  std::size_t length = 0;
  for (const char& c : text) length += escape_of(c).size();
  char* escaped = room_for(length, __func__);
  if (escaped == nullptr) return nullptr;
  char* end = escaped;
  for (const char& c : text) end += escape_of(c).copy(end, std::string_view::npos);
  *end = '\0';
  return escaped;
}

int evhttp_parse_query(const char* uri, evkeyvalq* headers) {
  TAILQ_INIT(headers);
  evhttp_uri* parsed = evhttp_uri_parse(uri);
  if (parsed == nullptr) return -1;
  const int status = evhttp_parse_query_str(evhttp_uri_get_query(parsed), headers);
  evhttp_uri_free(parsed);
  return status;
}

int evhttp_parse_query_str(const char* query, evkeyvalq* headers) {
  TAILQ_INIT(headers);
  return query == nullptr ? 0 : parse_query(query, headers);
}
