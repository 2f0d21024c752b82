// A socket's descriptor: what those of streams and those of packets share.
//
// Functions are those of the kernel, and return zero or more, or a negated errno.
#pragma once

#include <memory>
#include <optional>

#include "sim/file.h"
#include "sim/network.h"
#include "sim/place.h"

namespace spate::sim {

class Socket : public File {
 public:
  Socket(Network& network, int host, int family, Protocol protocol)
      : network_(network), host_(host), family_(family), protocol_(protocol) {}
  ~Socket() override { unbind(); }
  Socket* as_socket() final { return this; }

  int host() const { return host_; }
  Protocol protocol() const { return protocol_; }
  const Place& local() const { return local_; }
  // Whether it gets what is sent to `ip` and its port, if bound to `own`.
  bool hears(const Ip& own, const Ip& ip) const;
  bool shares_port(const Socket& other) const;
  virtual bool is_listening() const = 0;
  // Connections that wait to be accepted.
  virtual std::size_t waiting() const { return 0; }
  // Its host has crashed: nothing is sent any more.
  virtual void vanish() { is_bound_ = false; }

  long read(std::span<std::byte> room) final;
  long write(std::span<const std::byte> bytes) final;

  virtual long bind(const sockaddr* address, socklen_t size);
  virtual long listen(int backlog) = 0;
  virtual long connect(const sockaddr* address, socklen_t size) = 0;
  virtual std::shared_ptr<Socket> accept(long& error) = 0;
  virtual long send(const msghdr& message) = 0;
  virtual long receive(msghdr& message, int flags) = 0;
  virtual long shut_down(int how) = 0;
  virtual long peer_address(sockaddr* address, socklen_t* size) const = 0;
  long local_address(sockaddr* address, socklen_t* size) const;
  virtual long set_option(int level, int name, const void* value, socklen_t size);
  long get_option(int level, int name, void* value, socklen_t* size);

 protected:
  static constexpr std::size_t kMostBuffer = 4 * 1024 * 1024;

  virtual std::optional<int> option(int level, int name);
  virtual void set_buffer(bool to_send, std::size_t size) = 0;
  virtual std::size_t buffer(bool to_send) const = 0;
  virtual int take_error() = 0;
  void unbind();
  // This host's address of the same kind as `ip`.
  Ip own_like(const Ip& ip) const;

  Network& network_;
  const int host_;
  const int family_;
  const Protocol protocol_;
  Place local_;
  bool is_bound_ = false;

 private:
  // Options that are remembered.
  int v6_only_ = 0;
  int shares_port_ = 0;
  int shares_address_ = 0;
};

}  // namespace spate::sim
