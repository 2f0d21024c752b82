// The functions without an evdns_base: they use one for the whole program, on the loop of
// event_init().
//
// Semantics: event2/dns_compat.h; probed: which functions make it. The other functions of libevent
// crash without it; here they make it, or do nothing.
#include <utility>

#include "compat/libevent/dns_api.h"

namespace {

evdns_base* global_base;

evdns_base* made_base() {
  if (global_base == nullptr) global_base = evdns_base_new(nullptr, 0);
  return global_base;
}

int result_of(const evdns_request* lookup) { return lookup != nullptr ? 0 : -1; }

}  // namespace

evdns_base* evdns_get_global_base() { return global_base; }

int evdns_init() {
  evdns_base* base = evdns_base_new(nullptr, EVDNS_BASE_INITIALIZE_NAMESERVERS);
  if (base == nullptr) return -1;
  global_base = base;
  return 0;
}

void evdns_shutdown(int fail_requests) {
  evdns_base* base = std::exchange(global_base, nullptr);
  if (base != nullptr) evdns_base_free(base, fail_requests);
}

int evdns_nameserver_add(unsigned long address) {
  evdns_base* base = made_base();
  return base != nullptr ? evdns_base_nameserver_add(base, address) : -1;
}

int evdns_nameserver_ip_add(const char* text) {
  evdns_base* base = made_base();
  return base != nullptr ? evdns_base_nameserver_ip_add(base, text) : -1;
}

int evdns_count_nameservers() {
  return global_base != nullptr ? evdns_base_count_nameservers(global_base) : 0;
}

int evdns_clear_nameservers_and_suspend() {
  return global_base != nullptr ? evdns_base_clear_nameservers_and_suspend(global_base) : 0;
}

int evdns_resume() { return global_base != nullptr ? evdns_base_resume(global_base) : 0; }

int evdns_set_option(const char* option, const char* value, int) {
  evdns_base* base = made_base();
  return base != nullptr ? evdns_base_set_option(base, option, value) : -1;
}

int evdns_resolv_conf_parse(int flags, const char* const filename) {
  evdns_base* base = made_base();
  return base != nullptr ? evdns_base_resolv_conf_parse(base, flags, filename) : -1;
}

void evdns_search_clear() {
  if (global_base != nullptr) evdns_base_search_clear(global_base);
}

void evdns_search_add(const char* domain) {
  evdns_base* base = made_base();
  if (base != nullptr) evdns_base_search_add(base, domain);
}

void evdns_search_ndots_set(int ndots) {
  evdns_base* base = made_base();
  if (base != nullptr) evdns_base_search_ndots_set(base, ndots);
}

int evdns_resolve_ipv4(const char* name, int flags, evdns_callback_type callback, void* argument) {
  evdns_base* base = made_base();
  if (base == nullptr) return -1;
  return result_of(evdns_base_resolve_ipv4(base, name, flags, callback, argument));
}

int evdns_resolve_ipv6(const char* name, int flags, evdns_callback_type callback, void* argument) {
  evdns_base* base = made_base();
  if (base == nullptr) return -1;
  return result_of(evdns_base_resolve_ipv6(base, name, flags, callback, argument));
}

int evdns_resolve_reverse(const in_addr* address, int flags, evdns_callback_type callback,
                          void* argument) {
  evdns_base* base = made_base();
  if (base == nullptr) return -1;
  return result_of(evdns_base_resolve_reverse(base, address, flags, callback, argument));
}

int evdns_resolve_reverse_ipv6(const in6_addr* address, int flags, evdns_callback_type callback,
                               void* argument) {
  evdns_base* base = made_base();
  if (base == nullptr) return -1;
  return result_of(evdns_base_resolve_reverse_ipv6(base, address, flags, callback, argument));
}

evdns_server_port* evdns_add_server_port(evutil_socket_t socket, int flags,
                                         evdns_request_callback_fn_type callback, void* argument) {
  return evdns_add_server_port_with_base(nullptr, socket, flags, callback, argument);
}
