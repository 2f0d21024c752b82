// Datagram: a socket for packets: UDP, or a unix datagram socket.
//
// Ownership: a handle, as Stream: destroying it closes the socket at once, and no callback follows.
// The loop may be destroyed first; sending still works. Threads: the loop's thread only.
// Callbacks: a DatagramHandler's functions, or DatagramCallbacks, from the loop only. Inside them
// everything is allowed, destroying the Datagram and running the loop included.
//
// Packets arrive in batches (recvmmsg). There is no send queue: if the kernel cannot take a packet
// at once, sending it fails; on_writable() is called when it is time to retry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"

namespace spate {

class DatagramSocket;
class Loop;

// Explicit congestion notification (RFC 3168).
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congested = 3 };

// A received packet. Its bytes and addresses are valid until the callback returns.
struct Packet {
  Bytes bytes;
  const Address& peer;         // The sender.
  const Address& local;        // The destination, with DatagramOptions::local_address; otherwise
                               // empty.
  Ecn ecn = Ecn::not_capable;  // With DatagramOptions::ecn.
  bool truncated = false;      // Cut to packet_size.
};

// One packet to send. The addresses must exist until the call returns.
struct Outgoing {
  Bytes bytes{};
  const Address* peer = nullptr;   // The destination; nullptr: the connected peer.
  const Address* local = nullptr;  // The source; nullptr: the kernel's choice. Its port is ignored.
  std::optional<Ecn> ecn{};        // Without it, that of set_ecn().
  // Nonzero: `bytes` are up to 64 packets of `segment` bytes, of which the last may be shorter. The
  // kernel splits them where it can (UDP_SEGMENT).
  std::uint16_t segment = 0;
};

class SPATE_EXPORT DatagramHandler {
 public:
  // Called with at least one packet. The packets are valid and unchanged until the call returns,
  // even if it runs the loop.
  virtual void on_packets(std::span<const Packet> packets) = 0;
  // Called for a network error of an earlier packet (ECONNREFUSED, EHOSTUNREACH, EMSGSIZE), for
  // ENOMEM, or if the kernel cannot watch the descriptor (ERANGE: too high for the select backend).
  // The socket stays usable. Watching is retried every 50 ms, and its error reported once.
  virtual void on_error(std::error_code) {}
  // Called when there may be room again after EAGAIN or ENOBUFS. For unix sockets that are not
  // connected, where the kernel does not report this, it is called a millisecond after each refusal
  // except the first.
  virtual void on_writable() {}

 protected:
  ~DatagramHandler() = default;
};

// A DatagramHandler made of functions. Each is optional; without on_packets, packets are discarded.
struct DatagramCallbacks {
  Function<void(std::span<const Packet> packets)> on_packets{};
  Function<void(std::error_code error)> on_error{};
  Function<void()> on_writable{};
};

struct DatagramOptions {
  std::size_t packet_size = 2048;  // Longer packets are truncated: 1 ... 65536 bytes.
  bool reuse_address = false;      // Several sockets at one multicast address.
  bool reuse_port = false;         // Several sockets share the port, one per worker.
  bool v6_only = false;            // An IPv6 socket carries no IPv4.
  bool local_address = false;      // Fill in Packet::local.
  bool ecn = false;                // Fill in Packet::ecn.
  bool coalesce = false;           // UDP_GRO: the kernel joins packets, which are split again.
  bool broadcast = false;          // Allow sending to broadcast addresses.
  // Routers may not split packets. A packet that exceeds the first link's MTU fails with EMSGSIZE;
  // one that exceeds a later link's is lost. For protocols that search the path's MTU (RFC 8899).
  bool dont_fragment = false;
  // Unix sockets ignore v6_only, local_address, ecn, coalesce and dont_fragment.
};

