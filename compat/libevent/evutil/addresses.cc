// Formatting, parsing and comparing addresses.
//
// Semantics: event2/util.h; RFC 4291 and RFC 5952 for the text of IPv6 addresses. libevent accepts
// more than inet_pton(3) does (blanks and signs before a number, leading zeros, 0x in IPv6 words,
// one colon after eight words), and so does this; probed. It also writes an IPv6 address without
// its last character if only the terminating zero does not fit; here that is an error.
#include <arpa/inet.h>
#include <event2/util.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compat/libevent/ascii.h"
#include "compat/libevent/memory.h"

using spate::libevent::is_digit;
using spate::libevent::is_hex_digit;

namespace {

constexpr int kWords = 8;
constexpr int kWordDigits = 4;
constexpr int kPortMax = 65535;
constexpr std::size_t kHostMax = 127;  // The longest host text that is copied for parsing.

struct Words {
  std::uint16_t at[kWords];
};

// --- Writing ---

// The words that "::" replaces: the first of the longest runs of two zeros or more.
struct ZeroRun {
  int first = -1;
  int size = 1;
};

ZeroRun longest_zero_run(const Words& words) {
  ZeroRun best;
  for (int first = 0; first < kWords; ++first) {
    int end = first;
    while (end < kWords && words.at[end] == 0) {
      ++end;
    }
    if (end - first > best.size) {
      best = {first, end - first};
    }
  }
  return best;
}

// Returns true if the last four bytes are written as an IPv4 address.
bool embeds_ipv4(const Words& words) {
  for (int i = 0; i < 5; ++i) {
    if (words.at[i] != 0) {
      return false;
    }
  }
  return words.at[5] == 0xffff || (words.at[5] == 0 && words.at[6] != 0 && words.at[7] != 0);
}

void write_words(const Words& words, char* text) {
  const ZeroRun run = longest_zero_run(words);
  for (int i = 0; i < kWords; ++i) {
    if (i == run.first) {
      text += std::sprintf(text, "::");
      i += run.size - 1;
    } else {
      const bool follows_word = i > 0 && i != run.first + run.size;
      text += std::sprintf(text, follows_word ? ":%x" : "%x", words.at[i]);
    }
  }
}

const char* write_ipv4(const std::uint8_t* bytes, char* text, std::size_t size) {
  const int length =
      evutil_snprintf(text, size, "%d.%d.%d.%d", bytes[0], bytes[1], bytes[2], bytes[3]);
  return length > 0 && static_cast<std::size_t>(length) < size ? text : nullptr;
}

const char* write_ipv6(const std::uint8_t* bytes, char* text, std::size_t size) {
  Words words;
  for (int i = 0; i < kWords; ++i) {
    words.at[i] = static_cast<std::uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  }
  char whole[INET6_ADDRSTRLEN];
  if (embeds_ipv4(words)) {
    std::snprintf(whole, sizeof whole, "::%s%d.%d.%d.%d",
                  words.at[5] == 0 ? "" : "ffff:", bytes[12], bytes[13], bytes[14], bytes[15]);
  } else {
    write_words(words, whole);
  }
  const std::size_t needed = std::strlen(whole) + 1;
  return needed <= size ? static_cast<const char*>(std::memcpy(text, whole, needed)) : nullptr;
}

// --- Reading ---

bool read_ipv4(const char* text, std::uint8_t* bytes) {
  unsigned parts[4];
  char more;
  if (std::sscanf(text, "%u.%u.%u.%u%c", &parts[0], &parts[1], &parts[2], &parts[3], &more) != 4) {
    return false;
  }
  for (const unsigned part : parts) {
    if (part > 255) {
      return false;
    }
  }
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::uint8_t>(parts[i]);
  }
  return true;
}

// The words of an IPv6 address in order, and the position of "::".
struct Reader {
  const char* text;
  const char* next;
  const char* end;
  Words words{};
  int count = 0;
  int gap = -1;

  bool read_all() {
    while (next < end) {
      if (count == kWords || !(is_hex_digit(*next) ? read_word() : read_gap())) {
        return false;
      }
    }
    return true;
  }

