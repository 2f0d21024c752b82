// evdns_getaddrinfo: addresses of both families, as getaddrinfo(3) gives them, without blocking.
//
// Semantics: event2/dns.h, getaddrinfo(3); probed: the order of the addresses, how long one
// family's answer waits for the other's, and which of two errors is reported.
//
// Threads: the base's lock guards the following. The request has two lookups at most; it is freed
// when both have called back, or were forgotten, and the program's callback has run.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "compat/libevent/dns/lookup.h"
#include "compat/libevent/dns/resolver.h"
#include "compat/libevent/evutil/address_list.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/timeval.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

constexpr long kPortMost = 65535;

struct Family {
  evdns_getaddrinfo_request* request;
  evdns_request* lookup;  // Null before and after.
  evutil_addrinfo* found;
};

}  // namespace

struct evdns_getaddrinfo_request {
  evdns_base* base;  // Null once it is freed; then only the program's callback is pending.
  evdns_getaddrinfo_request* previous;
  evdns_getaddrinfo_request* next;
  event skew;  // One answer has waited long enough for the other.
  Family ipv4;
  Family ipv6;
  evutil_addrinfo hints;
  ev_uint16_t port;
  int error;  // The last one.
  bool is_cancelled;
  char* canonical;
  evdns_getaddrinfo_cb callback;
  void* argument;
};

namespace {

// ---- without a server

void infer_protocol(evutil_addrinfo& hints) {
  if (hints.ai_socktype == 0) {
    if (hints.ai_protocol == IPPROTO_TCP) hints.ai_socktype = SOCK_STREAM;
    if (hints.ai_protocol == IPPROTO_UDP) hints.ai_socktype = SOCK_DGRAM;
  } else if (hints.ai_protocol == 0) {
    if (hints.ai_socktype == SOCK_STREAM) hints.ai_protocol = IPPROTO_TCP;
    if (hints.ai_socktype == SOCK_DGRAM) hints.ai_protocol = IPPROTO_UDP;
  }
}

// Returns the port in network byte order. Returns false for an unknown service.
bool read_port(const char* service, const evutil_addrinfo& hints, ev_uint16_t& port) {
  port = 0;
  if (service == nullptr) return true;
  char* end;
  const long number = std::strtol(service, &end, 10);
  if (end != service && *end == '\0') {
    port = htons(static_cast<ev_uint16_t>(number));
    return number >= 0 && number <= kPortMost;
  }
  if (service[0] == '\0' || (hints.ai_flags & EVUTIL_AI_NUMERICSERV) != 0) return false;
  const char* protocol = hints.ai_protocol == IPPROTO_TCP   ? "tcp"
                         : hints.ai_protocol == IPPROTO_UDP ? "udp"
                                                            : nullptr;
  char buffer[1024];
  servent entry;
  servent* found = nullptr;
  if (getservbyname_r(service, protocol, &entry, buffer, sizeof buffer, &found) != 0) return false;
  if (found != nullptr) port = static_cast<ev_uint16_t>(found->s_port);
  return found != nullptr && (protocol == nullptr || std::strcmp(found->s_proto, protocol) == 0);
}

bool wants(const evutil_addrinfo& hints, int family) {
  return hints.ai_family == AF_UNSPEC || hints.ai_family == family;
}

evutil_addrinfo* list_of(const in_addr& address, ev_uint16_t port, const evutil_addrinfo& hints) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr = address;
  return make_address_list(reinterpret_cast<sockaddr&>(ipv4), sizeof ipv4, port, hints);
}

evutil_addrinfo* list_of(const in6_addr& address, unsigned scope, ev_uint16_t port,
                         const evutil_addrinfo& hints) {
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_addr = address;
  ipv6.sin6_scope_id = scope;
  return make_address_list(reinterpret_cast<sockaddr&>(ipv6), sizeof ipv6, port, hints);
}

// A null name is this machine, or all of its addresses.
evutil_addrinfo* unnamed(ev_uint16_t port, const evutil_addrinfo& hints) {
  const bool is_passive = (hints.ai_flags & EVUTIL_AI_PASSIVE) != 0;
  evutil_addrinfo* list = nullptr;
  if (wants(hints, AF_INET)) {
    list = list_of({htonl(is_passive ? INADDR_ANY : INADDR_LOOPBACK)}, port, hints);
  }
  if (!wants(hints, AF_INET6)) return list;
  const in6_addr& address = is_passive ? in6addr_any : in6addr_loopback;
  return join_address_lists(list, list_of(address, 0, port, hints));
}

// Parses a name that is an address itself; returns null if it is of no requested family.
evutil_addrinfo* numeric(const char* name, ev_uint16_t port, const evutil_addrinfo& hints) {
  in6_addr ipv6;
  unsigned scope;
  if (wants(hints, AF_INET6) && evutil_inet_pton_scope(AF_INET6, name, &ipv6, &scope) == 1) {
    return list_of(ipv6, scope, port, hints);
  }
  in_addr ipv4;
  if (wants(hints, AF_INET) && evutil_inet_pton(AF_INET, name, &ipv4) == 1) {
    return list_of(ipv4, port, hints);
  }
  return nullptr;
}

