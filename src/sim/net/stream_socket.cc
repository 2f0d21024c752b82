#include "sim/net/stream_socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/kernel/message.h"

namespace spate::sim {

namespace {

// net.core.somaxconn
constexpr unsigned kMostBacklog = 4096;

}  // namespace

StreamSocket::StreamSocket(Network& network, int family, Connection& connection, Side side)
    : IpSocket(network, connection.end(side).host(), family, Protocol::tcp),
      connection_(&connection),
      end_(&connection.end(side)),
      remote_(connection.end(opposite(side)).local()),
      phase_(Phase::connected) {
  local_ = connection.end(side).local();
  end_->attach(this);
}

StreamSocket::~StreamSocket() {
  stop_listening();
  if (end_ != nullptr)
    end_->close(resets_ ? Endpoint::CloseMode::reset : Endpoint::CloseMode::graceful);
}

void StreamSocket::stop_listening() {
  backlog_ = -1;
  for (const auto& socket : std::exchange(waiting_, {})) socket->resets_ = true;
}

void StreamSocket::vanish() {
  IpSocket::vanish();
  for (const auto& socket : waiting_) socket->vanish();
  waiting_.clear();
  end_ = nullptr;
  connection_ = nullptr;
}

std::uint32_t StreamSocket::ready() const {
  if (is_listening()) return waiting_.empty() ? 0u : EPOLLIN;
  if (end_ != nullptr) return end_->ready();
  return EPOLLOUT | EPOLLHUP | (error_ != 0 ? EPOLLERR : 0u) |
         (reads_nothing_ ? EPOLLIN | EPOLLRDHUP : 0u);
}

// ---- listening

// Done once, when the end of the connection is first noticed.
void StreamSocket::leave_port() {
  if (!std::exchange(has_left_port_, true)) unbind_drawn_port();
}

bool StreamSocket::has_port() {
  if (end_ != nullptr && !end_->is_dead()) return true;
  if (end_ != nullptr) leave_port();
  return IpSocket::has_port();
}

long StreamSocket::listen(int backlog) {
  if (end_ != nullptr) return -EINVAL;
  if (!is_listening()) {
    if (const long result = bind_to_listen(); result < 0) return result;
  }
  backlog_ = static_cast<int>(std::min(static_cast<unsigned>(backlog), kMostBacklog));
  changed();
  return 0;
}

std::shared_ptr<Socket> StreamSocket::accept(long& error) {
  error = is_listening() ? -EAGAIN : -EINVAL;
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Socket> accepted = std::move(waiting_.front());
  waiting_.pop_front();
  return accepted;
}

void StreamSocket::inherit(const StreamSocket& listener) {
  IpSocket::inherit(listener);
  no_delay_ = listener.no_delay_;
  resets_ = listener.resets_;
  timeouts_ = listener.timeouts_;
  end_->set_timeouts(timeouts_);
}

void StreamSocket::enqueue(Connection& connection) {
  waiting_.push_back(std::make_shared<StreamSocket>(network_, family_, connection, Side::server));
  waiting_.back()->inherit(*this);
  connection.server.reserve_port(own_reservation());
  connection.server.on_established(connection.client_buffer);
  network_.send(connection, Side::server, SegmentHeader(SegmentKind::syn_ack),
                [](Connection& to) { to.client.on_established(to.server_buffer); });
  changed();
}

// A SYN arrives. It is dropped while the backlog is full.
void StreamSocket::on_syn(Network& network, Connection& connection) {
  const Endpoint& server = connection.server;
  network.reservations.end_wait(server.host(), server.local(), connection.client.local());
  auto* listener = static_cast<StreamSocket*>(
      network.listener_at(connection.server.host(), connection.server.local(), connection.id));
  if (listener == nullptr) {
    network.send(connection, Side::server, SegmentHeader(SegmentKind::syn_rst),
                 [](Connection& to) { to.client.on_refused(ECONNREFUSED); });
    // As in Linux, the backlog holds one connection more than listen() was given.
  } else if (listener->waiting_.size() <= static_cast<std::size_t>(listener->backlog_)) {
    connection.server_buffer = listener->receive_buffer_;
    listener->enqueue(connection);
  } else {
    retransmit_syn(network, connection);
  }
}

// Schedules the retransmission of the SYN, as the client's kernel does until it gives up.
void StreamSocket::retransmit_syn(Network& network, Connection& connection) {
  const int number = ++connection.syns;
  const bool is_last = number > kHandshakeRetries.most;
  network.kernel().at(connection.first_syn_at + kHandshakeRetries.until(number),
                      [&network, is_last, id = connection.id] {
                        Connection* again = network.find(id);
                        if (again == nullptr || !again->client.is_connecting()) return;
                        if (is_last) return again->client.on_silence();
                        network.send(*again, Side::client, SegmentHeader(SegmentKind::syn),
                                     [&network](Connection& to) { on_syn(network, to); });
                      });
}

// ---- connecting

long StreamSocket::connect(const sockaddr* address, socklen_t size) {
  const std::optional<SocketAddress> to = SocketAddress::from_system(family_, address, size);
  if (!to) return -EINVAL;
  if (is_listening() || phase_ == Phase::connected) return -EISCONN;
  if (phase_ == Phase::disconnecting) return -EINVAL;
  if (phase_ == Phase::unconnected) return begin(*to);
  if (end_->is_connecting()) return -EALREADY;
  if (end_->is_dead()) {
    const int error = end_->take_error();
    disconnect();
    return error == 0 ? -ECONNABORTED : -error;
  }
  phase_ = Phase::connected;
  return 0;
}

long StreamSocket::begin(SocketAddress to) {
  if (const long result = may_connect(to.ip); result < 0) return result;
  const int host = to.ip.host(host_);
  if (host < 0 || host >= network_.hosts) return -ENETUNREACH;
  SocketAddress from{local_.ip, is_bound_ ? local_.port : std::uint16_t{0}};
  if (from.ip.is_any()) from.ip = own_like(to.ip);
  if (const long result = network_.find_port(host_, from, to); result < 0) return result;
  local_ = from;
  error_ = 0;
  remote_ = to;
  phase_ = Phase::connecting;
  has_left_port_ = false;
  connection_ = &network_.make_connection(host_, local_, host, to);
  connection_->client_buffer = receive_buffer_;
  connection_->first_syn_at = network_.kernel().now();
  end_ = &connection_->client;
  end_->attach(this);
  end_->set_send_buffer(send_buffer_);
  end_->set_timeouts(timeouts_);
  end_->reserve_port(own_reservation());
  network_.send(*connection_, Side::client, SegmentHeader(SegmentKind::syn),
                [&network = network_](Connection& at) { on_syn(network, at); });
  return -EINPROGRESS;
}

// The socket can be connected again. A port chosen by bind() stays, and the old port is still
// returned.
void StreamSocket::disconnect() {
  end_->close(Endpoint::CloseMode::reset);
  end_ = nullptr;
  connection_ = nullptr;
  phase_ = Phase::unconnected;
  reads_nothing_ = false;
  leave_port();
  if (!has_address_) local_.ip = any_ip();
  changed();
}

// ---- connected

long StreamSocket::send(const msghdr& message) {
  if (message.msg_controllen != 0) return -EOPNOTSUPP;
  if (end_ == nullptr) return error_ != 0 ? -take_error() : -EPIPE;
  const auto pieces = pieces_of(message);
  if (pieces.size() != 1) return end_->send(joined(message));
  return end_->send({static_cast<const char*>(pieces[0].iov_base), pieces[0].iov_len});
}

long StreamSocket::receive(msghdr& message, int flags) {
  message.msg_controllen = 0;
  message.msg_flags = 0;
  if (is_listening()) return -ENOTCONN;
  if (end_ == nullptr && error_ != 0) return -take_error();
  if (end_ == nullptr) return reads_nothing_ ? 0 : -ENOTCONN;
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

// As in Linux, it ends listening or connecting.
long StreamSocket::shut_down(int how) {
  if (how < SHUT_RD || how > SHUT_RDWR) return -EINVAL;
  if (is_listening()) {
    if (how != SHUT_WR) stop_listening(), unbind_drawn_port();
    return changed(), 0;
  }
  if (end_ == nullptr) {
    reads_nothing_ = reads_nothing_ || how != SHUT_WR;
    return changed(), -ENOTCONN;
  }
  if (end_->is_connecting()) {
    disconnect();
    return error_ = ECONNRESET, 0;
  }
  if (phase_ == Phase::connecting)
    phase_ = end_->is_dead() ? Phase::disconnecting : Phase::connected;
  if (end_->is_dead()) return -ENOTCONN;
  if (how != SHUT_WR) end_->shut_down_reading();
  if (how != SHUT_RD) end_->shut_down_writing();
  return 0;
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
    receive_buffer_ = size;  // Too late for a connection, as TCP's window scale is.
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
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  if (level == IPPROTO_TCP || (level == SOL_SOCKET && name == SO_KEEPALIVE))
    return set_stream_option(level, name, number);
  const long result = IpSocket::set_option(level, name, value, size);
  if (end_ != nullptr) end_->share_port(own_reservation());
  return result;
}

long StreamSocket::set_stream_option(int level, int name, int value) {
  constexpr int kMostSeconds = 32767;
  constexpr int kMostProbes = 127;
  const bool is_span = value >= 1 && value <= kMostSeconds;
  if (level == SOL_SOCKET) {
    timeouts_.keeps_alive = value != 0;
  } else if (name == TCP_NODELAY) {
    no_delay_ = value;
  } else if (name == TCP_KEEPIDLE && is_span) {
    timeouts_.idle = std::chrono::seconds{value};
  } else if (name == TCP_KEEPINTVL && is_span) {
    timeouts_.interval = std::chrono::seconds{value};
  } else if (name == TCP_KEEPCNT && value >= 1 && value <= kMostProbes) {
    timeouts_.count = value;
  } else if (name == TCP_USER_TIMEOUT && value >= 0) {
    timeouts_.user_timeout = std::chrono::milliseconds{value};
  } else if (name == TCP_KEEPIDLE || name == TCP_KEEPINTVL || name == TCP_KEEPCNT ||
             name == TCP_USER_TIMEOUT) {
    return -EINVAL;
  }
  if (end_ != nullptr) end_->set_timeouts(timeouts_);
  return 0;
}

std::optional<int> StreamSocket::option(int level, int name) {
  const auto seconds = [](Nanos span) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(span).count());
  };
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) return timeouts_.keeps_alive ? 1 : 0;
  if (level != IPPROTO_TCP) return IpSocket::option(level, name);
  switch (name) {
    case TCP_NODELAY:
      return no_delay_;
    case TCP_KEEPIDLE:
      return seconds(timeouts_.idle);
    case TCP_KEEPINTVL:
      return seconds(timeouts_.interval);
    case TCP_KEEPCNT:
      return timeouts_.count;
    case TCP_USER_TIMEOUT:
      return static_cast<int>(timeouts_.user_timeout / std::chrono::milliseconds{1});
    default:
      return IpSocket::option(level, name);
  }
}

}  // namespace spate::sim
