// The name servers: which one is queried next, which are down, and their sockets.
//
// Semantics: event2/dns.h ("Internals", evdns_base_nameserver_add and the functions after it);
// probed: the order, the times and the failures that mark a server as down.
//
// An answer is accepted only from the queried address and port: libevent ignores the port.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "compat/libevent/dns/log.h"
#include "compat/libevent/dns/lookup.h"
#include "compat/libevent/dns/resolver.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

constexpr std::size_t kMessageMost = 4096;
constexpr int kMessagesInTurn = 64;  // For one server, so that a flood does not block the others.
constexpr std::int64_t kProbeBackoff = 3;
constexpr std::string_view kProbedName = "google.com";

constexpr int kNothingLeft = 1;  // No memory, or no socket of the address's family.
constexpr int kUnusable = 2;
constexpr int kKnown = 3;

// Text for a line of the log.
struct Shown {
  explicit Shown(const Nameserver& server) {
    char host[INET6_ADDRSTRLEN] = "?";
    const int family = server.address.any.sa_family;
    const bool is_ipv6 = family == AF_INET6;
    const void* bytes = is_ipv6 ? static_cast<const void*>(&server.address.ipv6.sin6_addr)
                                : &server.address.ipv4.sin_addr;
    if (is_ipv6 || family == AF_INET) evutil_inet_ntop(family, bytes, host, sizeof host);
    evutil_snprintf(text, sizeof text, is_ipv6 ? "[%s]:%d" : "%s:%d", host,
                    ntohs(server.address.ipv4.sin_port));
  }
  char text[INET6_ADDRSTRLEN + 8];
};

void on_readable(evutil_socket_t, short, void* argument) {
  auto& server = *static_cast<Nameserver*>(argument);
  const Holding holding(server.base->lock);
  if (!server.is_gone) server.base->read_from(server);
}

void on_writable(evutil_socket_t, short, void* argument) {
  auto& server = *static_cast<Nameserver*>(argument);
  const Holding holding(server.base->lock);
  if (!server.is_gone) server.base->writable_again(server);
}

bool set_size(int fd, int option, int size) {
  return size == 0 || setsockopt(fd, SOL_SOCKET, option, &size, sizeof size) == 0;
}

// A server on this machine is queried from any local address, whatever the program binds to.
bool is_loopback(const Address& address) {
  if (address.any.sa_family == AF_INET) {
    return ntohl(address.ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.ipv6.sin6_addr);
}

bool set_up(int fd, const Address& address, const Options& options) {
  const bool binds = options.bind_to_size != 0 && !is_loopback(address);
  return set_size(fd, SO_RCVBUF, options.receive_buffer) &&
         set_size(fd, SO_SNDBUF, options.send_buffer) &&
         (!binds || bind(fd, &options.bind_to.any, options.bind_to_size) == 0);
}

// Returns 0, or the reason for failure; then it is closed, and errno has the error.
int open_socket(int family, const Address& address, const Options& options, int& fd) {
  fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return kNothingLeft;
  if (set_up(fd, address, options)) return 0;
  const int error = errno;
  evutil_closesocket(fd);
  errno = error;
  return kUnusable;
}

bool is_from(const Nameserver& server, const Address& sender) {
  const sockaddr& address = server.address.any;
  const bool is_inet = address.sa_family == AF_INET || address.sa_family == AF_INET6;
  return !is_inet || evutil_sockaddr_cmp(&sender.any, &address, 1) == 0;
}

void destroy(Nameserver& server) {
  event_del(&server.readable);
  event_del(&server.writable);
  event_debug_unassign(&server.readable);
  event_debug_unassign(&server.writable);
  evutil_closesocket(server.fd);
  release(&server);
}

}  // namespace

// ---- adding and taking away

int evdns_base::add_server(const sockaddr* address, socklen_t size) {
  const Nameserver* known = head_;
  for (int i = 0; i < server_count_; ++i, known = known->next) {
    if (evutil_sockaddr_cmp(address, &known->address.any, 1) == 0) return kKnown;
  }
  if (size > sizeof(Address)) return kUnusable;
  auto* server = static_cast<Nameserver*>(allocate_zeroed(sizeof(Nameserver)));
  if (server == nullptr) return kNothingLeft;
  std::memcpy(&server->address, address, size);
  server->address_size = size;
  const int problem = open_socket(address->sa_family, server->address, options, server->fd);
  if (problem != 0) {
    log(Note::warning, "a name server cannot be added: %s", std::strerror(errno));
    release(server);
    return problem;
  }
  server->base = this;
  server->probe_at = kNever;
  server->is_up = true;
  event_assign(&server->readable, loop, server->fd, EV_READ | EV_PERSIST, on_readable, server);
  event_assign(&server->writable, loop, server->fd, EV_WRITE, on_writable, server);
  if (!rests_when_idle && event_add(&server->readable, nullptr) != 0) {
    destroy(*server);
    return kUnusable;
  }
  if (head_ == nullptr) head_ = server->next = server;
  server->next = std::exchange(head_->next, server);
  if (server_count_++ == 0) server->next = server;
  ++up_count_;
  return 0;
}

