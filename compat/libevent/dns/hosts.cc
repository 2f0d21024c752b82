#include "compat/libevent/dns/hosts.h"

#include <algorithm>
#include <cstring>

#include "compat/libevent/dns/config_file.h"
#include "compat/libevent/dns_api.h"
#include "compat/libevent/memory.h"

namespace spate::libevent::dns {
namespace {

// Returns false if it is not an address, or has a port.
bool read_address(std::string_view word, sockaddr_in6& address, int& size) {
  size = sizeof address;
  if (evutil_parse_sockaddr_port(Word(word).c_str(), reinterpret_cast<sockaddr*>(&address),
                                 &size) != 0) {
    return false;
  }
  return address.sin6_port == 0;  // The port of an IPv4 address is at the same place.
}

}  // namespace

bool Hosts::add(std::string_view name, const sockaddr_in6& address, int size) {
  auto* host = static_cast<Host*>(allocate_zeroed(sizeof(Host) + name.size() + 1));
  if (host == nullptr) return false;
  host->address = address;
  host->address_size = size;
  std::ranges::copy(name, reinterpret_cast<char*>(host + 1));
  (last_ != nullptr ? last_->next : first_) = host;
  last_ = host;
  return true;
}

bool Hosts::add_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  sockaddr_in6 address;
  int size;
  if (!read_address(take_word(line), address, size)) return true;
  for (;;) {
    const std::string_view name = take_word(line);
    if (name.empty()) return true;
    if (!add(name, address, size)) return false;
  }
}

bool Hosts::add_all(std::string_view text) {
  while (!text.empty()) {
    if (!add_line(take_line(text))) return false;
  }
  return true;
}

bool Hosts::add_localhost() { return add_all("127.0.0.1 localhost\n::1 localhost\n"); }

void Hosts::clear() {
  while (first_ != nullptr) {
    Host* next = first_->next;
    release(first_);
    first_ = next;
  }
  last_ = nullptr;
}

const Host* Hosts::find(const char* name, const Host* after) const {
  const Host* host = after != nullptr ? after->next : first_;
  while (host != nullptr && evutil_ascii_strcasecmp(host->name(), name) != 0) host = host->next;
  return host;
}

}  // namespace spate::libevent::dns
