// Datagram: a socket for packets: UDP, or a unix datagram socket.
//
// Ownership: a handle, as Stream: destroying it closes the socket at once, and no callback follows.
// The loop may be destroyed first; sending still works. Threads: the loop's thread only.
// Callbacks: a DatagramHandler's functions, or DatagramCallbacks, from the loop only. Inside them
// everything is allowed, destroying the Datagram and running the loop included.
//
// Packets arrive in batches (recvmmsg). There is no send queue: a packet that the kernel does not
// take at once is refused; on_writable() says when to retry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"

namespace spate {

class DatagramSocket;
class Loop;

// Explicit congestion notification (RFC 3168).
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congested = 3 };

// Its bytes and addresses are valid until the callback returns.
struct Packet {
  Bytes bytes;
  const Address& peer;         // The sender.
  const Address& local;        // The destination, with DatagramOptions::local_address; else none.
  Ecn ecn = Ecn::not_capable;  // With DatagramOptions::ecn.
  bool truncated = false;      // Cut to packet_size.
};

// One packet to send; without a peer, to the connected one.
struct Outgoing {
  Bytes bytes;
  const Address* peer = nullptr;
};

class SPATE_EXPORT DatagramHandler {
 public:
  // At least one. Valid and unchanged until the call returns, even if it runs the loop.
  virtual void on_packets(std::span<const Packet> packets) = 0;
  // A network error for an earlier packet (ECONNREFUSED, EHOSTUNREACH, EMSGSIZE), ENOMEM, or the
  // kernel's reason for not watching the descriptor (ERANGE: too high for the select backend). The
  // socket stays usable. Watching is retried every 50 ms, and its error reported once.
  virtual void on_error(std::error_code) {}
  // There may be room again after EAGAIN or ENOBUFS. Where the kernel does not report that (unix
  // sockets that are not connected), a millisecond after each refusal but the first.
  virtual void on_writable() {}

 protected:
  ~DatagramHandler() = default;
};

// A DatagramHandler made of functions. Each is optional; without on_packets, packets are discarded.
struct DatagramCallbacks {
  std::move_only_function<void(std::span<const Packet> packets)> on_packets{};
  std::move_only_function<void(std::error_code error)> on_error{};
  std::move_only_function<void()> on_writable{};
};

struct DatagramOptions {
  std::size_t packet_size = 2048;  // Longer packets are cut: 1 ... 65536 bytes.
  bool reuse_address = false;      // Several sockets at one multicast address.
  bool reuse_port = false;         // Several sockets share the port, one per worker.
  bool v6_only = false;            // An IPv6 socket carries no IPv4.
  bool local_address = false;      // Fill in Packet::local.
  bool ecn = false;                // Fill in Packet::ecn.
  bool coalesce = false;           // UDP_GRO: the kernel joins packets, which are split again.
  bool broadcast = false;          // Allow sending to broadcast addresses.
  // Unix sockets ignore v6_only, local_address, ecn and coalesce.
};

class SPATE_EXPORT Datagram {
 public:
  // Has no socket: sending and options return EBADF, pause() and resume() do nothing, fd() is -1,
  // start() asserts.
  Datagram() = default;
  Datagram(Datagram&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Datagram& operator=(Datagram&& other) noexcept {
    Datagram moved(std::move(other));  // Closes this one's socket.
    std::swap(socket_, moved.socket_);
    return *this;
  }
  ~Datagram();

  // Bound to `local`: Address::any_ipv4(0) for a socket that only sends. Errors: EADDRINUSE,
  // EADDRNOTAVAIL, EACCES, EINVAL for an address without a family or a packet_size out of range,
  // EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a Datagram that nobody keeps is closed at once")]]
  static Result<Datagram> create(Loop& loop, const Address& local,
                                 const DatagramOptions& options = {});
  // Takes over a bound socket; if UDP_GRO is on, it stays on. Errors, with which `fd` stays the
  // caller's: ENOTSOCK, EBADF, EINVAL for another kind of socket or a packet_size out of range,
  // ENOMEM.
  [[nodiscard("a Datagram that nobody keeps is closed at once")]]
  static Result<Datagram> adopt(Loop& loop, int fd, const DatagramOptions& options = {});

  // Sets the handler and starts receiving; calling again replaces the handler.
  void start(DatagramHandler& handler);
  // The same with functions, which the socket owns: one allocation. Errors, with which it is not
  // started: ENOMEM.
  std::error_code start(DatagramCallbacks callbacks);
  // Receives nothing until resume(); the kernel buffers what it has room for. A paused socket does
  // not keep the loop alive.
  void pause();
  void resume();

  // Receives from this peer only, which is also the default for sending. Address() undoes it; Linux
  // then releases a port that it had chosen itself.
  std::error_code connect(const Address& peer);

  // Errors: EAGAIN, ENOBUFS when the kernel has no room; EMSGSIZE; EDESTADDRREQ; EINVAL for a peer
  // without a family, EAFNOSUPPORT for one of another family (an IPv6 socket also sends to IPv4);
  // other network errors.
  std::error_code send(Bytes bytes, const Address& peer);
  std::error_code send(Bytes bytes);  // To the connected peer.
  // Sends packets from the front until one is refused, in system calls of up to 64. Returns how
  // many were sent; if not all, the reason is in `*error`.
  std::size_t send(std::span<const Outgoing> packets, std::error_code* error = nullptr);
  // Sends `bytes` to one peer in packets of `segment` bytes (the last may be shorter): split by the
  // kernel where it can (UDP_SEGMENT), else one by one. Returns how many bytes were sent; an error
  // only if none. Empty `bytes` send no packet. Errors: as send(), and EINVAL for a `segment`
  // outside 1 ... 65507.
  Result<std::size_t> send_segments(Bytes bytes, std::size_t segment, const Address& peer);

  // Multicast. `interface` is an index; 0 is the kernel's choice. Errors: EINVAL if `group` is not
  // a multicast address, ENODEV, EADDRINUSE if already a member, ENOPROTOOPT for an IPv6 group on
  // an IPv4 socket, EOPNOTSUPP for a unix socket, as for all IP options.
  std::error_code join(const Address& group, std::uint32_t interface = 0);
  std::error_code leave(const Address& group, std::uint32_t interface = 0);
  std::error_code set_multicast_interface(std::uint32_t interface);
  std::error_code set_multicast_loop(bool on);
  std::error_code set_multicast_hops(int hops);  // 0 ... 255.
  std::error_code set_hops(int hops);            // 1 ... 255: time to live.
  // For every packet sent, also to IPv4 peers of an IPv6 socket.
  std::error_code set_ecn(Ecn ecn);
  // Bytes; 0 leaves one as it is.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);

  // Empty for an unnamed unix socket.
  Address local_address() const;
  int fd() const;

 private:
  explicit Datagram(DatagramSocket* socket) : socket_(socket) {}

  DatagramSocket* socket_ = nullptr;
};

}  // namespace spate
