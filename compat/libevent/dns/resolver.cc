// The functions of an evdns_base: making it, its servers, its search list, its hosts.
//
// Semantics: event2/dns.h; probed: return values, odd flags and odd addresses.
#include "compat/libevent/dns/resolver.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "compat/libevent/dns/config_file.h"
#include "compat/libevent/dns/log.h"
#include "compat/libevent/dns/lookup.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

constexpr int kKnownFlags = EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE |
                            EVDNS_BASE_NAMESERVERS_NO_DEFAULT;
constexpr int kNotAnAddress = 4;

void on_timer(evutil_socket_t, short, void* argument) {
  auto& base = *static_cast<evdns_base*>(argument);
  const Holding holding(base.lock);
  if (!base.is_freed) base.run_due();
}

// Unknown flags select the most common configuration.
int checked(int flags) {
  if ((flags & ~kKnownFlags) == 0) return flags;
  log(Note::warning, "evdns_base_new: unknown flags; the name servers of the system are used");
  return flags | EVDNS_BASE_INITIALIZE_NAMESERVERS;
}

bool reads_resolv_conf(evdns_base* base, int flags) {
  int parts = DNS_OPTIONS_ALL;
  if ((flags & EVDNS_BASE_NAMESERVERS_NO_DEFAULT) != 0) parts |= DNS_OPTION_NAMESERVERS_NO_DEFAULT;
  return evdns_base_resolv_conf_parse(base, parts, "/etc/resolv.conf") == 0;
}

// Needs the lock, and releases it meanwhile: see resolver.h.
void remove_servers(evdns_base& base) {
  Nameserver* servers = base.unlink_servers();
  give_back(base.lock);
  evdns_base::destroy_servers(servers);
  acquire(base.lock);
}

int add_address(evdns_base* base, const sockaddr* address, int size) {
  const Holding holding(base->lock);
  return base->add_server(address, static_cast<socklen_t>(size));
}

void replace(SearchList*& list, SearchList* other) {
  if (other == nullptr) return;
  SearchList::give_up(list);
  list = other;
}

}  // namespace

evdns_base* evdns_base_new(event_base* loop, int flags) {
  flags = checked(flags);
  auto* base = static_cast<evdns_base*>(allocate_zeroed(sizeof(evdns_base)));
  if (base == nullptr) return nullptr;
  base->loop = loop;
  base->lock = make_lock();
  new (&base->options) Options;
  base->rests_when_idle = (flags & EVDNS_BASE_DISABLE_WHEN_INACTIVE) != 0;
  event_assign(&base->timer, loop, -1, 0, on_timer, base);
  const bool initializes = (flags & EVDNS_BASE_INITIALIZE_NAMESERVERS) != 0;
  if (!initializes || reads_resolv_conf(base, flags)) return base;
  evdns_base_free(base, 0);
  return nullptr;
}

void evdns_base_free(evdns_base* base, int fail_requests) {
  if (base == nullptr) base = evdns_get_global_base();
  if (base == nullptr) return;
  acquire(base->lock);
  base->is_freed = true;
  base->shut_down(fail_requests != 0);
  orphan_address_requests(*base);
  remove_servers(*base);
  base->hosts.clear();
  SearchList::give_up(base->search);
  give_back(base->lock);
  event_del(&base->timer);
  event_debug_unassign(&base->timer);
  free_lock(base->lock);
  release(base);
}

// ---- servers

int evdns_base_nameserver_add(evdns_base* base, unsigned long address) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(kServerPort);
  ipv4.sin_addr.s_addr = static_cast<in_addr_t>(address);
  return add_address(base, reinterpret_cast<const sockaddr*>(&ipv4), sizeof ipv4);
}

int evdns_base_nameserver_ip_add(evdns_base* base, const char* text) {
  Address address;
  int size = sizeof address;
  if (evutil_parse_sockaddr_port(text, &address.any, &size) != 0) {
    log(Note::warning, "\"%s\" is not the address of a name server", text);
    return kNotAnAddress;
  }
  // The port of an IPv6 address is at the same place.
  if (address.ipv4.sin_port == 0) address.ipv4.sin_port = htons(kServerPort);
  return add_address(base, &address.any, size);
}

int evdns_base_nameserver_sockaddr_add(evdns_base* base, const sockaddr* address, ev_socklen_t size,
                                       unsigned) {
  return add_address(base, address, static_cast<int>(size));
}

int evdns_base_count_nameservers(evdns_base* base) {
  const Holding holding(base->lock);
  return base->server_count();
}

int evdns_base_get_nameserver_addr(evdns_base* base, int index, sockaddr* address,
                                   ev_socklen_t size) {
  const Holding holding(base->lock);
  const Nameserver* server = base->server_at(index);
  if (server == nullptr) return -1;
  if (server->address_size <= static_cast<socklen_t>(std::max<int>(size, 0))) {
    std::memcpy(address, &server->address, server->address_size);
  }
  return static_cast<int>(server->address_size);
}

int evdns_base_clear_nameservers_and_suspend(evdns_base* base) {
  const Holding holding(base->lock);
  remove_servers(*base);
  return 0;
}

int evdns_base_resume(evdns_base* base) {
  const Holding holding(base->lock);
  base->start_waiting();
  return 0;
}

// ---- the search list

void evdns_base_search_clear(evdns_base* base) {
  const Holding holding(base->lock);
  SearchList::give_up(std::exchange(base->search, nullptr));
}

// Adds them before the existing ones.
void evdns_base_search_add(evdns_base* base, const char* domain) {
  const Holding holding(base->lock);
  replace(base->search, SearchList::with_domain(base->search, domain, SearchList::Place::first));
}

void evdns_base_search_ndots_set(evdns_base* base, int ndots) {
  const Holding holding(base->lock);
  replace(base->search, SearchList::with_ndots(base->search, ndots));
}

// ---- hosts

int evdns_base_load_hosts(evdns_base* base, const char* path) {
  const Holding holding(base->lock);
  ConfigFile file;
  if (path == nullptr) return base->hosts.add_localhost() ? 0 : -1;
  if (file.read(path) != ConfigFile::Result::is_read) {
    base->hosts.add_localhost();
    return -1;
  }
  return base->hosts.add_all(file.text()) ? 0 : -1;
}

void evdns_base_clear_host_addresses(evdns_base* base) {
  const Holding holding(base->lock);
  base->hosts.clear();
}
