#include "sim/net/packet_socket.h"

#include <linux/sock_diag.h>
#include <linux/udp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sim/kernel/message.h"

namespace spate::sim {

namespace {

// The maximum sizes of IP packets, and of UDP payloads in each version.
constexpr std::size_t kMost = 65535;
constexpr std::size_t kMostV4 = kMost - 20 - 8;
constexpr std::size_t kMostV6 = kMost - 8;

}  // namespace

std::uint32_t PacketSocket::ready() const {
  std::uint32_t events = EPOLLOUT | (error_ == 0 ? 0u : EPOLLERR);
  if (!arrivals_.empty() || !may_read_) events |= EPOLLIN;
  if (!may_read_) events |= EPOLLRDHUP;
  if (!may_read_ && !may_write_) events |= EPOLLHUP;
  return events;
}

// ---- addresses

int PacketSocket::fit(const SocketAddress& here, const SocketAddress& peer) const {
  if (!is_bound_to(local_.ip, here.ip) || (remote_ && remote_ != peer)) return 0;
  const int as_connected = remote_ ? 4 : 0;
  const int as_own = local_.ip == here.ip ? 2 : 0;
  const bool is_alike = remote_ || here.ip.is_v4() == (family_ == AF_INET);
  return 1 + as_connected + as_own + (is_alike ? 1 : 0);
}

long PacketSocket::connect(const sockaddr* address, socklen_t size) {
  if (size < sizeof(address->sa_family)) return -EINVAL;
  const int family = address->sa_family;
  if (family == AF_UNSPEC) return disconnect();
  if (const long result = bind_somewhere(); result < 0) return result;
  if (family != family_ && (family != AF_INET || !is_dual())) return -EAFNOSUPPORT;
  std::optional<SocketAddress> to = SocketAddress::from_system(family, address, size);
  if (!to) return -EINVAL;
  if (const long result = may_connect(to->ip); result < 0) return result;
  const int host = to->ip.host(host_);
  if (host < 0 || host >= network_.hosts) return -ENETUNREACH;
  if (local_.ip.is_any()) local_.ip = own_like(to->ip);
  remote_ = to;
  network_.put_last(*this);
  return 0;
}

// A port chosen by bind() stays.
long PacketSocket::disconnect() {
  remote_.reset();
  if (!has_address_) local_.ip = any_ip();
  if (!std::exchange(is_port_drawn_, false)) return 0;
  unbind();
  local_.port = 0;
  return 0;
}

// Linux does it before all other checks.
long PacketSocket::bind_somewhere() {
  if (is_bound_) return 0;
  SocketAddress address{has_address_ ? local_.ip : any_ip(), 0};
  if (const long result = network_.bind(*this, address); result < 0) return -EAGAIN;
  local_ = address;
  return is_bound_ = is_port_drawn_ = true, 0;
}

std::shared_ptr<Socket> PacketSocket::accept(long& error) {
  error = -EOPNOTSUPP;
  return nullptr;
}

long PacketSocket::peer_address(sockaddr* address, socklen_t* size) const {
  if (!remote_) return -ENOTCONN;
  remote_->to_system(family_, address, size);
  return 0;
}

// ---- sending

long PacketSocket::destination(const msghdr& message, std::size_t size, SocketAddress& to) const {
  if (family_ == AF_INET && size > kMost) return -EMSGSIZE;
  if (message.msg_name != nullptr && message.msg_namelen != 0) {
    if (const long result = named_destination(message, size, to); result < 0) return result;
  } else {
    if (!remote_) return -EDESTADDRREQ;
    to = *remote_;
  }
  return size > (to.ip.is_v4() ? kMostV4 : kMostV6) ? -EMSGSIZE : 0;
}

// An IPv6 socket also sends to IPv4 addresses, in either form.
long PacketSocket::named_destination(const msghdr& message, std::size_t size,
                                     SocketAddress& to) const {
  const auto* address = static_cast<const sockaddr*>(message.msg_name);
  if (message.msg_namelen < sizeof(address->sa_family)) return -EINVAL;
  const int family = address->sa_family;
  if (family != family_ && (family != AF_INET || family_ != AF_INET6)) return -EAFNOSUPPORT;
  const std::optional<SocketAddress> found =
      SocketAddress::from_system(family, address, message.msg_namelen);
  if (!found) return -EINVAL;
  to = *found;
  const long result = may_connect(to.ip);
  if (result == -ENETUNREACH) return result;
  if (to.ip.is_v4() && size > kMost) return -EMSGSIZE;
  return to.port == 0 ? -EINVAL : result;
}

long PacketSocket::send(const msghdr& message) {
  if (const long result = bind_somewhere(); result < 0) return result;
  Datagram datagram{.from_host = host_,
                    .from = {},
                    .to_host = host_,
                    .to = {},
                    .bytes = joined(message),
                    .traffic_class = static_cast<std::uint8_t>(traffic_class_)};
  std::size_t segment = 0;
  long result = destination(message, datagram.bytes.size(), datagram.to);
  if (result >= 0) result = read_info(message, datagram, segment);
  if (result < 0) return result;
  if (const int error = take_error()) return -error;
  if (!may_write_) return -EPIPE;
  if (network_.memory.is_short(host_)) return -ENOBUFS;
  datagram.to_host = datagram.to.ip.host(host_);
  if (datagram.to_host < 0 || datagram.to_host >= network_.hosts) return -ENETUNREACH;
  if (result = may_send(datagram, segment); result < 0) return result;
  const bool has_source = !datagram.from.ip.is_any();
  const bool is_other = local_.ip.is_v4() != datagram.to.ip.is_v4();
  datagram.from.port = local_.port;
  if (!has_source)
    datagram.from.ip = local_.ip.is_any() || is_other ? own_like(datagram.to.ip) : local_.ip;
  const auto size = static_cast<long>(datagram.bytes.size());
  send_split(std::move(datagram), segment);
  return size;
}

long PacketSocket::may_send(const Datagram& datagram, std::size_t segment) const {
  const std::size_t headers = datagram.to.ip.is_v4() ? 28 : 48;
  const auto mtu = static_cast<std::size_t>(mtu_to(datagram.to_host));
  if (segment != 0) return segment + headers > mtu ? -EINVAL : 0;
  const bool is_whole = fragments_ >= IP_PMTUDISC_DO && fragments_ <= IP_PMTUDISC_PROBE;
  return is_whole && datagram.bytes.size() + headers > mtu ? -EMSGSIZE : 0;
}

void PacketSocket::send_split(Datagram datagram, std::size_t segment) {
  if (segment == 0) return network_.send(std::move(datagram));
  const std::string bytes = std::move(datagram.bytes);
  for (std::size_t at = 0; at < bytes.size(); at += segment) {
    Datagram part = datagram;
    part.bytes = bytes.substr(at, segment);
    network_.send(std::move(part));
  }
}

// ---- the control messages of a packet to send

namespace {

// False if the kernel would refuse the message's size.
template <class T>
bool read_value(const cmsghdr& header, T& value) {
  if (header.cmsg_len != CMSG_LEN(sizeof(value))) return false;
  std::memcpy(&value, CMSG_DATA(&header), sizeof(value));
  return true;
}

// The most packets of one message (UDP_MAX_SEGMENTS).
constexpr std::size_t kMostSegments = 64;

}  // namespace

long PacketSocket::read_info(const msghdr& message, Datagram& datagram,
                             std::size_t& segment) const {
  datagram.from.ip = any_ip();
  msghdr all = message;
  for (cmsghdr* header = CMSG_FIRSTHDR(&all); header != nullptr;
       header = CMSG_NXTHDR(&all, header)) {
    if (const long result = read_info(*header, datagram, segment); result < 0) return result;
  }
  if (segment == 0 || datagram.bytes.size() <= segment) return segment = 0, 0;
  return datagram.bytes.size() > kMostSegments * segment ? -EINVAL : 0;
}

// Messages of the other IP version are ignored.
long PacketSocket::read_info(const cmsghdr& header, Datagram& datagram,
                             std::size_t& segment) const {
  const bool is_v4 = datagram.to.ip.is_v4();
  const int level = header.cmsg_level;
  const int type = header.cmsg_type;
  if (level == IPPROTO_UDP && type == UDP_SEGMENT) {
    std::uint16_t size = 0;
    if (!read_value(header, size)) return -EINVAL;
    segment = size;
    return 0;
  }
  if (level != (is_v4 ? IPPROTO_IP : IPPROTO_IPV6)) return 0;
  if (type == (is_v4 ? IP_TOS : IPV6_TCLASS)) {
    int traffic_class = 0;
    if (!read_value(header, traffic_class) || traffic_class < 0 || traffic_class > 255)
      return -EINVAL;
    datagram.traffic_class = static_cast<std::uint8_t>(traffic_class);
    return 0;
  }
  in_pktinfo v4{};
  if (is_v4 && type == IP_PKTINFO)
    return read_value(header, v4) ? set_source(datagram, Ip::of(v4.ipi_spec_dst)) : -EINVAL;
  in6_pktinfo v6{};
  if (!is_v4 && type == IPV6_PKTINFO)
    return read_value(header, v6) ? set_source(datagram, Ip::of(v6.ipi6_addr)) : -EINVAL;
  return -EINVAL;
}

long PacketSocket::set_source(Datagram& datagram, const Ip& source) const {
  if (!source.is_any() && source.host(host_) != host_) return -EINVAL;
  datagram.from.ip = source;
  return 0;
}

// ---- receiving

void PacketSocket::on_datagram(const Datagram& datagram) {
  const std::size_t size = datagram.bytes.size() + kOverhead;
  // The kernel drops it silently. A packet that arrives while there is any room is accepted.
  if (arrived_size_ > receive_buffer_ || network_.memory.room(host_) < size) {
    ++dropped_;
    return;
  }
  arrived_size_ += size;
  network_.memory.take(host_, size);
  arrivals_.push_back(datagram);
  changed();
}

void PacketSocket::on_refused(const SocketAddress& by) {
  if (remote_ != by) return;
  error_ = ECONNREFUSED;
  changed();
}

long PacketSocket::receive(msghdr& message, int flags) {
  if (const int error = take_error()) return -error;
  if (arrivals_.empty()) return -EAGAIN;
  const Datagram& first = arrivals_.front();
  const std::size_t whole = first.bytes.size();
  const std::size_t copied = spread(first.bytes, message);
  message.msg_flags = copied < whole ? MSG_TRUNC : 0;
  if (message.msg_name != nullptr)
    first.from.to_system(family_, static_cast<sockaddr*>(message.msg_name), &message.msg_namelen);
  describe(first, message);
  if ((flags & MSG_PEEK) == 0) {
    arrived_size_ -= whole + kOverhead;
    network_.memory.give(host_, whole + kOverhead);
    arrivals_.pop_front();
  }
  return static_cast<long>((flags & MSG_TRUNC) != 0 ? whole : copied);
}

void PacketSocket::describe(const Datagram& datagram, msghdr& message) const {
  Control control(message);
  const bool is_v4 = datagram.to.ip.is_v4();
  if (reports_destination_ != 0 && is_v4) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_addr, datagram.to.ip.bytes.data() + 12, sizeof(info.ipi_addr));
    control.add(IPPROTO_IP, IP_PKTINFO, info);
  } else if (reports_destination_ != 0) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, datagram.to.ip.bytes.data(), sizeof(info.ipi6_addr));
    control.add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
  if (reports_class_ == 0) return;
  if (is_v4) return control.add(IPPROTO_IP, IP_TOS, datagram.traffic_class);
  control.add(IPPROTO_IPV6, IPV6_TCLASS, int{datagram.traffic_class});
}

