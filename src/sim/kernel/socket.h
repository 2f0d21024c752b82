// The base of simulated sockets of all families: the functions behind the socket calls.
//
// Functions have the semantics of the kernel's, and return zero or more, or a negated errno.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <optional>

#include "sim/kernel/file.h"

namespace spate::sim {

class Socket : public File {
 public:
  // `type` is SOCK_STREAM and the like.
  Socket(int host, int family, int type) : host_(host), family_(family), type_(type) {}
  const char* tag() const final { return &kFileTag<Socket>; }

  int host() const { return host_; }
  int type() const { return type_; }
  mode_t file_type() const final { return S_IFSOCK; }
  virtual bool is_listening() const = 0;
  // Returns the number of connections in the backlog.
  virtual std::size_t waiting() const { return 0; }
  // Its host has crashed: sends nothing any more.
  virtual void vanish() = 0;

  long read(std::span<std::byte> room) final;
  long write(std::span<const std::byte> bytes) final;

  virtual long bind(const sockaddr* address, socklen_t size) = 0;
  virtual long listen(int backlog) = 0;
  virtual long connect(const sockaddr* address, socklen_t size) = 0;
  virtual std::shared_ptr<Socket> accept(long& error) = 0;
  virtual long send(const msghdr& message) = 0;
  virtual long receive(msghdr& message, int flags) = 0;
  virtual long shut_down(int how) = 0;
  virtual long local_address(sockaddr* address, socklen_t* size) const = 0;
  virtual long peer_address(sockaddr* address, socklen_t* size) const = 0;
  // Returns the address for accept(), also of a connection that was lost while it waited.
  virtual long accepted_from(sockaddr* address, socklen_t* size) const {
    return peer_address(address, size);
  }
  virtual long set_option(int level, int name, const void* value, socklen_t size);
  virtual long get_option(int level, int name, void* value, socklen_t* size);

 protected:
  static constexpr std::size_t kMostBuffer = 4 * 1024 * 1024;
  static constexpr std::size_t kLeastBuffer = 1448;

  // Copies the value of an option to the program.
  template <class T>
  static long copy_option(const T& found, void* value, socklen_t* size) {
    if (*size < sizeof(found)) return -EINVAL;
    std::memcpy(value, &found, sizeof(found));
    *size = sizeof(found);
    return 0;
  }
  virtual std::optional<int> option(int level, int name);
  // The error for an option that there is not.
  virtual long no_option(int level) const;
  virtual void set_buffer(bool to_send, std::size_t size) = 0;
  virtual std::size_t buffer(bool to_send) const = 0;
  virtual int take_error() = 0;

  const int host_;
  const int family_;
  const int type_;

 private:
  unsigned switches_ = 0;  // Options that are on, and change nothing in a World.
};

}  // namespace spate::sim
