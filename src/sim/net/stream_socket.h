// A TCP socket: initially unconnected, then a listener or the end of a connection.
#pragma once

#include <deque>
#include <string_view>

#include "sim/net/ip_socket.h"
#include "sim/net/tcp.h"

namespace spate::sim {

class StreamSocket final : public IpSocket {
 public:
  StreamSocket(Network& network, int host, int family)
      : IpSocket(network, host, family, Protocol::tcp) {}
  // Makes the socket of a connection's end.
  StreamSocket(Network& network, int family, Connection& connection, Side side);
  ~StreamSocket() override;

  bool is_listening() const override { return backlog_ >= 0; }
  std::size_t waiting() const override { return waiting_.size(); }
  void vanish() override;
  std::uint32_t ready() const override;

  long listen(int backlog) override;
  long connect(const sockaddr* address, socklen_t size) override;
  std::shared_ptr<Socket> accept(long& error) override;
  long send(const msghdr& message) override;
  long receive(msghdr& message, int flags) override;
  long shut_down(int how) override;
  long peer_address(sockaddr* address, socklen_t* size) const override;
  long accepted_from(sockaddr* address, socklen_t* size) const override;
  long set_option(int level, int name, const void* value, socklen_t size) override;

 private:
  static void on_syn(Network& network, Connection& connection);
  static void retransmit_syn(Network& network, Connection& connection);
  // Copies options of the listener.
  void inherit(const StreamSocket& listener);
  void enqueue(Connection& connection);
  long begin(SocketAddress to);
  void disconnect();
  void stop_listening();
  bool has_port() override;
  void leave_port();
  std::optional<int> option(int level, int name) override;
  long set_stream_option(int level, int name, int value);
  void set_buffer(bool to_send, std::size_t size) override;
  std::size_t buffer(bool to_send) const override {
    return to_send ? send_buffer_ : receive_buffer_;
  }
  int take_error() override {
    return end_ == nullptr ? std::exchange(error_, 0) : end_->take_error();
  }

  // ---- a listener
  int backlog_ = -1;
  std::deque<std::shared_ptr<StreamSocket>> waiting_;
  // ---- a connection; both are set or neither
  Connection* connection_ = nullptr;
  Endpoint* end_ = nullptr;
  SocketAddress remote_;
  // The progress of connect() as seen by the socket, which is not told of later events.
  enum class Phase : std::uint8_t { unconnected, connecting, connected, disconnecting };
  Phase phase_ = Phase::unconnected;
  bool has_left_port_ = false;  // Since its connection ended.
  // ---- without a connection
  int error_ = 0;
  bool reads_nothing_ = false;
  bool resets_ = false;
  std::size_t send_buffer_ = kDefaultBuffer;
  std::size_t receive_buffer_ = kDefaultBuffer;
  int no_delay_ = 0;
  TcpTimeouts timeouts_;
};

}  // namespace spate::sim