evutil_addrinfo* from_hosts(const Hosts& hosts, const char* name, ev_uint16_t port,
                            const evutil_addrinfo& hints) {
  evutil_addrinfo* list = nullptr;
  const Host* host = nullptr;
  while ((host = hosts.find(name, host)) != nullptr) {
    if (!wants(hints, host->address.sin6_family)) continue;
    const auto& address = reinterpret_cast<const sockaddr&>(host->address);
    list = join_address_lists(list, make_address_list(address, host->address_size, port, hints));
  }
  return list;
}

bool is_link_local(const sockaddr& address) {
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 ipv6;
  std::memcpy(&ipv6, &address, sizeof ipv6);
  return IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr);
}

// With AI_ADDRCONFIG, a family is not looked up if the machine has only loopback and link-local
// addresses of it, unless that holds for both.
bool is_configured(const ifaddrs* all, int family) {
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) == 0 && !is_link_local(*one->ifa_addr)) return true;
  }
  return false;
}

void keep_configured(evutil_addrinfo& hints) {
  if ((hints.ai_flags & EVUTIL_AI_ADDRCONFIG) == 0 || hints.ai_family != AF_UNSPEC) return;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  const bool has_ipv4 = is_configured(all, AF_INET);
  const bool has_ipv6 = is_configured(all, AF_INET6);
  freeifaddrs(all);
  if (has_ipv4 != has_ipv6) hints.ai_family = has_ipv4 ? AF_INET : AF_INET6;
}

// ---- the answers of servers

int error_of(int error) {
  switch (error) {
    case DNS_ERR_NOTEXIST:
      return EVUTIL_EAI_NONAME;
    default:
      return EVUTIL_EAI_FAIL;
  }
}

bool is_pending(const evdns_getaddrinfo_request& request) {
  return request.ipv4.lookup != nullptr || request.ipv6.lookup != nullptr;
}

void* lock_of(const evdns_getaddrinfo_request& request) {
  return request.base != nullptr ? request.base->lock : nullptr;
}

void link(evdns_getaddrinfo_request& request) {
  evdns_getaddrinfo_request*& first = request.base->address_requests;
  request.next = first;
  if (first != nullptr) first->previous = &request;
  first = &request;
}

void unlink(evdns_getaddrinfo_request& request) {
  if (request.base == nullptr) return;
  if (request.next != nullptr) request.next->previous = request.previous;
  (request.previous != nullptr ? request.previous->next : request.base->address_requests) =
      request.next;
}

// Unlinked.
void destroy(evdns_getaddrinfo_request* request) {
  event_debug_unassign(&request->skew);
  free_own_address_list(request->ipv4.found);
  free_own_address_list(request->ipv6.found);
  release(request->canonical);
  release(request);
}

// Without the lock: the request has no other user any more.
void tell(evdns_getaddrinfo_request* request) {
  const evdns_getaddrinfo_cb callback = request->callback;
  void* argument = request->argument;
  evutil_addrinfo* list = nullptr;
  int error = EVUTIL_EAI_CANCEL;
  if (!request->is_cancelled) {
    list = join_address_lists(std::exchange(request->ipv4.found, nullptr),
                              std::exchange(request->ipv6.found, nullptr));
    error = list != nullptr ? 0 : request->error;
  }
  if (list != nullptr) list->ai_canonname = std::exchange(request->canonical, nullptr);
  destroy(request);
  callback(error, list, argument);
}

void wait_for_other(evdns_getaddrinfo_request& request) {
  const timeval time = timeval_of(request.base != nullptr ? request.base->options.skew : 0);
  event_add(&request.skew, &time);
}

void take(Family& family, const Answer& answer) {
  evdns_getaddrinfo_request& request = *family.request;
  const bool is_ipv4 = &family == &request.ipv4;
  if (answer.error == DNS_ERR_CANCEL) return;  // The other answer counts.
  if (answer.error != DNS_ERR_NONE) {
    request.error = error_of(answer.error);
    return;
  }
  for (int i = 0; i < answer.count; ++i) {
    evutil_addrinfo* one = is_ipv4 ? list_of(answer.ipv4[i], request.port, request.hints)
                                   : list_of(answer.ipv6[i], 0, request.port, request.hints);
    if (one == nullptr) request.error = EVUTIL_EAI_MEMORY;
    family.found = join_address_lists(family.found, one);
  }
  const bool wants_name = (request.hints.ai_flags & EVUTIL_AI_CANONNAME) != 0;
  if (wants_name && answer.canonical[0] != '\0' && request.canonical == nullptr) {
    request.canonical = duplicate(answer.canonical);
  }
}

// The first answer waits for the other one, whatever it is; the last one completes the request.
void answered(const Answer& answer, void* argument) {
  Family& family = *static_cast<Family*>(argument);
  evdns_getaddrinfo_request* request = family.request;
  {
    const Holding holding(lock_of(*request));
    family.lookup = nullptr;
    take(family, answer);
    if (is_pending(*request)) {
      if (!request->is_cancelled) wait_for_other(*request);
      return;
    }
    unlink(*request);
  }
  event_del(&request->skew);
  tell(request);
}

