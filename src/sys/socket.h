// The system calls of streams, listeners and datagrams.
//
// Every socket is created non-blocking and close-on-exec. Functions return zero or more, or a
// negated errno; none raises SIGPIPE.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sys/descriptor.h"
#include "sys/socket_calls.h"

namespace spate::sys {

inline long open_socket(int family, int type) {
  if (const int error = injected(SystemCall::socket)) return -error;
  return opened(new_socket(family, type));
}

inline long open_pair(int (&fds)[2], int type = SOCK_STREAM) {
  if (const int error = injected(SystemCall::socket)) return -error;
  return opened_pair(new_pair(type, fds), fds);
}

// Converts a span of bytes to an iovec, which has the same layout. The kernel does not change the
// bytes.
inline iovec* as_vector(const std::span<const std::byte>* pieces) {
  using Piece = std::span<const std::byte>;
  static_assert(sizeof(Piece) == sizeof(iovec) && alignof(Piece) == alignof(iovec));
  return reinterpret_cast<iovec*>(const_cast<Piece*>(pieces));
}

// The types of a message's sizes: Linux has size_t, others have what POSIX requires.
using PieceCount = decltype(msghdr::msg_iovlen);
using ControlSize = decltype(msghdr::msg_controllen);

// An address that the kernel fills in.
struct SystemAddress {
  sockaddr_storage storage;
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

inline long bind(int fd, const void* address, std::size_t size) {
  if (const int error = injected(SystemCall::bind)) return -error;
  return result_of(::bind(fd, static_cast<const sockaddr*>(address), socklen_t(size)));
}

inline long listen(int fd, int backlog) {
  if (const int error = injected(SystemCall::listen)) return -error;
  return result_of(::listen(fd, backlog));
}

inline long connect(int fd, const void* address, std::size_t size) {
  if (const int error = injected(SystemCall::connect)) return -error;
  return result_of(::connect(fd, static_cast<const sockaddr*>(address), socklen_t(size)));
}

// `size` is the room for the peer's address, and then the size of the address.
inline long accept(int fd, void* peer, socklen_t& size) {
  if (const int error = injected(SystemCall::accept)) return -error;
  return opened(new_accepted(fd, static_cast<sockaddr*>(peer), size));
}

inline long local_address(int fd, SystemAddress& address) {
  return result_of(::getsockname(fd, address.get(), &address.size));
}

inline long peer_address(int fd, SystemAddress& address) {
  return result_of(::getpeername(fd, address.get(), &address.size));
}

inline long receive(int fd, void* data, std::size_t size) {
  if (const int error = injected(SystemCall::receive)) return -error;
  return result_of(::recv(fd, data, shortened(SystemCall::receive, size), 0));
}

// Returns whether there is input, not counting the peer's end.
inline bool has_input(int fd) {
  if (injected(SystemCall::receive) != 0) return false;
  char byte;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// Returns whether recv() would wait: no byte, no end and no error is queued.
inline bool is_quiet(int fd) {
  char byte;
  return result_of(::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)) == -EAGAIN;
}

inline long receive_message(int fd, msghdr& message, int flags) {
  if (const int error = injected(SystemCall::receive)) return -error;
  return result_of(receive_closing_on_exec(fd, message, flags));
}

inline long send(int fd, const void* data, std::size_t size) {
  if (const int error = injected(SystemCall::send)) return -error;
  return result_of(::send(fd, data, shortened(SystemCall::send, size), kNoSignal));
}

// Sends to `address`, or without one to the connected peer.
inline long send_to(int fd, const void* data, std::size_t size, const void* address,
                    std::size_t address_size) {
  if (const int error = injected(SystemCall::send)) return -error;
  return result_of(::sendto(fd, data, size, kNoSignal, static_cast<const sockaddr*>(address),
                            static_cast<socklen_t>(address_size)));
}

inline long send_message(int fd, const msghdr& message) {
  if (const int error = injected(SystemCall::send)) return -error;
  return result_of(::sendmsg(fd, &message, kNoSignal));
}

inline long shut_down_writing(int fd) {
  if (const int error = injected(SystemCall::shutdown)) return -error;
  return result_of(::shutdown(fd, SHUT_WR));
}

template <class T>
long set_option(int fd, int level, int name, const T& value) {
  if (const int error = injected(SystemCall::socket_option)) return -error;
  return result_of(::setsockopt(fd, level, name, &value, sizeof(value)));
}

template <class T>
long get_option(int fd, int level, int name, T& value) {
  socklen_t size = sizeof(value);
  return result_of(::getsockopt(fd, level, name, &value, &size));
}

// As writev() for a pipe whose reader may be closed: returns -EPIPE, and consumes the SIGPIPE.
// Affects the calling thread only; the program's handler is neither called nor changed.
long write_without_signal(int fd, const iovec* parts, int count);

// As sendfile() from `offset` on; the file's own position is unchanged. No SIGPIPE either.
long send_file_without_signal(int fd, int file, std::int64_t offset, std::size_t size);

inline bool is_unix_socket(int fd) {
  int domain = 0;
  return find_domain(fd, domain) >= 0 && domain == AF_UNIX;
}

// Room for as many descriptors as the kernel allows per message (SCM_MAX_FD).
inline constexpr std::size_t kMaxDescriptors = 253;
struct DescriptorRoom {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
};
// Attaches `descriptors` to `message`, using the memory of `room`.
void attach_descriptors(msghdr& message, DescriptorRoom& room, std::span<const int> descriptors);
// Copies the descriptors that came with a message to `descriptors`. Returns their number. Adds
// MSG_CTRUNC to the flags of the message if one had to be moved (opened()), and could not be.
std::size_t descriptors_of(msghdr& message, std::span<int, kMaxDescriptors> descriptors);

inline int family_of(const void* address) {
  return static_cast<const sockaddr*>(address)->sa_family;
}

inline int domain_of(int fd) {
  int domain = AF_UNSPEC;
  find_domain(fd, domain);
  return domain;
}

inline bool is_tcp(int fd) {
  int protocol = 0;
  return find_protocol(fd, protocol) >= 0 && protocol == IPPROTO_TCP;
}

// Returns false also if the option cannot be read.
inline bool carries_ipv6_only(int fd) {
  int on = 0;
  return get_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, on) >= 0 && on != 0;
}

// Accepted sockets inherit it.
inline bool has_no_delay(int fd) {
  int on = 0;
  return get_option(fd, IPPROTO_TCP, TCP_NODELAY, on) >= 0 && on != 0;
}

// Removes a socket file. Returns -ENOTSOCK for any other file, also for a symbolic link to a
// socket, which is not removed.
long remove_socket_file(const char* path);

// The first descriptor that a service manager passes (sd_listen_fds(3)).
inline constexpr int kFirstInherited = 3;
// Set by spawn() instead of LISTEN_PID, because the number of the new process is not known yet.
inline constexpr const char* kListenParent = "SPATE_LISTEN_PARENT";
// Returns how many were passed to this process. Unsets the variables, so that a child does not use
// them.
int take_inherited();

// Returns whether recv() and send() work on it.
inline bool is_socket(int fd) {
  int type = 0;
  return get_option(fd, SOL_SOCKET, SO_TYPE, type) >= 0;
}

// Sets the sizes in bytes; 0 leaves one unchanged.
inline long set_kernel_buffers(int fd, std::size_t send, std::size_t receive) {
  const auto bounded = [](std::size_t size) { return size < INT_MAX ? int(size) : INT_MAX; };
  long result = 0;
  if (send != 0) result = set_option(fd, SOL_SOCKET, SO_SNDBUF, bounded(send));
  if (result >= 0 && receive != 0) result = set_option(fd, SOL_SOCKET, SO_RCVBUF, bounded(receive));
  return result;
}

// Returns and clears SO_ERROR, the error of a connection or an attempt: an errno, or 0.
inline int pending_error(int fd) {
  int error = 0;
  const long result = get_option(fd, SOL_SOCKET, SO_ERROR, error);
  return result < 0 ? static_cast<int>(-result) : error;
}

// Sets SO_LINGER to zero: closing then resets the connection, whatever is queued.
inline long reset_on_close(int fd) {
  return set_option(fd, SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
}

}  // namespace spate::sys