  // Parses a word, and the colon that ends it.
  bool read_word() {
    char* after;
    const unsigned long word = std::strtoul(next, &after, 16);
    if (after - next > kWordDigits || after > end) {
      return false;
    }
    words.at[count++] = static_cast<std::uint16_t>(word);
    next = after;
    if (next == end) {
      return true;
    }
    return *next++ == ':';
  }

  // Parses the second of two colons; at the start, both.
  bool read_gap() {
    if (next == text && *next++ != ':') {
      return false;
    }
    if (*next++ != ':' || gap >= 0) {
      return false;
    }
    gap = count;
    return true;
  }

  bool add(std::uint8_t high, std::uint8_t low) {
    if (count == kWords) {
      return false;
    }
    words.at[count++] = static_cast<std::uint16_t>(high << 8 | low);
    return true;
  }
};

// Inserts the zeros at the gap.
bool fill_gap(Reader& reader) {
  if (reader.gap < 0) {
    return reader.count == kWords;
  }
  const int missing = kWords - reader.count;
  if (missing == 0) {
    return false;
  }
  std::uint16_t* gap = reader.words.at + reader.gap;
  const auto after = static_cast<std::size_t>(reader.count - reader.gap);
  std::memmove(gap + missing, gap, after * sizeof *gap);
  std::memset(gap, 0, static_cast<std::size_t>(missing) * sizeof *gap);
  return true;
}

bool read_words(const char* text, Words& words) {
  const char* dot = std::strchr(text, '.');
  const char* end = text + std::strlen(text);
  std::uint8_t bytes[4];
  if (dot != nullptr) {
    for (end = dot; end > text && is_digit(end[-1]);) {
      --end;
    }
    if (!read_ipv4(end, bytes)) {
      return false;
    }
  }
  Reader reader{text, text, end};
  if (!reader.read_all() ||
      (dot != nullptr && !(reader.add(bytes[0], bytes[1]) && reader.add(bytes[2], bytes[3]))) ||
      !fill_gap(reader)) {
    return false;
  }
  words = reader.words;
  return true;
}

bool read_ipv6(const char* text, std::uint8_t* bytes) {
  Words words;
  if (!read_words(text, words)) {
    return false;
  }
  for (int i = 0; i < kWords; ++i) {
    bytes[2 * i] = static_cast<std::uint8_t>(words.at[i] >> 8);
    bytes[2 * i + 1] = static_cast<std::uint8_t>(words.at[i]);
  }
  return true;
}

// Parses the interface after "%": its name or its number.
bool read_scope(const char* text, unsigned& index) {
  index = if_nametoindex(text);
  if (index != 0) {
    return true;
  }
  char* end;
  const long number = std::strtol(text, &end, 10);
  if (*end != '\0') {
    return false;
  }
  index = static_cast<unsigned>(number);
  return true;
}

// --- Address and port ---

// The parts of "[host]:port", "host:port" or "host".
struct Parts {
  const char* host;
  std::size_t host_size;
  const char* port;  // Null if it is missing.
  bool is_ipv6;
};

bool split(const char* text, Parts& parts) {
  if (*text == '[') {
    const char* close = std::strchr(text, ']');
    if (close == nullptr) {
      return false;
    }
    parts = {text + 1, static_cast<std::size_t>(close - text - 1),
             close[1] == ':' ? close + 2 : nullptr, true};
    return parts.host_size <= kHostMax;
  }
  const char* colon = std::strchr(text, ':');
  const bool has_port = colon != nullptr && std::strchr(colon + 1, ':') == nullptr;
  const char* end = has_port ? colon : text + std::strlen(text);
  parts = {text, static_cast<std::size_t>(end - text), has_port ? colon + 1 : nullptr,
           colon != nullptr && !has_port};
  return !has_port || parts.host_size <= kHostMax;
}

// Zero is not a port; text after the digits is ignored.
bool read_port(const char* text, std::uint16_t& port) {
  const auto number = static_cast<int>(std::strtol(text, nullptr, 10));
  port = htons(static_cast<std::uint16_t>(number));
  return number > 0 && number <= kPortMax;
}

