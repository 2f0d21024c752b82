// Connecting the socket of a bufferevent.
//
// Semantics: event2/bufferevent.h (bufferevent_socket_connect and the functions after it); probed:
// which failures are returned, and which are reported to the event callback.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>

#include "compat/libevent/bufferevent/socket.h"
#include "compat/libevent/dns_api.h"

using namespace spate::libevent;

namespace {

constexpr int kPortMost = 65535;

enum class Attempt { waits, is_connected, was_refused, failed };

Attempt attempt(evutil_socket_t fd, const sockaddr* address, int size) {
  if (connect(fd, address, static_cast<socklen_t>(size)) == 0) return Attempt::is_connected;
  if (errno == EINPROGRESS || errno == EINTR) return Attempt::waits;
  return errno == ECONNREFUSED ? Attempt::was_refused : Attempt::failed;
}

// From here on the loop reports the result. A connection that succeeded at once is reported when it
// is writable.
int wait_for(SocketConnection& connection, Attempt attempt) {
  if (attempt == Attempt::was_refused) {
    bufferevent_disable(&connection, EV_READ | EV_WRITE);
    errno = ECONNREFUSED;
    connection.call_event(BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
    return 0;
  }
  connection.is_connecting = true;
  if (attempt == Attempt::is_connected) {
    connection.trigger(EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
    return 0;
  }
  if (add_event(connection.ev_write, connection.timeout_write) == 0) return 0;
  connection.is_connecting = false;
  return -1;
}

// Passes the descriptor to the filters above the socket, too: a TLS filter begins a handshake.
void set_descriptor(bufferevent& top, evutil_socket_t fd) {
  enable_below(&top);
  bufferevent_setfd(&top, fd);
}

int connect_own(bufferevent& top, SocketConnection& connection, const sockaddr* address,
                int size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const Attempt result = attempt(fd, address, size);
  if (result == Attempt::failed) {
    const int error = errno;
    evutil_closesocket(fd);
    errno = error;
    return -1;
  }
  set_descriptor(top, fd);
  return wait_for(connection, result);
}

// The arguments of a name lookup.
struct Lookup {
  Lookup(int family, int port) {
    std::snprintf(service, sizeof service, "%d", port);
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;
  }
  char service[8];
  evutil_addrinfo hints{};
};

// Needs the lock. Connects to the first address, and starts the enabled events.
void end_lookup(Connection& connection, int error, evutil_addrinfo* found) {
  connection.make_extras()->lookup_error = error;  // Made when the lookup began.
  connection.resume_writing(kRestLookup);
  connection.resume_reading(kRestLookup);
  const bool is_trying = error == 0 && found != nullptr &&
                         bufferevent_socket_connect(&connection, found->ai_addr,
                                                    static_cast<int>(found->ai_addrlen)) == 0;
  if (found != nullptr) evutil_freeaddrinfo(found);
  if (!is_trying) connection.call_event(BEV_EVENT_ERROR, 0);
}

// Also for one that the program has freed meanwhile, as libevent does.
void on_found(int error, evutil_addrinfo* found, void* argument) {
  auto& connection = *static_cast<Connection*>(argument);
  const Keep keep(&connection);
  connection.give_up();
  end_lookup(connection, error, found);
}

bool is_known(int family) { return family == AF_INET || family == AF_INET6 || family == AF_UNSPEC; }

}  // namespace

int bufferevent_socket_connect(bufferevent* bev, const sockaddr* address, int size) {
  const Keep keep(bev);
  SocketConnection* connection = lowest_socket_of(bev);
  if (connection == nullptr) return -1;
  const evutil_socket_t fd = bufferevent_getfd(bev);
  if (fd < 0) return address != nullptr ? connect_own(*bev, *connection, address, size) : -1;
  if (address == nullptr) return wait_for(*connection, Attempt::waits);
  const Attempt result = attempt(fd, address, size);
  if (result == Attempt::failed) return -1;
  set_descriptor(*bev, fd);
  return wait_for(*connection, result);
}

// Without an evdns_base the lookup blocks.
int bufferevent_socket_connect_hostname(bufferevent* bev, evdns_base* base, int family,
                                        const char* name, int port) {
  if (!is_known(family) || port < 1 || port > kPortMost) return -1;
  const Keep keep(bev);
  if (lowest_socket_of(bev) == nullptr) return -1;
  Connection& connection = connection_of(bev);
  Extras* extras = connection.make_extras();
  if (extras == nullptr) return -1;
  const Lookup lookup(family, port);
  connection.rest_writing(kRestLookup);
  connection.rest_reading(kRestLookup);
  extras->lookup_error = 0;
  if (base != nullptr) {
    connection.take();
    evdns_getaddrinfo(base, name, lookup.service, &lookup.hints, on_found, &connection);
    return 0;
  }
  evutil_addrinfo* found = nullptr;
  const int error = evutil_getaddrinfo(name, lookup.service, &lookup.hints, &found);
  end_lookup(connection, error, found);
  return 0;
}

int bufferevent_socket_get_dns_error(bufferevent* bev) {
  const Keep keep(bev);
  return connection_of(bev).extras().lookup_error;
}