void forgotten(void* argument) {
  Family& family = *static_cast<Family*>(argument);
  evdns_getaddrinfo_request* request = family.request;
  family.lookup = nullptr;
  if (is_pending(*request)) return;
  unlink(*request);
  event_del_noblock(&request->skew);
  destroy(request);
}

constexpr Listener kListener = {answered, forgotten};

// Needs the lock. Each lookup ends with an error, and the last one calls the program.
void cancel_lookups(evdns_getaddrinfo_request& request) {
  for (Family* family : {&request.ipv4, &request.ipv6}) {
    if (family->lookup != nullptr) evdns_cancel_request(request.base, family->lookup);
  }
}

void on_skew(evutil_socket_t, short, void* argument) {
  auto& request = *static_cast<evdns_getaddrinfo_request*>(argument);
  const Holding holding(lock_of(request));
  cancel_lookups(request);
}

void start(Family& family, evdns_getaddrinfo_request& request, const char* name,
           std::uint16_t type) {
  family.request = &request;
  family.lookup = look_up(*request.base, name, type, 0, kListener, &family);
}

evdns_getaddrinfo_request* start(evdns_base& base, const char* name, ev_uint16_t port,
                                 const evutil_addrinfo& hints, evdns_getaddrinfo_cb callback,
                                 void* argument) {
  auto* request =
      static_cast<evdns_getaddrinfo_request*>(allocate_zeroed(sizeof(evdns_getaddrinfo_request)));
  if (request == nullptr) return nullptr;
  request->base = &base;
  request->hints = hints;
  request->port = port;
  request->callback = callback;
  request->argument = argument;
  event_assign(&request->skew, base.loop, -1, 0, on_skew, request);
  if (wants(hints, AF_INET)) start(request->ipv4, *request, name, EVDNS_TYPE_A);
  if (wants(hints, AF_INET6)) start(request->ipv6, *request, name, EVDNS_TYPE_AAAA);
  if (is_pending(*request)) {
    link(*request);
    return request;
  }
  destroy(request);
  return nullptr;
}

// Answers that need no server.
bool is_numeric(const evutil_addrinfo* hints) {
  return hints != nullptr && (hints->ai_flags & EVUTIL_AI_NUMERICHOST) != 0;
}

// Returns 0 without a list if the servers must be queried.
int answer_at_once(const char* name, const char* service, evutil_addrinfo& hints, ev_uint16_t& port,
                   evutil_addrinfo*& list) {
  const bool is_known =
      wants(hints, AF_INET) || wants(hints, AF_INET6) || hints.ai_family == AF_UNSPEC;
  if (name == nullptr && service == nullptr) return EVUTIL_EAI_NONAME;
  if (!is_known) return EVUTIL_EAI_FAMILY;
  infer_protocol(hints);
  if (!read_port(service, hints, port)) return EVUTIL_EAI_NONAME;
  list = name == nullptr ? unnamed(port, hints) : numeric(name, port, hints);
  if (list != nullptr) return 0;
  return name == nullptr ? EVUTIL_EAI_MEMORY : 0;
}

}  // namespace

void dns::orphan_address_requests(evdns_base& base) {
  while (evdns_getaddrinfo_request* first = base.address_requests) {
    unlink(*first);
    first->base = nullptr;
  }
}

// ---- the exported functions

evdns_getaddrinfo_request* evdns_getaddrinfo(evdns_base* base, const char* name,
                                             const char* service, const evutil_addrinfo* hints_in,
                                             evdns_getaddrinfo_cb callback, void* argument) {
  if (base == nullptr) base = evdns_get_global_base();
  if (base == nullptr) {
    warnx("evdns_getaddrinfo: there is no evdns_base");
    callback(EVUTIL_EAI_FAIL, nullptr, argument);
    return nullptr;
  }
  evutil_addrinfo* list = nullptr;
  if (is_numeric(hints_in)) {
    const int error = evutil_getaddrinfo(name, service, hints_in, &list);
    callback(error, list, argument);
    return nullptr;
  }
  evutil_addrinfo hints{};
  if (hints_in != nullptr) hints = *hints_in;
  ev_uint16_t port = 0;
  int error = answer_at_once(name, service, hints, port, list);
  if (error == 0 && list == nullptr) {
    keep_configured(hints);
    const Holding holding(base->lock);
    list = from_hosts(base->hosts, name, port, hints);
    if (list == nullptr) {
      evdns_getaddrinfo_request* request = start(*base, name, port, hints, callback, argument);
      if (request != nullptr) return request;
      error = EVUTIL_EAI_FAIL;
    }
  }
  callback(error, list, argument);
  return nullptr;
}

void evdns_getaddrinfo_cancel(evdns_getaddrinfo_request* request) {
  const Holding holding(lock_of(*request));
  if (std::exchange(request->is_cancelled, true)) return;
  event_del_noblock(&request->skew);
  cancel_lookups(*request);
}
