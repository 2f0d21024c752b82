// The hosts file: names and their addresses.
//
// Semantics: event2/dns.h (evdns_base_load_hosts), hosts(5); blanks, comments, and names in other
// case: probes. spate's own reader of hosts files is not public, and answers for one name at a
// time.
#pragma once

#include <netinet/in.h>

#include <string_view>

namespace spate::libevent::dns {

struct Host {
  const char* name() const { return reinterpret_cast<const char*>(this + 1); }

  Host* next;
  sockaddr_in6 address;  // Of either family.
  int address_size;
};

// All of zeroed memory is an empty one.
class Hosts {
 public:
  // False if there is no memory.
  bool add_all(std::string_view text);
  bool add_localhost();
  void clear();

  // From `after`, which is null for the first; null if there is none. Case does not matter.
  const Host* find(const char* name, const Host* after) const;

 private:
  bool add(std::string_view name, const sockaddr_in6& address, int size);
  bool add_line(std::string_view line);

  Host* first_;
  Host* last_;
};

}  // namespace spate::libevent::dns
