// Datagram: makes sockets and sets options; forwards other calls to its DatagramSocket.
#include "spate/net/datagram.h"

#include <cerrno>

#include "net/datagram/datagram_socket.h"
#include "net/socket_address.h"
#include "spate/assert.h"
#include "sys/datagram.h"

namespace spate {

namespace {

std::unexpected<std::error_code> failed(long result) {
  return std::unexpected(sys::error_code(result));
}

std::error_code closed() { return sys::error_code(-EBADF); }

struct Option {
  bool wanted;
  int level;
  int name;
};

long set_all(int fd, std::span<const Option> options) {
  for (const Option& option : options) {
    if (!option.wanted) continue;
    if (const long result = sys::set_option(fd, option.level, option.name, 1); result < 0)
      return result;
  }
  return 0;
}

bool is_ipv6(int fd) { return sys::domain_of(fd) == AF_INET6; }
bool is_ip(int fd) { return sys::domain_of(fd) == AF_INET || is_ipv6(fd); }

// Sets the options that must precede bind(), and enables control messages. An IPv6 socket also
// carries IPv4, on Linux with IPv4's control messages.
long prepare(int fd, const DatagramOptions& options) {
  const Option all[] = {
      {options.reuse_address, SOL_SOCKET, SO_REUSEADDR},
      {options.reuse_port, SOL_SOCKET, SO_REUSEPORT},
      {options.broadcast, SOL_SOCKET, SO_BROADCAST},
  };
  if (const long result = set_all(fd, all); result < 0 || !is_ip(fd)) return result;
  const bool v6 = is_ipv6(fd);
  if (v6) sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, int{options.v6_only});
  const bool v4 = !v6 || sys::kHasOptionsOfBoth;
  const Option told[] = {
      {options.local_address && v4, IPPROTO_IP, sys::kTellLocalAddress},
      {options.local_address && v6, IPPROTO_IPV6, IPV6_RECVPKTINFO},
      {options.ecn && v4, IPPROTO_IP, sys::kTellTos},
      {options.ecn && v6, IPPROTO_IPV6, IPV6_RECVTCLASS},
  };
  if (const long result = set_all(fd, told); result < 0) return result;
  if (options.dont_fragment) {
    if (const long result = sys::forbid_fragments(fd, v6); result < 0) return result;
  }
  // A kernel that does not join packets delivers them one by one.
  if (options.coalesce) sys::set_option(fd, IPPROTO_UDP, sys::kJoinArrivals, 1);
  return 0;
}

std::error_code check(const DatagramOptions& options) {
  const bool fits = options.packet_size >= 1 && options.packet_size <= 65536;
  return sys::error_code(fits ? 0 : -EINVAL);
}

// Returns the options that are in effect: none of these on a unix socket; GRO also if it was
// enabled before the socket was adopted.
DatagramOptions as_they_are(int fd, DatagramOptions options) {
  const bool ip = is_ip(fd);
  options.local_address = options.local_address && ip;
  options.ecn = options.ecn && ip;
  options.coalesce = ip && sys::joins_arrivals(fd);
  return options;
}

// Sets an option that has different names for IPv4 and IPv6. On Linux, an IPv6 socket has both;
// IPv4's is used for IPv4 peers.
std::error_code set_both(int fd, int v4_name, int v6_name, int value) {
  const bool v6 = is_ipv6(fd);
  long result = v6 ? sys::set_option(fd, IPPROTO_IPV6, v6_name, value) : 0;
  if (result >= 0 && (!v6 || sys::kHasOptionsOfBoth))
    result = sys::set_option(fd, IPPROTO_IP, v4_name, value);
  return sys::error_code(result);
}

// The kernel would take -1 for the default, and has different bounds for the two families.
std::error_code set_hops_of(int fd, int v4_name, int v6_name, int hops, int least) {
  if (hops < least || hops > 255) return sys::error_code(-EINVAL);
  return set_both(fd, v4_name, v6_name, hops);
}

std::error_code change_membership(int fd, const Address& group, std::uint32_t interface,
                                  bool join) {
  if (!group.is_ip()) return sys::error_code(-EINVAL);
  const auto* system = static_cast<const sockaddr*>(group.data());
  return sys::error_code(sys::change_membership(fd, *system, group.size(), interface, join));
}

}  // namespace

Datagram::~Datagram() {
  if (socket_ != nullptr) socket_->abandon();
}

Result<sys::Descriptor> open_datagram_socket(const Address& local, const DatagramOptions& options) {
  if (const std::error_code error = check(options)) return std::unexpected(error);
  if (local.family() == Address::Family::none) return failed(-EINVAL);
  const long opened = sys::open_socket(sys::family_of(local.data()), SOCK_DGRAM);
  if (opened < 0) return failed(opened);
  sys::Descriptor socket(opened);
  long result = prepare(socket.get(), options);
  if (result >= 0) result = sys::bind(socket.get(), local.data(), local.size());
  if (result < 0) return failed(result);
  return socket;
}

