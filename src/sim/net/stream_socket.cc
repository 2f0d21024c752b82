#include "sim/net/stream_socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/kernel/message.h"

namespace spate::sim {

namespace {

constexpr Nanos kKnockAgain = std::chrono::seconds{1};

}  // namespace

StreamSocket::StreamSocket(Network& network, int family, Connection& connection, Side side)
    : IpSocket(network, connection.end(side).host(), family, Protocol::tcp),
      connection_(&connection),
      end_(&connection.end(side)),
      remote_(connection.end(opposite(side)).local()) {
  local_ = connection.end(side).local();
  end_->show_at(this);
}

StreamSocket::~StreamSocket() {
  for (const std::uint64_t id : waiting_) {
    if (Connection* connection = network_.find(id))
      connection->server.close(Endpoint::Farewell::reset);
  }
  if (end_ != nullptr)
    end_->close(resets_ ? Endpoint::Farewell::reset : Endpoint::Farewell::graceful);
}

void StreamSocket::vanish() {
  IpSocket::vanish();
  waiting_.clear();
  end_ = nullptr;
  connection_ = nullptr;
}

std::uint32_t StreamSocket::ready() const {
  if (is_listening()) return waiting_.empty() ? 0u : EPOLLIN;
  return end_ == nullptr ? EPOLLOUT | EPOLLHUP : end_->ready();
}

// ---- listening

long StreamSocket::bind(const sockaddr* address, socklen_t size) {
  return end_ != nullptr ? -EINVAL : IpSocket::bind(address, size);
}

long StreamSocket::listen(int backlog) {
  if (!is_bound_ || end_ != nullptr) return -EINVAL;
  backlog_ = std::max(backlog, 0);
  return 0;
}

std::shared_ptr<Socket> StreamSocket::accept(long& error) {
  error = is_listening() ? -EAGAIN : -EINVAL;
  while (!waiting_.empty()) {
    Connection* connection = network_.find(waiting_.front());
    waiting_.pop_front();
    if (connection == nullptr) continue;
    auto accepted = std::make_shared<StreamSocket>(network_, family_, *connection, Side::server);
    accepted->no_delay_ = no_delay_;
    accepted->is_announced_ = true;
    return accepted;
  }
  return nullptr;
}

void StreamSocket::enqueue(Connection& connection) {
  waiting_.push_back(connection.id);
  connection.server.on_established(connection.client_buffer);
  network_.send(connection, Side::server, Label(Kind::welcome),
                [](Connection& to) { to.client.on_established(to.server_buffer); });
  changed();
}

// The client's first packet has come. While the backlog is full, it comes again.
void StreamSocket::knock(Network& network, Connection& connection) {
  auto* listener = static_cast<StreamSocket*>(network.socket_at(
      Protocol::tcp, connection.server.host(), connection.server.local(), connection.id));
  if (listener == nullptr) {
    network.send(connection, Side::server, Label(Kind::refusal),
                 [](Connection& to) { to.client.on_refused(ECONNREFUSED); });
  } else if (listener->waiting_.size() <= static_cast<std::size_t>(listener->backlog_)) {
    connection.server_buffer = listener->receive_buffer_;
    listener->enqueue(connection);
  } else {
    network.kernel().at(network.kernel().now() + kKnockAgain, [&network, id = connection.id] {
      Connection* again = network.find(id);
      if (again == nullptr) return;
      network.send(*again, Side::client, Label(Kind::knock),
                   [&network](Connection& to) { knock(network, to); });
    });
  }
}

// ---- connecting

long StreamSocket::connect(const sockaddr* address, socklen_t size) {
  const std::optional<Place> to = Place::from_system(family_, address, size);
  if (!to) return -EINVAL;
  if (is_listening()) return -EOPNOTSUPP;
  if (end_ == nullptr) return begin(*to);
  if (end_->is_connecting()) return -EALREADY;
  if (const int error = end_->take_error()) return -error;
  return std::exchange(is_announced_, true) ? -EISCONN : 0;
}

long StreamSocket::begin(Place to) {
  if (to.ip.is_any()) to.ip = own_like(to.ip);
  const int host = to.ip.host(host_);
  if (host < 0 || host >= network_.hosts) return -ENETUNREACH;
  if (local_.ip.is_any()) local_.ip = own_like(to.ip);
  if (local_.port == 0) local_.port = network_.free_port(host_, protocol_);
  if (local_.port == 0) return -EADDRNOTAVAIL;
  remote_ = to;
  connection_ = &network_.make_connection(host_, local_, host, to);
  connection_->client_buffer = receive_buffer_;
  end_ = &connection_->client;
  end_->show_at(this);
  end_->set_send_buffer(send_buffer_);
  network_.send(*connection_, Side::client, Label(Kind::knock),
                [&network = network_](Connection& at) { knock(network, at); });
  return -EINPROGRESS;
}

// ---- connected

long StreamSocket::send(const msghdr& message) {
  if (message.msg_controllen != 0) return -EOPNOTSUPP;
  if (end_ == nullptr) return -EPIPE;
  const auto pieces = pieces_of(message);
  if (pieces.size() != 1) return end_->send(joined(message));
  return end_->send({static_cast<const char*>(pieces[0].iov_base), pieces[0].iov_len});
}

long StreamSocket::receive(msghdr& message, int flags) {
  message.msg_controllen = 0;
  message.msg_flags = 0;
  if (end_ == nullptr) return -ENOTCONN;
  const auto peek = (flags & MSG_PEEK) != 0 ? Endpoint::Peek::yes : Endpoint::Peek::no;
  long moved = 0;
  for (const iovec& piece : pieces_of(message)) {
    const long result =
        end_->receive({static_cast<std::byte*>(piece.iov_base), piece.iov_len}, peek);
    if (result < 0) return moved > 0 ? moved : result;
    moved += result;
    if (static_cast<std::size_t>(result) < piece.iov_len) break;
  }
  return moved;
}

long StreamSocket::shut_down(int how) {
  if (end_ == nullptr) return -ENOTCONN;
  if (how != SHUT_WR) end_->shut_down_reading();
  return how == SHUT_RD ? 0 : end_->shut_down_writing();
}

long StreamSocket::peer_address(sockaddr* address, socklen_t* size) const {
  if (end_ == nullptr || !end_->is_open()) return -ENOTCONN;
  remote_.to_system(family_, address, size);
  return 0;
}

long StreamSocket::accepted_from(sockaddr* address, socklen_t* size) const {
  remote_.to_system(family_, address, size);
  return 0;
}

// ---- options

void StreamSocket::set_buffer(bool to_send, std::size_t size) {
  if (!to_send) {
    receive_buffer_ = size;  // As with TCP's window, too late for a connection.
    return;
  }
  send_buffer_ = size;
  if (end_ != nullptr) end_->set_send_buffer(size);
}

long StreamSocket::set_option(int level, int name, const void* value, socklen_t size) {
  if (level == SOL_SOCKET && name == SO_LINGER) {
    linger lingering{};
    if (size < sizeof(lingering)) return -EINVAL;
    std::memcpy(&lingering, value, sizeof(lingering));
    resets_ = lingering.l_onoff != 0 && lingering.l_linger == 0;
    return 0;
  }
  if (level != IPPROTO_TCP) return IpSocket::set_option(level, name, value, size);
  if (size < sizeof(no_delay_)) return -EINVAL;
  if (name == TCP_NODELAY) std::memcpy(&no_delay_, value, sizeof(no_delay_));
  return 0;
}

std::optional<int> StreamSocket::option(int level, int name) {
  if (level == IPPROTO_TCP && name == TCP_NODELAY) return no_delay_;
  return IpSocket::option(level, name);
}

}  // namespace spate::sim
