#include "sim/net/packet_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/kernel/message.h"

namespace spate::sim {

namespace {

constexpr std::size_t kLongest = 65507;

}  // namespace

std::uint32_t PacketSocket::ready() const {
  return EPOLLOUT | (arrivals_.empty() ? 0u : EPOLLIN) | (error_ == 0 ? 0u : EPOLLERR);
}

// ---- addresses

long PacketSocket::connect(const sockaddr* address, socklen_t size) {
  if (size >= sizeof(address->sa_family) && address->sa_family == AF_UNSPEC) return disconnect();
  std::optional<Place> to = Place::from_system(family_, address, size);
  if (!to) return -EAFNOSUPPORT;
  if (const long result = may_connect(to->ip); result < 0) return result;
  const int host = to->ip.host(host_);
  if (host < 0 || host >= network_.hosts) return -ENETUNREACH;
  if (const long result = bind_somewhere(); result < 0) return result;
  if (local_.ip.is_any()) local_.ip = own_like(to->ip);
  remote_ = to;
  return 0;
}

long PacketSocket::disconnect() {
  remote_.reset();
  if (!is_port_drawn_) return 0;
  unbind();
  local_ = {};
  is_port_drawn_ = false;
  return 0;
}

long PacketSocket::bind_somewhere() {
  if (is_bound_) return 0;
  Place place{any_ip(), 0};
  if (const long result = network_.bind(*this, place); result < 0) return -EAGAIN;
  local_ = place;
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

// An IPv6 socket sends to addresses of IPv4 as well, in either form.
long PacketSocket::destination(const msghdr& message, Place& to) const {
  if (message.msg_name == nullptr || message.msg_namelen == 0) {
    if (!remote_) return -EDESTADDRREQ;
    to = *remote_;
    return 0;
  }
  const auto* address = static_cast<const sockaddr*>(message.msg_name);
  if (message.msg_namelen < sizeof(address->sa_family)) return -EINVAL;
  const int family = address->sa_family;
  if (family != family_ && (family != AF_INET || family_ != AF_INET6)) return -EAFNOSUPPORT;
  const std::optional<Place> found = Place::from_system(family, address, message.msg_namelen);
  if (!found) return -EINVAL;
  to = *found;
  return to.port == 0 ? -EINVAL : 0;
}

long PacketSocket::send(const msghdr& message) {
  if (message.msg_controllen != 0) return -EOPNOTSUPP;  // As a kernel without UDP_SEGMENT.
  Parcel parcel{.from_host = host_,
                .from = {},
                .to_host = host_,
                .to = {},
                .bytes = joined(message),
                .traffic_class = static_cast<std::uint8_t>(traffic_class_)};
  if (parcel.bytes.size() > kLongest) return -EMSGSIZE;
  if (network_.memory.is_short(host_)) return -ENOBUFS;
  if (const long result = destination(message, parcel.to); result < 0) return result;
  if (const int error = take_error()) return -error;
  if (parcel.to.ip.is_any()) parcel.to.ip = loopback_like(parcel.to.ip);
  parcel.to_host = parcel.to.ip.host(host_);
  if (parcel.to_host < 0 || parcel.to_host >= network_.hosts) return -ENETUNREACH;
  if (const long result = bind_somewhere(); result < 0) return result;
  parcel.from = local_;
  if (parcel.from.ip.is_any()) parcel.from.ip = own_like(parcel.to.ip);
  const auto size = static_cast<long>(parcel.bytes.size());
  network_.send(std::move(parcel));
  return size;
}

// ---- receiving

void PacketSocket::on_parcel(const Parcel& parcel) {
  const std::size_t size = parcel.bytes.size() + kOverhead;
  if (arrived_size_ + size > receive_buffer_) return;  // The kernel drops it, and tells nobody.
  if (network_.memory.room(host_) < size) return;
  arrived_size_ += size;
  network_.memory.take(host_, size);
  arrivals_.push_back(parcel);
  changed();
}

void PacketSocket::on_refused(const Place& by) {
  if (remote_ != by) return;
  error_ = ECONNREFUSED;
  changed();
}

long PacketSocket::receive(msghdr& message, int flags) {
  if (const int error = take_error()) return -error;
  if (arrivals_.empty()) return -EAGAIN;
  const Parcel& first = arrivals_.front();
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

void PacketSocket::describe(const Parcel& parcel, msghdr& message) const {
  Control control(message);
  const bool is_v4 = parcel.to.ip.is_v4();
  if (tells_destination_ != 0 && is_v4) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_addr, parcel.to.ip.bytes.data() + 12, sizeof(info.ipi_addr));
    control.add(IPPROTO_IP, IP_PKTINFO, info);
  } else if (tells_destination_ != 0) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, parcel.to.ip.bytes.data(), sizeof(info.ipi6_addr));
    control.add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
  if (tells_class_ == 0) return;
  if (is_v4) return control.add(IPPROTO_IP, IP_TOS, parcel.traffic_class);
  control.add(IPPROTO_IPV6, IPV6_TCLASS, int{parcel.traffic_class});
}

// ---- options

long PacketSocket::set_option(int level, int name, const void* value, socklen_t size) {
  if (level != IPPROTO_IP && level != IPPROTO_IPV6)
    return IpSocket::set_option(level, name, value, size);
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
    return IpSocket::set_option(level, name, value, size);
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  const bool is_v4 = level == IPPROTO_IP;
  if (name == (is_v4 ? IP_PKTINFO : IPV6_RECVPKTINFO)) {
    tells_destination_ = number;
  } else if (name == (is_v4 ? IP_RECVTOS : IPV6_RECVTCLASS)) {
    tells_class_ = number;
  } else if (name == (is_v4 ? IP_TOS : IPV6_TCLASS)) {
    traffic_class_ = number;
  } else if (name != (is_v4 ? IP_TTL : IPV6_UNICAST_HOPS)) {
    return -ENOPROTOOPT;
  }
  return 0;
}

}  // namespace spate::sim
