#include "net/listen/listening_socket.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "net/port_group.h"
#include "net/socket_address.h"
#include "sys/file.h"
#include "sys/socket.h"

namespace spate {

namespace {

// Sets the options that must precede bind().
long prepare(int fd, const Address& address, const ListenOptions& options, Sharing sharing) {
  long result = 0;
  // Lets a restarted server bind while connections of the old one are in TIME_WAIT. Linux requires
  // the option on both sockets, so it is always set.
  if (address.is_ip()) result = sys::set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result >= 0 && sharing == Sharing::from_the_start) result = allow_sharing(fd);
  if (result >= 0 && address.family() == Address::Family::ipv6)
    result = sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, int{options.v6_only});
  return result;
}

// Sets optional TCP features: a kernel that refuses them does not prevent listening.
void tune(int fd, const ListenOptions& options) {
  if (!sys::is_tcp(fd)) return;
  const auto seconds = static_cast<int>(std::min<std::int64_t>(
      std::chrono::ceil<std::chrono::seconds>(std::min(options.defer_accept, kForever)).count(),
      INT_MAX));
  if (seconds > 0) sys::set_option(fd, IPPROTO_TCP, sys::kDeferAccept, seconds);
  if (options.fast_open > 0) sys::set_option(fd, IPPROTO_TCP, sys::kFastOpen, options.fast_open);
  if (options.max_unsent > 0)
    sys::set_option(fd, IPPROTO_TCP, sys::kMostUnsent, options.max_unsent);
}

bool is_path(const Address& address) {
  return address.family() == Address::Family::local && !address.is_abstract();
}

// Removes a socket file whose process has ended: connect() to it is refused. The probe has another
// type, to which a bound socket answers EPROTOTYPE. So the probe causes no connection, and works
// before listen(). Other files refuse the probe as well, and are not removed.
bool remove_stale(const Address& address) {
  if (!is_path(address)) return false;
  sys::Descriptor probe(sys::open_socket(AF_UNIX, SOCK_DGRAM));
  if (sys::connect(probe.get(), address.data(), address.size()) != -ECONNREFUSED) return false;
  return sys::remove_socket_file(std::string(address.name()).c_str()) >= 0;
}

// A server that starts at a path holds a lock until it listens. Otherwise another one that starts
// there might take its socket for a stale one, because the file exists before the socket is bound.
// If no lock can be made, the server starts without one. False if another server has the lock.
bool lock_path(sys::LockFile& lock, const Address& address) {
  return !is_path(address) || lock.lock(std::string(address.name()) + ".lock") != -EAGAIN;
}

long bind(int fd, const Address& address, const ListenOptions& options) {
  long result = sys::bind(fd, address.data(), address.size());
  if (result == -EADDRINUSE && options.replace_path && remove_stale(address))
    result = sys::bind(fd, address.data(), address.size());
  return result;
}

Result<sys::Descriptor> open(const Address& address, const ListenOptions& options,
                             Sharing sharing) {
  if (address.family() == Address::Family::none) return std::unexpected(sys::error_code(-EINVAL));
  const long opened = sys::open_socket(sys::family_of(address.data()), SOCK_STREAM);
  if (opened < 0) return std::unexpected(sys::error_code(opened));
  sys::Descriptor socket(opened);
  sys::LockFile lock;
  if (!lock_path(lock, address)) return std::unexpected(sys::error_code(-EADDRINUSE));
  long result = prepare(socket.get(), address, options, sharing);
  if (result >= 0) result = bind(socket.get(), address, options);
  if (result >= 0 && sharing == Sharing::once_bound) result = allow_sharing(socket.get());
  if (result >= 0) {
    tune(socket.get(), options);
    // Accepted sockets inherit it, which saves a system call for each connection.
    if (options.no_delay && sys::is_tcp(socket.get()))
      sys::set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    result = sys::listen(socket.get(), options.backlog);
  }
  if (result < 0) return std::unexpected(sys::error_code(result));
  return socket;
}

bool shares_port(int fd) {
  int on = 0;
  return sys::get_option(fd, SOL_SOCKET, SO_REUSEPORT, on) >= 0 && on != 0;
}

// These options have no effect after bind().
bool lacks_what_is_asked(int fd, const ListenOptions& options) {
  return (options.reuse_port && !shares_port(fd)) ||
         (options.v6_only && sys::domain_of(fd) == AF_INET6 && !sys::carries_ipv6_only(fd));
}

Result<sys::Descriptor> duplicate(const ListenOptions& options) {
  if (const auto error = prepare_listening_socket(options.socket, options))
    return std::unexpected(error);
  sys::Descriptor socket(sys::duplicate(options.socket));
  if (!socket.is_open()) return std::unexpected(sys::error_code(socket.get()));
  return socket;
}

}  // namespace

Result<sys::Descriptor> open_listening_socket(const Address& address,
                                              const ListenOptions& options) {
  if (options.socket >= 0) return duplicate(options);
  return open(address, options, options.reuse_port ? Sharing::from_the_start : Sharing::none);
}

Result<std::vector<sys::Descriptor>> open_listening_group(const Address& address,
                                                          const ListenOptions& options,
                                                          std::size_t count) {
  return open_port_group(
      address, options.reuse_port, count,
      [&options](const Address& at, Sharing sharing) { return open(at, options, sharing); });
}

std::error_code prepare_listening_socket(int fd, const ListenOptions& options) {
  int listens = 0;
  if (const long result = sys::get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, listens); result < 0)
    return sys::error_code(result);
  if (listens == 0 || lacks_what_is_asked(fd, options)) return sys::error_code(-EINVAL);
  const long result = sys::set_nonblocking(fd);
  if (result >= 0) tune(fd, options);
  return sys::error_code(result);
}

}  // namespace spate
