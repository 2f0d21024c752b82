// Semantics: event2/util.h (evutil_freeaddrinfo), event2/dns.h (evdns_getaddrinfo).
#include "compat/libevent/evutil/address_list.h"

#include <netinet/in.h>

#include <cstring>

#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

struct Entry {
  evutil_addrinfo info;
  sockaddr_in6 address;  // An address of either family: the port is at the same place.
};

evutil_addrinfo* make_entry(const sockaddr& address, int size, ev_uint16_t port, int type,
                            int protocol) {
  auto* entry = static_cast<Entry*>(allocate_zeroed(sizeof(Entry)));
  if (entry == nullptr) return nullptr;
  std::memcpy(&entry->address, &address, static_cast<std::size_t>(size));
  entry->address.sin6_port = port;
  entry->info.ai_flags = kOwnAddressFlag;
  entry->info.ai_family = address.sa_family;
  entry->info.ai_socktype = type;
  entry->info.ai_protocol = protocol;
  entry->info.ai_addr = reinterpret_cast<sockaddr*>(&entry->address);
  entry->info.ai_addrlen = static_cast<socklen_t>(size);
  return &entry->info;
}

}  // namespace

evutil_addrinfo* make_address_list(const sockaddr& address, int size, ev_uint16_t port,
                                   const evutil_addrinfo& hints) {
  if (hints.ai_socktype != 0 || hints.ai_protocol != 0) {
    return make_entry(address, size, port, hints.ai_socktype, hints.ai_protocol);
  }
  evutil_addrinfo* stream = make_entry(address, size, port, SOCK_STREAM, IPPROTO_TCP);
  if (stream == nullptr) return nullptr;
  stream->ai_next = make_entry(address, size, port, SOCK_DGRAM, IPPROTO_UDP);
  if (stream->ai_next != nullptr) return stream;
  free_own_address_list(stream);
  return nullptr;
}

evutil_addrinfo* join_address_lists(evutil_addrinfo* first, evutil_addrinfo* second) {
  if (first == nullptr) return second;
  evutil_addrinfo* last = first;
  while (last->ai_next != nullptr) last = last->ai_next;
  last->ai_next = second;
  return first;
}

void free_own_address_list(evutil_addrinfo* list) {
  while (list != nullptr) {
    evutil_addrinfo* next = list->ai_next;
    release(list->ai_canonname);
    release(list);
    list = next;
  }
}

}  // namespace spate::libevent
