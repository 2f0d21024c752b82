// Datagram: a socket for packets: UDP, or a unix datagram socket.
//
// Ownership: a handle, as Stream: destroying it closes the socket at once, and nobody is called any
// more. The loop may be destroyed first; sending goes on then. Threads: the loop's thread only.
// Callbacks: a DatagramHandler's functions, from the loop only. In all of them everything is
// allowed, destroying the Datagram and running the loop included.
//
// Packets come in batches, as many as one call to the kernel brings. Nothing is queued here: a
// packet that the kernel does not take at once is refused, as the network may drop it too;
// on_writable() tells when it is worth trying again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

// What the network said about congestion on the way (RFC 3168).
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congested = 3 };

// Its bytes and addresses end with the callback.
struct Packet {
  Bytes bytes;
  const Address& peer;         // Who sent it.
  const Address& local;        // Where it was sent to; none unless DatagramOptions::local_address.
  Ecn ecn = Ecn::not_capable;  // As it arrived, with DatagramOptions::ecn.
  bool truncated = false;      // It was longer than packet_size: the rest is gone.
};

// One packet to send. Without a peer it goes to the one that connect() has named.
struct Outgoing {
  Bytes bytes;
  const Address* peer = nullptr;
};

class SPATE_EXPORT DatagramHandler {
 public:
  // One at least. The array ends with the call, and stays as it is until then, also if the loop is
  // run inside.
  virtual void on_packets(std::span<const Packet> packets) = 0;
  // What an earlier packet met with (ECONNREFUSED, EHOSTUNREACH, EMSGSIZE), or ENOMEM, or why the
  // kernel will not watch the descriptor (ERANGE: the number is too high for the select backend).
  // The socket goes on: watching is tried again every 50 ms, and its refusal is told once.
  virtual void on_error(std::error_code) {}
  // After a send that was refused with EAGAIN or ENOBUFS. Where the kernel cannot say when there is
  // room (unix sockets that are not connected), a millisecond after each refusal but the first.
  virtual void on_writable() {}

 protected:
  ~DatagramHandler() = default;
};

struct DatagramOptions {
  std::size_t packet_size = 2048;  // What is longer is cut: 1 ... 65536 bytes.
  bool reuse_address = false;      // Several sockets at one multicast address.
  bool reuse_port = false;         // Several sockets share the port, one a worker.
  bool v6_only = false;            // An IPv6 socket carries no IPv4.
  bool local_address = false;      // Packet::local is wanted.
  bool ecn = false;                // Packet::ecn is wanted.
  bool coalesce = false;   // The kernel may join packets of one sender (GRO); they come split.
  bool broadcast = false;  // Sending to broadcast addresses is allowed.
  // v6_only to coalesce say nothing to a unix socket.
};

class SPATE_EXPORT Datagram {
 public:
  // Has no socket, as one that was moved from: sending and options answer EBADF, pause() and
  // resume() do nothing, fd() is -1. start() needs a socket: without one it asserts.
  Datagram() = default;
  Datagram(Datagram&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Datagram& operator=(Datagram&& other) noexcept {
    Datagram moved(std::move(other));  // Closes what this one had.
    std::swap(socket_, moved.socket_);
    return *this;
  }
  ~Datagram();

  // Bound to `local`: Address::any_ipv4(0) for one that only sends. Errors: EADDRINUSE,
  // EADDRNOTAVAIL, EACCES, EINVAL for an address of no family and a packet_size out of bounds,
  // EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a Datagram that nobody keeps is closed at once")]]
  static Result<Datagram> create(Loop& loop, const Address& local,
                                 const DatagramOptions& options = {});
  // Takes over a bound socket; if it joins packets already, it goes on. Errors: ENOTSOCK, EBADF,
  // EINVAL for one that is not for packets and a packet_size out of bounds, ENOMEM; `fd` is still
  // the caller's then.
  [[nodiscard("a Datagram that nobody keeps is closed at once")]]
  static Result<Datagram> adopt(Loop& loop, int fd, const DatagramOptions& options = {});

  // Names who is called, and begins to receive. Once more: somebody else is called from now on.
  void start(DatagramHandler& handler);
  // Nothing is received until resume(); the kernel keeps what it has room for. Paused, it does not
  // keep the loop running.
  void pause();
  void resume();

  // From here on, only this peer is heard, and it need not be named. Address() undoes it; Linux
  // then takes away a port that it had chosen itself.
  std::error_code connect(const Address& peer);

  // Errors: EAGAIN, ENOBUFS when the kernel has no room just now; EMSGSIZE; EDESTADDRREQ; EINVAL
  // for a peer of no family, EAFNOSUPPORT for one that this socket cannot reach (an IPv6 socket
  // reaches IPv4 too); what the kernel says of the way.
  std::error_code send(Bytes bytes, const Address& peer);
  std::error_code send(Bytes bytes);  // To the connected peer.
  // As many as the kernel takes, from the front; in one call for each 64. The reason why it is not
  // all, or none, is in `error` if that is wanted.
  std::size_t send(std::span<const Outgoing> packets, std::error_code* error = nullptr);
  // One peer, many packets of `segment` bytes (the last may be shorter): the kernel splits them
  // where it can (GSO), else they go one by one. Returns how many bytes went; of no bytes, none go,
  // and no packet. An error only if none went. Errors: as send(), and EINVAL for a `segment` that
  // is not 1 ... 65507.
  Result<std::size_t> send_segments(Bytes bytes, std::size_t segment, const Address& peer);

  // Multicast. `interface` by its index; 0 leaves the choice to the kernel. Errors: EINVAL for an
  // address that is no group's, ENODEV, EADDRINUSE when it is a member already, ENOPROTOOPT for an
  // IPv6 group of an IPv4 socket, EOPNOTSUPP for a unix socket, as all options of IP.
  std::error_code join(const Address& group, std::uint32_t interface = 0);
  std::error_code leave(const Address& group, std::uint32_t interface = 0);
  std::error_code set_multicast_interface(std::uint32_t interface);
  std::error_code set_multicast_loop(bool on);
  std::error_code set_multicast_hops(int hops);  // 0 ... 255.
  std::error_code set_hops(int hops);            // 1 ... 255: time to live.
  // What is put on every packet that is sent, to IPv4 peers of an IPv6 socket, too.
  std::error_code set_ecn(Ecn ecn);
  // Bytes; 0 leaves one as it is.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);

  // None for a unix socket without a name.
  Address local_address() const;
  int fd() const;

 private:
  explicit Datagram(DatagramSocket* socket) : socket_(socket) {}

  DatagramSocket* socket_ = nullptr;
};

}  // namespace spate
