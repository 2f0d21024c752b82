#include "compat/libevent/dns/lookup.h"

#include <algorithm>
#include <cstring>

#include "compat/libevent/dns/resolver.h"
#include "compat/libevent/event/deferred.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

void destroy(evdns_request* lookup) {
  event_debug_unassign(&lookup->deferred);
  lookup->candidates.end();
  release(lookup);
}

char type_of(std::uint16_t type) {
  switch (type) {
    case EVDNS_TYPE_A:
      return DNS_IPv4_A;
    case EVDNS_TYPE_AAAA:
      return DNS_IPv6_AAAA;
    default:
      return DNS_PTR;
  }
}

void call(evdns_callback_type callback, std::uint16_t type, Answer& answer, void* argument) {
  const int ttl = static_cast<int>(answer.ttl);
  if (answer.error != DNS_ERR_NONE) {
    callback(answer.error, 0, 0, ttl, nullptr, argument);
    return;
  }
  char* name = answer.name;
  void* found = type == EVDNS_TYPE_PTR ? static_cast<void*>(&name) : answer.ipv6;
  callback(DNS_ERR_NONE, type_of(type), answer.count, ttl, found, argument);
}

// The lookup is not used during its callback, nor after it.
void call_back(evutil_socket_t, short, void* argument) {
  auto* lookup = static_cast<evdns_request*>(argument);
  Answer answer = lookup->answer;
  const evdns_callback_type callback = lookup->callback;
  const Listener* listener = lookup->listener;
  const std::uint16_t type = lookup->type;
  void* own = lookup->argument;
  destroy(lookup);
  if (listener != nullptr) {
    listener->answered(answer, own);
  } else if (callback != nullptr) {
    call(callback, type, answer, own);
  }
}

evdns_request* start(evdns_base& base, const char* name, std::uint16_t type, int flags,
                     const evdns_request& wanted) {
  const std::size_t size = std::strlen(name);
  if (size >= sizeof wanted.name) return nullptr;
  auto* lookup = static_cast<evdns_request*>(allocate_zeroed(sizeof(evdns_request)));
  if (lookup == nullptr) return nullptr;
  lookup->base = &base;
  lookup->callback = wanted.callback;
  lookup->listener = wanted.listener;
  lookup->argument = wanted.argument;
  lookup->type = type;
  std::memcpy(lookup->name, name, size);
  event_assign(&lookup->deferred, base.loop, -1, 0, call_back, lookup);
  if ((flags & DNS_QUERY_NO_SEARCH) == 0) lookup->candidates.begin(base.search, name);
  if (Query* query = lookup->make_next()) {
    base.submit(*query);
    return lookup;
  }
  destroy(lookup);
  return nullptr;
}

evdns_request* start_locked(evdns_base* base, const char* name, std::uint16_t type, int flags,
                            evdns_callback_type callback, void* argument) {
  const Holding holding(base->lock);
  evdns_request wanted{};
  wanted.callback = callback;
  wanted.argument = argument;
  return start(*base, name, type, flags, wanted);
}

}  // namespace

Query* evdns_request::make_next() {
  NameText candidate;
  Query* next =
      candidates.next(name, candidate) ? base->make_query(candidate, type, this) : nullptr;
  if (next != nullptr) query = next;
  return next;
}

Query* evdns_request::next_query(const Answer& last) {
  const bool may_be_elsewhere = last.error != DNS_ERR_NONE && last.error != DNS_ERR_TIMEOUT;
  return may_be_elsewhere ? make_next() : nullptr;
}

void evdns_request::deliver(const Answer& whole) {
  query = nullptr;
  answer = whole;
  activate_deferred(deferred);
}

void evdns_request::deliver_error(int error) {
  Answer nothing{};
  nothing.error = error;
  deliver(nothing);
}

void evdns_request::forget() {
  if (listener != nullptr) listener->forgotten(argument);
  destroy(this);
}

evdns_request* dns::look_up(evdns_base& base, const char* name, std::uint16_t type, int flags,
                            const Listener& listener, void* argument) {
  evdns_request wanted{};
  wanted.listener = &listener;
  wanted.argument = argument;
  return start(base, name, type, flags, wanted);
}

// ---- the exported functions

evdns_request* evdns_base_resolve_ipv4(evdns_base* base, const char* name, int flags,
                                       evdns_callback_type callback, void* argument) {
  return start_locked(base, name, EVDNS_TYPE_A, flags, callback, argument);
}

evdns_request* evdns_base_resolve_ipv6(evdns_base* base, const char* name, int flags,
                                       evdns_callback_type callback, void* argument) {
  return start_locked(base, name, EVDNS_TYPE_AAAA, flags, callback, argument);
}

evdns_request* evdns_base_resolve_reverse(evdns_base* base, const in_addr* address, int,
                                          evdns_callback_type callback, void* argument) {
  std::uint8_t bytes[4];
  std::memcpy(bytes, address, sizeof bytes);
  char name[32];
  evutil_snprintf(name, sizeof name, "%d.%d.%d.%d.in-addr.arpa", bytes[3], bytes[2], bytes[1],
                  bytes[0]);
  return start_locked(base, name, EVDNS_TYPE_PTR, DNS_QUERY_NO_SEARCH, callback, argument);
}

evdns_request* evdns_base_resolve_reverse_ipv6(evdns_base* base, const in6_addr* address, int,
                                               evdns_callback_type callback, void* argument) {
  char name[80];
  char* end = name;
  for (int i = 15; i >= 0; --i) {
    const unsigned byte = address->s6_addr[i];
    end += evutil_snprintf(end, 5, "%x.%x.", byte & 15, byte >> 4);
  }
  std::memcpy(end, "ip6.arpa", sizeof "ip6.arpa");
  return start_locked(base, name, EVDNS_TYPE_PTR, DNS_QUERY_NO_SEARCH, callback, argument);
}

// If the answer has arrived already, it is still delivered.
void evdns_cancel_request(evdns_base* base, evdns_request* lookup) {
  if (base == nullptr) base = lookup->base;
  const Holding holding(base->lock);
  if (lookup->query == nullptr) return;
  base->drop(*lookup->query);
  lookup->deliver_error(DNS_ERR_CANCEL);
  base->start_waiting();
}
