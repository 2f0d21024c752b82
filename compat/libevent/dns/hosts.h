// The hosts file: names and their addresses.
//
// Semantics: event2/dns.h (evdns_base_load_hosts), hosts(5); probed: blanks, comments, and names in
// other case. spate's own parser of hosts files is not public, and answers for one name at a time.
#pragma once

#include <netinet/in.h>

#include <string_view>

namespace spate::libevent::dns {

struct Host {
  const char* name() const { return reinterpret_cast<const char*>(this + 1); }

  Host* next;
  sockaddr_in6 address;  // An address of either family.
  int address_size;
};

// Zeroed memory is an empty list.
class Hosts {
 public:
  // Returns false without memory.
  [[nodiscard]] bool add_all(std::string_view text);
  bool add_localhost();
  void clear();

  // Returns the next one after `after`, which is null for the first; null if there is no other.
  // Case does not matter.
  const Host* find(const char* name, const Host* after) const;

 private:
  [[nodiscard]] bool add(std::string_view name, const sockaddr_in6& address, int size);
  [[nodiscard]] bool add_line(std::string_view line);

  Host* first_;
  Host* last_;
};

}  // namespace spate::libevent::dns
