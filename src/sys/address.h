// Socket addresses in the kernel's format, and IP addresses as text.
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spate::sys {

// Where the family is in a socket address: BSD has the length before it.
inline constexpr std::size_t kFamilyAt = offsetof(sockaddr, sa_family);

// Whether a unix socket may have a name without a file.
#ifdef __linux__
inline constexpr bool kHasAbstractNames = true;
#else
inline constexpr bool kHasAbstractNames = false;
#endif

// The longest text of an IP address, including the terminator.
inline constexpr std::size_t kAddressText = 64;

// Makes a NUL-terminated copy, for the C library. False if it does not fit or contains a NUL.
template <std::size_t size>
bool terminate(std::string_view text, char (&copy)[size]) {
  if (text.size() >= size || text.find('\0') != std::string_view::npos) return false;
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return true;
}

// Parses dotted decimal without leading zeros, and RFC 4291's forms; nothing else. `address` is 4
// bytes for AF_INET, 16 for AF_INET6.
inline bool parse_ip(int family, std::string_view text, void* address) {
  char copy[kAddressText];
  return terminate(text, copy) && ::inet_pton(family, copy, address) == 1;
}

inline std::string_view print_ip(int family, const void* address, char (&text)[kAddressText]) {
  return ::inet_ntop(family, address, text, sizeof(text)) == nullptr ? std::string_view() : text;
}

// Returns 0 if there is no such interface.
inline std::uint32_t interface_index(std::string_view name) {
  char copy[IF_NAMESIZE];
  return terminate(name, copy) ? ::if_nametoindex(copy) : 0;
}

// Returns an empty text if there is no such interface.
inline std::string_view interface_name(std::uint32_t index, char (&name)[IF_NAMESIZE]) {
  return ::if_indextoname(index, name) == nullptr ? std::string_view() : name;
}

}  // namespace spate::sys
