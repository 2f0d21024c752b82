// A socket's descriptor: first none, then a listener or the end of a connection.
//
// Functions are those of the kernel, and return zero or more, or a negated errno.
#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/file.h"
#include "sim/network.h"
#include "sim/place.h"
#include "sim/tcp.h"

namespace spate::sim {

class Socket final : public File {
 public:
  Socket(Network& network, int host, int family)
      : network_(network), host_(host), family_(family) {}
  // The end of a connection.
  Socket(Network& network, int family, Connection& connection, Side side);
  ~Socket() override;
  Socket* as_socket() override { return this; }

  int host() const { return host_; }
  const Place& local() const { return local_; }
  bool is_listening() const { return backlog_ >= 0; }
  bool is_v6_only() const { return v6_only_ != 0; }
  bool shares_port() const { return shares_port_ != 0; }

  std::uint32_t ready() const override;
  long read(std::span<std::byte> room) override { return receive(room, Endpoint::Peek::no); }
  long write(std::span<const std::byte> bytes) override;

  long bind(const sockaddr* address, socklen_t size);
  long listen(int backlog);
  long connect(const sockaddr* address, socklen_t size);
  std::shared_ptr<Socket> accept(long& error);
  long receive(std::span<std::byte> room, Endpoint::Peek peek);
  long send(std::string_view bytes);
  long shut_down(int how);
  long local_address(sockaddr* address, socklen_t* size) const;
  long peer_address(sockaddr* address, socklen_t* size) const;
  long set_option(int level, int name, const void* value, socklen_t size);
  long get_option(int level, int name, void* value, socklen_t* size);

 private:
  static constexpr std::size_t kMostBuffer = 4 * 1024 * 1024;

  static void knock(Network& network, Connection& connection);
  void enqueue(Connection& connection);
  long begin(Place to);
  std::optional<int> option(int level, int name);

  Network& network_;
  const int host_;
  const int family_;
  Place local_;
  bool is_bound_ = false;
  // A listener.
  int backlog_ = -1;
  std::deque<std::uint64_t> waiting_;
  // A connection; both or none.
  Connection* connection_ = nullptr;
  Endpoint* end_ = nullptr;
  Place remote_;
  bool is_announced_ = false;  // connect() has said that it is connected, or why it is not.
  bool resets_ = false;
  std::size_t send_buffer_ = kDefaultBuffer;
  std::size_t receive_buffer_ = kDefaultBuffer;
  // Options that are remembered, and do no more.
  int v6_only_ = 0;
  int shares_port_ = 0;
  int no_delay_ = 0;
};

}  // namespace spate::sim
