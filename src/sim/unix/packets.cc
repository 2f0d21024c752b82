#include "sim/unix/packets.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sim/kernel/kernel.h"

namespace spate::sim {

void LocalPackets::join(LocalPackets& one, LocalPackets& other) {
  one.set_peer(&other);
  other.set_peer(&one);
}

void LocalPackets::set_peer(LocalPackets* peer) {
  if (peer_ != nullptr) std::erase(peer_->senders_, this);
  peer_ = peer;
  peer_name_ = peer == nullptr ? std::string() : peer->name();
  if (peer != nullptr) peer->senders_.push_back(this);
}

void LocalPackets::leave_all() {
  set_peer(nullptr);
  for (LocalPackets* sender : std::exchange(senders_, {})) {
    sender->peer_ = nullptr;
    sender->has_lost_peer_ = true;
    sender->changed();
  }
}

void LocalPackets::drop_arrivals() {
  for (const Packet& packet : std::exchange(arrivals_, {}))
    memory_.give(host_, packet.bytes.size());
}

void LocalPackets::give_up(Passed& dropped) {
  for (Packet& packet : arrivals_)
    dropped.insert(dropped.end(), packet.passed.begin(), packet.passed.end());
  drop_arrivals();
}

void LocalPackets::vanish() {
  LocalSocket::vanish();
  drop_arrivals();
  leave_all();
}

// Without a peer it is always writable, whatever its destinations are. So is one whose peer is
// connected to it.
std::uint32_t LocalPackets::ready() const {
  const bool has_room = peer_ == nullptr || peer_->peer_ == this || !peer_->is_full();
  std::uint32_t events = has_room ? EPOLLOUT : 0u;
  if (!arrivals_.empty() || !may_read_) events |= EPOLLIN;
  if (!may_read_) events |= EPOLLRDHUP;
  if (!may_read_ && !may_write_) events |= EPOLLHUP;
  return events;
}

// ---- addresses

long LocalPackets::connect(const sockaddr* address, socklen_t size) {
  if (size >= sizeof(address->sa_family) && address->sa_family == AF_UNSPEC)
    return set_peer(nullptr), 0;
  long error = 0;
  const std::string to = name_from_system(address, size, error);
  if (error < 0 || to.empty()) return -EINVAL;
  LocalSocket* found = names_.find(host_, to, error);
  if (found == nullptr) return error;
  if (found->type() != type_) return -EPROTOTYPE;
  set_peer(static_cast<LocalPackets*>(found));
  has_lost_peer_ = false;
  return 0;
}

std::shared_ptr<Socket> LocalPackets::accept(long& error) {
  error = -EOPNOTSUPP;
  return nullptr;
}

long LocalPackets::peer_address(sockaddr* address, socklen_t* size) const {
  if (peer_ == nullptr) return -ENOTCONN;
  name_to_system(peer_name_, address, size);
  return 0;
}

// ---- sending

LocalPackets* LocalPackets::destination(const msghdr& message, long& error) {
  if (message.msg_name == nullptr || message.msg_namelen == 0) {
    error = has_lost_peer_ ? -ECONNREFUSED : -ENOTCONN;
    if (std::exchange(has_lost_peer_, false)) drop_arrivals();  // As Linux does.
    return peer_;
  }
  const auto* address = static_cast<const sockaddr*>(message.msg_name);
  const std::string to = name_from_system(address, message.msg_namelen, error);
  if (error < 0) return nullptr;
  LocalSocket* found = names_.find(host_, to, error);
  if (found == nullptr) return nullptr;
  error = -EPROTOTYPE;
  return found->type() == type_ ? static_cast<LocalPackets*>(found) : nullptr;
}

long LocalPackets::send(const msghdr& message) {
  std::string bytes = joined(message);
  if (bytes.size() > send_buffer_) return -EMSGSIZE;
  if (!may_write_) return -EPIPE;
  long error = 0;
  LocalPackets* to = destination(message, error);
  if (to == nullptr) return error;
  if (!to->may_read_) return -EPIPE;
  // A connected socket accepts packets from its peer only.
  if (to->peer_ != nullptr && to->peer_ != this) return -EPERM;
  if (to->is_full()) return -EAGAIN;
  if (memory_.is_short(host_) || memory_.room(host_) < bytes.size()) return -ENOBUFS;
  Passed passed;
  if (const long result = take_passed(message, passed); result < 0) return result;
  const auto size = static_cast<long>(bytes.size());
  memory_.take(host_, bytes.size());
  Kernel::current()->note_local(bytes);
  to->arrivals_.push_back({std::move(bytes), name(), std::move(passed)});
  to->changed();
  return size;
}

// ---- receiving

long LocalPackets::receive(msghdr& message, int flags) {
  Control control(message);
  message.msg_flags = 0;
  if (arrivals_.empty()) return -EAGAIN;
  Packet& first = arrivals_.front();
  const std::size_t whole = first.bytes.size();
  const std::size_t copied = spread(first.bytes, message);
  if (copied < whole) message.msg_flags |= MSG_TRUNC;
  if (message.msg_name != nullptr)
    name_to_system(first.from, static_cast<sockaddr*>(message.msg_name), &message.msg_namelen);
  if ((flags & MSG_PEEK) == 0) {
    const Packet taken = std::move(first);
    arrivals_.pop_front();
    memory_.give(host_, whole);
    open_passed(taken.passed, control);
    for (LocalPackets* sender : senders_) sender->changed();
  }
  return static_cast<long>((flags & MSG_TRUNC) != 0 ? whole : copied);
}

long LocalPackets::shut_down(int how) {
  if (how != SHUT_WR) may_read_ = false;
  if (how != SHUT_RD) may_write_ = false;
  return changed(), 0;
}

}  // namespace spate::sim