bool read_address(const char* host, bool is_ipv6, std::uint16_t port, sockaddr_in6& address) {
  address = {};
  if (is_ipv6) {
    unsigned scope;
    address.sin6_family = AF_INET6;
    address.sin6_port = port;
    const bool good = evutil_inet_pton_scope(AF_INET6, host, &address.sin6_addr, &scope) == 1;
    address.sin6_scope_id = scope;
    return good;
  }
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = port;
  const bool good = evutil_inet_pton(AF_INET, host, &ipv4.sin_addr) == 1;
  std::memcpy(&address, &ipv4, sizeof ipv4);
  return good;
}

template <typename T>
int order(T a, T b) {
  return a < b ? -1 : static_cast<int>(a > b);
}

template <typename T>
T read_as(const sockaddr* address) {
  T copy;
  std::memcpy(&copy, address, sizeof copy);
  return copy;
}

}  // namespace

const char* evutil_inet_ntop(int family, const void* address, char* text, size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(address);
  switch (family) {
    case AF_INET:
      return write_ipv4(bytes, text, size);
    case AF_INET6:
      return write_ipv6(bytes, text, size);
    default:
      return nullptr;
  }
}

int evutil_inet_pton(int family, const char* text, void* address) {
  auto* bytes = static_cast<std::uint8_t*>(address);
  switch (family) {
    case AF_INET:
      return static_cast<int>(read_ipv4(text, bytes));
    case AF_INET6:
      return static_cast<int>(read_ipv6(text, bytes));
    default:
      return -1;
  }
}

int evutil_inet_pton_scope(int family, const char* text, void* address, unsigned* index) {
  *index = 0;
  const char* percent = family == AF_INET6 ? std::strchr(text, '%') : nullptr;
  if (percent == nullptr) {
    return evutil_inet_pton(family, text, address);
  }
  if (!read_scope(percent + 1, *index)) {
    return 0;
  }
  char* host = spate::libevent::duplicate(text);
  if (host == nullptr) {
    return -1;
  }
  host[percent - text] = '\0';
  const int result = evutil_inet_pton(family, host, address);
  spate::libevent::release(host);
  return result;
}

int evutil_parse_sockaddr_port(const char* text, sockaddr* result, int* size) {
  Parts parts;
  std::uint16_t port = 0;
  if (!split(text, parts) || (parts.port != nullptr && !read_port(parts.port, port))) {
    return -1;
  }
  char host[kHostMax + 1];
  if (parts.host[parts.host_size] != '\0') {
    std::memcpy(host, parts.host, parts.host_size);
    host[parts.host_size] = '\0';
    parts.host = host;
  }
  sockaddr_in6 address;
  const int needed = parts.is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (!read_address(parts.host, parts.is_ipv6, port, address) || *size < needed) {
    return -1;
  }
  std::memset(result, 0, static_cast<std::size_t>(*size));  // All of the caller's memory.
  std::memcpy(result, &address, static_cast<std::size_t>(needed));
  *size = needed;
  return 0;
}

// Compares family, then address, then port, as integers in this machine's byte order.
int evutil_sockaddr_cmp(const sockaddr* a, const sockaddr* b, int include_port) {
  if (a->sa_family != b->sa_family) {
    return a->sa_family - b->sa_family;
  }
  if (a->sa_family == AF_INET) {
    const auto left = read_as<sockaddr_in>(a);
    const auto right = read_as<sockaddr_in>(b);
    const int by_address = order(left.sin_addr.s_addr, right.sin_addr.s_addr);
    return by_address != 0 || include_port == 0 ? by_address : left.sin_port - right.sin_port;
  }
  if (a->sa_family == AF_INET6) {
    const auto left = read_as<sockaddr_in6>(a);
    const auto right = read_as<sockaddr_in6>(b);
    const int by_address = std::memcmp(&left.sin6_addr, &right.sin6_addr, sizeof left.sin6_addr);
    return by_address != 0 || include_port == 0 ? by_address : left.sin6_port - right.sin6_port;
  }
  return 1;
}