class SPATE_EXPORT Datagram {
 public:
  // Makes a Datagram without a socket: sending and options return EBADF, pause() and resume() do
  // nothing, fd() is -1, start() asserts.
  Datagram() = default;
  Datagram(Datagram&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Datagram& operator=(Datagram&& other) noexcept {
    Datagram moved(std::move(other));  // Closes the socket that this one had.
    std::swap(socket_, moved.socket_);
    return *this;
  }
  ~Datagram();

  // Makes a socket bound to `local`: Address::any_ipv4(0) for one that only sends. Errors:
  // EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL for an address without a family or a packet_size out
  // of range, EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a discarded Datagram is closed at once")]]
  static Result<Datagram> create(Loop& loop, const Address& local,
                                 const DatagramOptions& options = {});
  // Takes ownership of a bound socket; if UDP_GRO is on, it stays on. On an error `fd` stays the
  // caller's. Errors: ENOTSOCK, EBADF, ENOMEM; EINVAL for another kind of socket, a packet_size out
  // of range, or `v6_only` of a socket that carries IPv4, which has no effect after bind().
  [[nodiscard("a discarded Datagram is closed at once")]]
  static Result<Datagram> adopt(Loop& loop, int fd, const DatagramOptions& options = {});

  // Sets the handler and starts receiving; calling again replaces the handler.
  void start(DatagramHandler& handler);
  // As above with functions, which the socket owns: one allocation. On an error it is not started.
  // Errors: ENOMEM.
  std::error_code start(DatagramCallbacks callbacks);
  // Receives nothing until resume(). The kernel buffers packets meanwhile, within the limits of its
  // buffer. A paused socket does not keep the loop alive.
  void pause();
  void resume();

  // Receives from this peer only, which also becomes the default for sending. Address() undoes it;
  // Linux then releases a port that it had chosen itself.
  std::error_code connect(const Address& peer);

  // Sends one packet. Errors: EAGAIN, ENOBUFS when the kernel has no room; EMSGSIZE; EDESTADDRREQ;
  // EINVAL for a peer without a family, EAFNOSUPPORT for one of another family (an IPv6 socket also
  // sends to IPv4); other network errors.
  std::error_code send(Bytes bytes, const Address& peer);
  std::error_code send(Bytes bytes);  // To the connected peer.
  // Sends packets from the front until one is refused, in system calls of up to 64. Returns how
  // many elements of `packets` were sent; if not all, `*error` has the reason. An element with a
  // `segment` may then have been sent in part, if the kernel cannot split it. Errors: as send();
  // EINVAL for a `local` of another family than the peer's, an `ecn` out of range, or more than 64
  // segments; EINVAL or ENETUNREACH, depending on the kernel, for a `local` that this host does not
  // have; EOPNOTSUPP for `local` and `ecn` on a unix socket.
  std::size_t send(std::span<const Outgoing> packets, std::error_code* error = nullptr);
  // Sends `bytes` to one peer in packets of `segment` bytes (the last may be shorter). The kernel
  // splits them where it can (UDP_SEGMENT); otherwise they are sent one by one. Returns how many
  // bytes were sent; an error only if none. Empty `bytes` send no packet. Errors: as send(), and
  // EINVAL for a `segment` outside 1 ... 65507.
  Result<std::size_t> send_segments(Bytes bytes, std::size_t segment, const Address& peer);

  // ---- multicast
  //
  // `interface` is an index; 0 is the kernel's choice. Errors: EINVAL if `group` is not a multicast
  // address, ENODEV, EADDRINUSE if already a member, ENOPROTOOPT for an IPv6 group on an IPv4
  // socket, EOPNOTSUPP for a unix socket, as for all IP options.
  std::error_code join(const Address& group, std::uint32_t interface = 0);
  std::error_code leave(const Address& group, std::uint32_t interface = 0);
  std::error_code set_multicast_interface(std::uint32_t interface);
  std::error_code set_multicast_loop(bool on);
  std::error_code set_multicast_hops(int hops);  // 0 ... 255.
  std::error_code set_hops(int hops);            // 1 ... 255: time to live.
  // Applies to every packet sent, also to IPv4 peers of an IPv6 socket.
  std::error_code set_ecn(Ecn ecn);
  // Sets the sizes in bytes; 0 leaves one unchanged.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);

  // Returns the largest IP packet in bytes, headers included, that the path to the connected peer
  // is known to carry. Errors: ENOTCONN without a peer; EOPNOTSUPP for a unix socket.
  Result<std::size_t> path_mtu() const;
  // Returns how many packets the kernel dropped because the socket's receive buffer was full.
  // Errors: EBADF; ENOPROTOOPT before Linux 4.12.
  Result<std::uint32_t> dropped() const;

  // Returns the bound address. Empty for an unnamed unix socket.
  Address local_address() const;
  int fd() const;

 private:
  explicit Datagram(DatagramSocket* socket) : socket_(socket) {}

  DatagramSocket* socket_ = nullptr;
};

}  // namespace spate
