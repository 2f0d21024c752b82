#include "sim/unix/stream.h"

#include <algorithm>
#include <cerrno>

#include "sim/kernel/kernel.h"

namespace spate::sim {

LocalStream::~LocalStream() {
  for (const std::shared_ptr<LocalStream>& one : waiting_) {
    if (one->peer_ != nullptr) one->peer_->lose_peer(ECONNRESET);
    one->peer_ = nullptr;
  }
  if (peer_ != nullptr) peer_->lose_peer(arrivals_.size() != 0 ? ECONNRESET : 0);
}

void LocalStream::join(LocalStream& one, LocalStream& other) {
  for (LocalStream* end : {&one, &other}) {
    end->peer_ = end == &one ? &other : &one;
    end->peer_name_ = end->peer_->name();
    end->is_connected_ = true;
  }
}

void LocalStream::lose_peer(int error) {
  peer_ = nullptr;
  error_ = error;
  may_read_ = may_write_ = false;
  changed();
}

void LocalStream::give_up(Passed& dropped) {
  arrivals_.give_up(dropped);
  dropped.insert(dropped.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
}

void LocalStream::vanish() {
  LocalSocket::vanish();
  arrivals_.clear();
  waiting_.clear();
  if (peer_ != nullptr) peer_->peer_ = nullptr;
  peer_ = nullptr;
}

std::uint32_t LocalStream::ready() const {
  std::uint32_t events = error_ != 0 ? EPOLLERR : 0u;
  if (!may_read_) events |= EPOLLRDHUP | EPOLLIN;
  if (!may_read_ && !may_write_) events |= EPOLLHUP;
  if (is_listening()) return events | (waiting_.empty() ? 0u : EPOLLIN);
  if (!is_connected_) events |= EPOLLHUP;
  if (arrivals_.size() != 0) events |= EPOLLIN;
  // Linux reports it when three quarters are free.
  const bool has_room =
      peer_ == nullptr || (peer_->arrivals_.size() * 4 <= send_buffer_ && !memory_.is_short(host_));
  if (has_room) events |= EPOLLOUT;
  return events;
}

// ---- connecting

long LocalStream::listen(int backlog) {
  if (name().empty() || is_connected_) return -EINVAL;
  backlog_ = std::max(backlog, 0);
  return 0;
}

long LocalStream::connect(const sockaddr* address, socklen_t size) {
  if (is_listening()) return -EINVAL;
  if (is_connected_) return -EISCONN;
  long error = 0;
  const std::string to = name_from_system(address, size, error);
  if (error < 0 || to.empty()) return -EINVAL;
  LocalSocket* found = names_.find(host_, to, error);
  if (found == nullptr) return error;
  if (found->type() != type_) return -EPROTOTYPE;
  auto& listener = static_cast<LocalStream&>(*found);
  if (!listener.is_listening() || !listener.may_read_) return -ECONNREFUSED;
  if (listener.waiting_.size() > static_cast<std::size_t>(listener.backlog_)) return -EAGAIN;
  auto accepted = std::make_shared<LocalStream>(names_, memory_, host_);
  accepted->set_name(listener.name());
  join(*this, *accepted);
  listener.waiting_.push_back(std::move(accepted));
  listener.changed();
  return 0;
}

std::shared_ptr<Socket> LocalStream::accept(long& error) {
  error = is_listening() ? -EAGAIN : -EINVAL;
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<LocalStream> first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

long LocalStream::peer_address(sockaddr* address, socklen_t* size) const {
  if (!is_connected_) return -ENOTCONN;
  name_to_system(peer_name_, address, size);
  return 0;
}

// ---- connected

long LocalStream::send(const msghdr& message) {
  if (!is_connected_) return -ENOTCONN;
  if (!may_write_ || peer_ == nullptr) return -EPIPE;
  const std::size_t held = peer_->arrivals_.size();
  const std::size_t room =
      std::min(send_buffer_ - std::min(send_buffer_, held), memory_.room(host_));
  std::string bytes = joined(message);
  if (room == 0 && !bytes.empty()) return -EAGAIN;
  Passed passed;
  if (const long result = take_passed(message, passed); result < 0) return result;
  bytes.resize(std::min(bytes.size(), room));
  if (bytes.empty()) return 0;
  Kernel::current()->note_local(bytes);
  peer_->arrivals_.append(bytes, std::move(passed));
  peer_->changed();
  return static_cast<long>(bytes.size());
}

long LocalStream::receive(msghdr& message, int flags) {
  Control control(message);
  message.msg_flags = 0;
  if (message.msg_name != nullptr) message.msg_namelen = 0;
  if (!is_connected_) return -EINVAL;
  const std::size_t room = size_of(message);
  if (arrivals_.size() == 0) {
    if (room == 0) return 0;
    if (const int error = take_error()) return -error;
    return may_read_ ? -EAGAIN : 0;
  }
  if ((flags & MSG_PEEK) != 0) return static_cast<long>(spread(arrivals_.peek(room), message));
  Passed passed;
  const std::string bytes = arrivals_.take(room, passed);
  open_passed(passed, control);
  if (peer_ != nullptr) peer_->changed();
  return static_cast<long>(spread(bytes, message));
}

long LocalStream::shut_down(int how) {
  if (how != SHUT_WR) {
    may_read_ = false;
    if (peer_ != nullptr) peer_->may_write_ = false;
  }
  if (how != SHUT_RD) {
    may_write_ = false;
    if (peer_ != nullptr) peer_->may_read_ = false;
  }
  changed();
  if (peer_ != nullptr) peer_->changed();
  return 0;
}

}  // namespace spate::sim