Nameserver* evdns_base::server_at(int index) const {
  if (index >= server_count_) return nullptr;
  Nameserver* server = head_;
  for (; index > 0; --index) server = server->next;
  return server;
}

Nameserver* evdns_base::unlink_servers() {
  while (Query* query = in_flight_.last()) {
    land(*query);
    if (query->probed != nullptr) {
      release(query);
    } else {
      waiting_.push_front(*query);
    }
  }
  if (head_ == nullptr) return nullptr;
  Nameserver* first = std::exchange(head_->next, nullptr);  // Cuts the ring.
  for (Nameserver* server = first; server != nullptr; server = server->next) {
    server->is_gone = true;
  }
  head_ = nullptr;
  server_count_ = up_count_ = 0;
  arm_timer();
  return first;
}

void evdns_base::destroy_servers(Nameserver* servers) {
  while (servers != nullptr) {
    Nameserver* next = servers->next;
    destroy(*servers);
    servers = next;
  }
}

// ---- the choice of a server

Nameserver* evdns_base::pick() {
  if (head_ == nullptr) return nullptr;
  if (up_count_ == 0) return head_ = head_->next;
  while (!head_->is_up) head_ = head_->next;
  Nameserver* picked = head_;
  head_ = head_->next;
  return picked;
}

void evdns_base::note_in_flight(Nameserver& server, int change) {
  server.in_flight += change;
  if (!rests_when_idle) return;
  if (server.in_flight == 0) {
    event_del_noblock(&server.readable);
  } else if (server.in_flight == change) {
    event_add(&server.readable, nullptr);
  }
}

// ---- up and down

void evdns_base::server_is_up(Nameserver& server) {
  server.timeouts = 0;
  if (server.is_up) return;
  log(Note::message, "name server %s answers again", Shown(server).text);
  if (server.probe != nullptr) {  // Queries that waited for it go to other servers, as in libevent.
    drop(*std::exchange(server.probe, nullptr));
    start_waiting();
  }
  server.probe_at = kNever;
  server.failures = 0;
  server.is_up = true;
  ++up_count_;
}

// Servers that failed in the same turn are probed in order of failure.
std::int64_t evdns_base::probe_time(std::int64_t wait) const {
  std::int64_t time = now() + wait;
  const Nameserver* server = head_;
  for (int i = 0; i < server_count_; ++i, server = server->next) {
    const bool is_next_to_it = server->probe_at >= time && server->probe_at < time + server_count_;
    if (is_next_to_it) time = server->probe_at + 1;
  }
  return time;
}

void evdns_base::server_has_failed(Nameserver& server, const char* why) {
  if (!server.is_up) return;
  log(Note::message, "name server %s is down: %s", Shown(server).text, why);
  if (--up_count_ == 0) log(Note::message, "all name servers are down");
  server.is_up = false;
  server.failures = 1;
  server.probe_at = probe_time(options.first_probe);
  arm_timer();
  if (up_count_ == 0) return;
  for (Query* query = in_flight_.first(); query != nullptr; query = query->next) {
    if (query->sent == 0 && query->server == &server) assign(*query, pick());
  }
}

void evdns_base::send_probe(Nameserver& server) {
  server.probe_at = kNever;
  Query* query = make_query(kProbedName, EVDNS_TYPE_A, nullptr);
  if (query == nullptr) return note_probe(server, DNS_ERR_UNKNOWN);
  query->probed = &server;
  server.probe = query;
  server_for_next();  // A probe takes a server's turn like a query.
  launch(*query, server);
}

void evdns_base::note_probe(Nameserver& server, int error) {
  server.probe = nullptr;
  if (error == DNS_ERR_NONE || error == DNS_ERR_NOTEXIST) return server_is_up(server);
  if (server.is_up) return;
  std::int64_t wait = options.first_probe;
  for (int i = 0; i < server.failures && wait < kProbeMost; ++i) wait *= kProbeBackoff;
  ++server.failures;
  server.probe_at = probe_time(std::min(wait, kProbeMost));
  arm_timer();
}

// ---- sockets

void evdns_base::read_from(Nameserver& server) {
  for (int i = 0; i < kMessagesInTurn; ++i) {
    std::uint8_t bytes[kMessageMost];
    Address sender;
    socklen_t sender_size = sizeof sender;
    const ssize_t size = recvfrom(server.fd, bytes, sizeof bytes, 0, &sender.any, &sender_size);
    if (size < 0) {
      const bool is_over = errno == EAGAIN || errno == EINTR;
      if (!is_over) server_has_failed(server, std::strerror(errno));
      return;
    }
    if (!is_from(server, sender)) continue;
    server.timeouts = 0;  // They count in a row.
    take_message({bytes, static_cast<std::size_t>(size)});
  }
}

void evdns_base::writable_again(Nameserver& server) {
  server.is_full = false;
  transmit_unsent();
}
