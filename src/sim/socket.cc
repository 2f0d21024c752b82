#include "sim/socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spate::sim {

namespace {

constexpr Nanos kKnockAgain = std::chrono::seconds{1};

}  // namespace

Socket::Socket(Network& network, int family, Connection& connection, Side side)
    : network_(network),
      host_(connection.end(side).host()),
      family_(family),
      local_(connection.end(side).local()),
      connection_(&connection),
      end_(&connection.end(side)),
      remote_(connection.end(opposite(side)).local()) {
  end_->show_at(this);
}

Socket::~Socket() {
  if (is_bound_) network_.unbind(*this);
  for (const std::uint64_t id : waiting_) {
    if (Connection* connection = network_.find(id))
      connection->server.close(Endpoint::Farewell::reset);
  }
  if (end_ != nullptr)
    end_->close(resets_ ? Endpoint::Farewell::reset : Endpoint::Farewell::graceful);
}

std::uint32_t Socket::ready() const {
  if (is_listening()) return waiting_.empty() ? 0u : EPOLLIN;
  return end_ == nullptr ? EPOLLOUT | EPOLLHUP : end_->ready();
}

long Socket::write(std::span<const std::byte> bytes) {
  return send({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// ---- listening

long Socket::bind(const sockaddr* address, socklen_t size) {
  std::optional<Place> place = Place::from_system(family_, address, size);
  if (is_bound_ || end_ != nullptr || !place) return -EINVAL;
  if (const long result = network_.bind(*this, *place); result < 0) return result;
  local_ = *place;
  is_bound_ = true;
  return 0;
}

long Socket::listen(int backlog) {
  if (!is_bound_ || end_ != nullptr) return -EINVAL;
  backlog_ = std::max(backlog, 0);
  return 0;
}

std::shared_ptr<Socket> Socket::accept(long& error) {
  error = is_listening() ? -EAGAIN : -EINVAL;
  while (!waiting_.empty()) {
    Connection* connection = network_.find(waiting_.front());
    waiting_.pop_front();
    if (connection == nullptr) continue;
    auto accepted = std::make_shared<Socket>(network_, family_, *connection, Side::server);
    accepted->no_delay_ = no_delay_;
    accepted->is_announced_ = true;
    return accepted;
  }
  return nullptr;
}

void Socket::enqueue(Connection& connection) {
  waiting_.push_back(connection.id);
  connection.server.on_established(connection.client_buffer);
  network_.send(connection, Side::server, kWelcomePrint,
                [](Connection& to) { to.client.on_established(to.server_buffer); });
  changed();
}

// The client's first packet has come. While the backlog is full, it comes again.
void Socket::knock(Network& network, Connection& connection) {
  Socket* listener =
      network.listener_at(connection.server.host(), connection.server.local(), connection.id);
  if (listener == nullptr) {
    network.send(connection, Side::server, kRefusalPrint,
                 [](Connection& to) { to.client.on_refused(ECONNREFUSED); });
  } else if (listener->waiting_.size() <= static_cast<std::size_t>(listener->backlog_)) {
    connection.server_buffer = listener->receive_buffer_;
    listener->enqueue(connection);
  } else {
    network.kernel().at(network.kernel().now() + kKnockAgain, [&network, id = connection.id] {
      Connection* again = network.find(id);
      if (again == nullptr) return;
      network.send(*again, Side::client, kKnockPrint,
                   [&network](Connection& to) { knock(network, to); });
    });
  }
}

// ---- connecting

long Socket::connect(const sockaddr* address, socklen_t size) {
  const std::optional<Place> to = Place::from_system(family_, address, size);
  if (!to) return -EINVAL;
  if (is_listening()) return -EOPNOTSUPP;
  if (end_ == nullptr) return begin(*to);
  if (end_->is_connecting()) return -EALREADY;
  if (const int error = end_->take_error()) return -error;
  return std::exchange(is_announced_, true) ? -EISCONN : 0;
}

long Socket::begin(Place to) {
  if (to.ip.is_any()) to.ip = to.ip.is_v4() ? Ip::v4_of(host_) : Ip::v6_of(host_);
  const int host = to.ip.host(host_);
  if (host < 0 || host >= network_.hosts) return -ENETUNREACH;
  if (local_.ip.is_any())
    local_.ip = to.ip.is_loopback() ? to.ip : to.ip.is_v4() ? Ip::v4_of(host_) : Ip::v6_of(host_);
  if (local_.port == 0) local_.port = network_.free_port(host_);
  if (local_.port == 0) return -EADDRNOTAVAIL;
  remote_ = to;
  connection_ = &network_.make_connection(host_, local_, host, to);
  connection_->client_buffer = receive_buffer_;
  end_ = &connection_->client;
  end_->show_at(this);
  end_->set_send_buffer(send_buffer_);
  network_.send(*connection_, Side::client, kKnockPrint,
                [&network = network_](Connection& at) { knock(network, at); });
  return -EINPROGRESS;
}

// ---- connected

long Socket::receive(std::span<std::byte> room, Endpoint::Peek peek) {
  return end_ == nullptr ? -ENOTCONN : end_->receive(room, peek);
}

long Socket::send(std::string_view bytes) { return end_ == nullptr ? -EPIPE : end_->send(bytes); }

long Socket::shut_down(int how) {
  if (end_ == nullptr) return -ENOTCONN;
  if (how != SHUT_WR) end_->shut_down_reading();
  return how == SHUT_RD ? 0 : end_->shut_down_writing();
}

long Socket::local_address(sockaddr* address, socklen_t* size) const {
  local_.to_system(family_, address, size);
  return 0;
}

long Socket::peer_address(sockaddr* address, socklen_t* size) const {
  if (end_ == nullptr || !end_->is_open()) return -ENOTCONN;
  remote_.to_system(family_, address, size);
  return 0;
}

// ---- options

long Socket::set_option(int level, int name, const void* value, socklen_t size) {
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  const std::size_t buffer =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(number, 0)), kSegment, kMostBuffer);
  if (level == SOL_SOCKET && name == SO_REUSEPORT) {
    shares_port_ = number;
  } else if (level == SOL_SOCKET && name == SO_LINGER) {
    linger lingering{};
    if (size < sizeof(lingering)) return -EINVAL;
    std::memcpy(&lingering, value, sizeof(lingering));
    resets_ = lingering.l_onoff != 0 && lingering.l_linger == 0;
  } else if (level == SOL_SOCKET && name == SO_SNDBUF) {
    send_buffer_ = buffer;
    if (end_ != nullptr) end_->set_send_buffer(buffer);
  } else if (level == SOL_SOCKET && name == SO_RCVBUF) {
    receive_buffer_ = buffer;  // As with TCP's window, too late for a connection.
  } else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
    v6_only_ = number;
  } else if (level == IPPROTO_TCP && name == TCP_NODELAY) {
    no_delay_ = number;
  } else if (level != SOL_SOCKET && level != IPPROTO_TCP) {
    return -ENOPROTOOPT;
  }
  return 0;
}

std::optional<int> Socket::option(int level, int name) {
  if (level == IPPROTO_TCP && name == TCP_NODELAY) return no_delay_;
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) return v6_only_;
  if (level != SOL_SOCKET) return std::nullopt;
  switch (name) {
    case SO_ERROR:
      return end_ == nullptr ? 0 : end_->take_error();
    case SO_TYPE:
      return SOCK_STREAM;
    case SO_DOMAIN:
      return family_;
    case SO_PROTOCOL:
      return family_ == AF_UNIX ? 0 : IPPROTO_TCP;
    case SO_ACCEPTCONN:
      return is_listening();
    case SO_REUSEPORT:
      return shares_port_;
    case SO_SNDBUF:
      return static_cast<int>(send_buffer_);
    case SO_RCVBUF:
      return static_cast<int>(receive_buffer_);
    default:
      return std::nullopt;
  }
}

long Socket::get_option(int level, int name, void* value, socklen_t* size) {
  const std::optional<int> found = option(level, name);
  if (!found) return -ENOPROTOOPT;
  if (*size < sizeof(*found)) return -EINVAL;
  std::memcpy(value, &*found, sizeof(*found));
  *size = sizeof(*found);
  return 0;
}

}  // namespace spate::sim