// Linux allows it also for an unconnected socket. Packets are received nevertheless.
long PacketSocket::shut_down(int how) {
  if (how < SHUT_RD || how > SHUT_RDWR) return -EINVAL;
  if (how != SHUT_WR) may_read_ = false;
  if (how != SHUT_RD) may_write_ = false;
  return changed(), remote_ ? 0 : -ENOTCONN;
}

// ---- options

long PacketSocket::steer(const void* value, socklen_t size) {
  sock_fprog program{};
  if (size != sizeof(program)) return -EINVAL;
  std::memcpy(&program, value, sizeof(program));
  const std::shared_ptr<const Steering> steering = Steering::make(program);
  if (steering == nullptr || !shares_port_evenly()) return -EINVAL;
  network_.steer(*this, steering);
  return 0;
}

long PacketSocket::set_option(int level, int name, const void* value, socklen_t size) {
  if (level == SOL_SOCKET && name == SO_ATTACH_REUSEPORT_CBPF) return steer(value, size);
  if (level != IPPROTO_IP && level != IPPROTO_IPV6)
    return IpSocket::set_option(level, name, value, size);
  if (level == IPPROTO_IPV6 && (name == IPV6_V6ONLY || family_ == AF_INET))
    return IpSocket::set_option(level, name, value, size);
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  const bool is_v4 = level == IPPROTO_IP;
  if (name == (is_v4 ? IP_PKTINFO : IPV6_RECVPKTINFO)) {
    reports_destination_ = number;
  } else if (name == (is_v4 ? IP_RECVTOS : IPV6_RECVTCLASS)) {
    reports_class_ = number;
  } else if (name == (is_v4 ? IP_TOS : IPV6_TCLASS)) {
    traffic_class_ = number;
  } else if (name == (is_v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER)) {
    if (number < IP_PMTUDISC_DONT || number > IP_PMTUDISC_OMIT) return -EINVAL;
    fragments_ = number;
  } else if (name != (is_v4 ? IP_TTL : IPV6_UNICAST_HOPS)) {
    return -ENOPROTOOPT;
  }
  return 0;
}

long PacketSocket::get_option(int level, int name, void* value, socklen_t* size) {
  const bool asks_mtu = (level == IPPROTO_IP && name == IP_MTU) ||
                        (level == IPPROTO_IPV6 && name == IPV6_MTU && family_ == AF_INET6);
  if (asks_mtu) {
    if (!remote_) return -ENOTCONN;
    return copy_option(mtu_to(remote_->ip.host(host_)), value, size);
  }
  if (level != SOL_SOCKET || name != SO_MEMINFO)
    return IpSocket::get_option(level, name, value, size);
  std::array<std::uint32_t, SK_MEMINFO_VARS> counts{};
  counts[SK_MEMINFO_DROPS] = dropped_;
  return copy_option(counts, value, size);
}

}  // namespace spate::sim
