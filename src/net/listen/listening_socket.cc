#include "net/listen/listening_socket.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "net/socket_address.h"
#include "sys/socket.h"

namespace spate {

namespace {

// When SO_REUSEPORT is set. Sockets share an address if all set it before bind(); bind() refuses
// one that sets it later, if the address is in use.
enum class Sharing { none, once_bound, from_the_start };

long allow_sharing(int fd) { return sys::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); }

// The options that come before bind().
long prepare(int fd, const Address& address, const ListenOptions& options, Sharing sharing) {
  long result = 0;
  if (address.is_ip()) result = sys::set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result >= 0 && sharing == Sharing::from_the_start) result = allow_sharing(fd);
  if (result >= 0 && address.family() == Address::Family::ipv6)
    result = sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, int{options.v6_only});
  return result;
}

// Optional features of TCP: a kernel that refuses them does not prevent listening.
void tune(int fd, const ListenOptions& options) {
  if (!sys::is_tcp(fd)) return;
  const auto seconds = static_cast<int>(std::min<std::int64_t>(
      std::chrono::ceil<std::chrono::seconds>(std::min(options.defer_accept, kForever)).count(),
      INT_MAX));
  if (options.no_delay) sys::set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (seconds > 0) sys::set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds);
  if (options.fast_open > 0) sys::set_option(fd, IPPROTO_TCP, TCP_FASTOPEN, options.fast_open);
  if (options.max_unsent > 0)
    sys::set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, options.max_unsent);
}

// A socket file remains when its process ends. If connect() is refused, no process listens on it (a
// full backlog gives EAGAIN). Other files refuse, too, and are not removed.
bool remove_stale(const Address& address) {
  if (address.family() != Address::Family::local || address.is_abstract()) return false;
  sys::Descriptor probe(sys::open_socket(AF_UNIX, SOCK_STREAM));
  if (sys::connect(probe.get(), address.data(), address.size()) != -ECONNREFUSED) return false;
  return sys::remove_socket_file(std::string(address.name()).c_str()) >= 0;
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
  long result = prepare(socket.get(), address, options, sharing);
  if (result >= 0) result = bind(socket.get(), address, options);
  if (result >= 0 && sharing == Sharing::once_bound) result = allow_sharing(socket.get());
  if (result >= 0) {
    tune(socket.get(), options);
    result = sys::listen(socket.get(), options.backlog);
  }
  if (result < 0) return std::unexpected(sys::error_code(result));
  return socket;
}

}  // namespace

Result<sys::Descriptor> open_listening_socket(const Address& address,
                                              const ListenOptions& options) {
  return open(address, options, options.reuse_port ? Sharing::from_the_start : Sharing::none);
}

Result<std::vector<sys::Descriptor>> open_listening_group(const Address& address,
                                                          const ListenOptions& options,
                                                          std::size_t count) {
  std::vector<sys::Descriptor> group;
  Address bound = address;
  Sharing sharing = options.reuse_port ? Sharing::from_the_start : Sharing::once_bound;
  while (group.size() < count) {
    Result<sys::Descriptor> socket = open(bound, options, sharing);
    if (!socket) return std::unexpected(socket.error());
    bound = local_address_of(socket->get());
    sharing = Sharing::from_the_start;
    group.push_back(std::move(*socket));
  }
  return group;
}

std::error_code prepare_listening_socket(int fd) {
  int listens = 0;
  if (const long result = sys::get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, listens); result < 0)
    return sys::error_code(result);
  return sys::error_code(listens == 0 ? -EINVAL : sys::set_nonblocking(fd));
}

}  // namespace spate