Result<Datagram> Datagram::create(Loop& loop, const Address& local,
                                  const DatagramOptions& options) {
  Result<sys::Descriptor> socket = open_datagram_socket(local, options);
  if (!socket) return std::unexpected(socket.error());
  const auto made = DatagramSocket::make(loop, *socket, as_they_are(socket->get(), options));
  if (!made) return std::unexpected(made.error());
  return Datagram(*made);
}

Result<Datagram> Datagram::adopt(Loop& loop, int fd, const DatagramOptions& options) {
  if (const std::error_code error = check(options)) return std::unexpected(error);
  int type = 0;
  if (const long result = sys::get_option(fd, SOL_SOCKET, SO_TYPE, type); result < 0)
    return failed(result);
  if (type != SOCK_DGRAM) return failed(-EINVAL);
  if (const long result = sys::set_nonblocking(fd); result < 0) return failed(result);
  if (const long result = prepare(fd, options); result < 0) return failed(result);
  if (options.v6_only && is_ipv6(fd) && !sys::carries_ipv6_only(fd)) return failed(-EINVAL);
  sys::Descriptor socket(fd);
  const auto made = DatagramSocket::make(loop, socket, as_they_are(fd, options));
  if (made) return Datagram(*made);
  socket.release();
  return std::unexpected(made.error());
}

void Datagram::start(DatagramHandler& handler) {
  SPATE_ASSERT(socket_ != nullptr, "an empty Datagram has nothing to start: create() one");
  socket_->start(handler);
}

std::error_code Datagram::start(DatagramCallbacks callbacks) {
  SPATE_ASSERT(socket_ != nullptr, "an empty Datagram has nothing to start: create() one");
  return sys::error_code(socket_->start(std::move(callbacks)) ? 0 : -ENOMEM);
}

void Datagram::pause() {
  if (socket_ != nullptr) socket_->pause();
}

void Datagram::resume() {
  if (socket_ != nullptr) socket_->resume();
}

std::error_code Datagram::connect(const Address& peer) {
  return socket_ == nullptr ? closed() : socket_->connect(peer);
}

std::error_code Datagram::send(Bytes bytes, const Address& peer) {
  return socket_ == nullptr ? closed() : socket_->send(bytes, &peer);
}

std::error_code Datagram::send(Bytes bytes) {
  return socket_ == nullptr ? closed() : socket_->send(bytes, nullptr);
}

std::size_t Datagram::send(std::span<const Outgoing> packets, std::error_code* error) {
  std::error_code unwanted;
  std::error_code& reason = error == nullptr ? unwanted : *error;
  if (socket_ == nullptr) return reason = closed(), 0;
  return socket_->send(packets, reason);
}

Result<std::size_t> Datagram::send_segments(Bytes bytes, std::size_t segment, const Address& peer) {
  if (socket_ == nullptr) return std::unexpected(closed());
  return socket_->send_segments(bytes, segment, peer);
}

std::error_code Datagram::join(const Address& group, std::uint32_t interface) {
  return change_membership(fd(), group, interface, true);
}

std::error_code Datagram::leave(const Address& group, std::uint32_t interface) {
  return change_membership(fd(), group, interface, false);
}

std::error_code Datagram::set_multicast_interface(std::uint32_t interface) {
  return sys::error_code(sys::set_multicast_interface(fd(), is_ipv6(fd()), interface));
}

std::error_code Datagram::set_multicast_loop(bool on) {
  return set_both(fd(), IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, int{on});
}

std::error_code Datagram::set_multicast_hops(int hops) {
  return set_hops_of(fd(), IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, hops, 0);
}

std::error_code Datagram::set_hops(int hops) {
  return set_hops_of(fd(), IP_TTL, IPV6_UNICAST_HOPS, hops, 1);
}

std::error_code Datagram::set_ecn(Ecn ecn) {
  if (ecn > Ecn::congested) return sys::error_code(-EINVAL);
  return set_both(fd(), IP_TOS, IPV6_TCLASS, static_cast<int>(ecn));
}

std::error_code Datagram::set_kernel_buffers(std::size_t send, std::size_t receive) {
  return sys::error_code(sys::set_kernel_buffers(fd(), send, receive));
}

Result<std::size_t> Datagram::path_mtu() const {
  if (fd() >= 0 && !is_ip(fd())) return failed(-EOPNOTSUPP);
  const long mtu = sys::path_mtu(fd(), is_ipv6(fd()));
  if (mtu < 0) return failed(mtu);
  return static_cast<std::size_t>(mtu);
}

Result<std::uint32_t> Datagram::dropped() const {
  const long count = sys::dropped_packets(fd());
  if (count < 0) return failed(count);
  return static_cast<std::uint32_t>(count);
}

Address Datagram::local_address() const { return local_address_of(fd()); }

int Datagram::fd() const { return socket_ == nullptr ? -1 : socket_->fd(); }

}  // namespace spate
