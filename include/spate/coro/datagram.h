// Datagram: a socket whose packets coroutines receive and send. It owns the spate::Datagram and is
// its handler.
//
//   coro::Task<Result<void>> echo(spate::Datagram bound) {
//     coro::Datagram socket(std::move(bound));
//     for (;;) {
//       const Packet packet = co_await coro::or_return(socket.receive());
//       co_await coro::or_return(socket.send(packet.bytes, packet.peer));
//     }
//   }
//
// Ownership: it does not move. Destroying it closes the socket; no coroutine may be waiting on it
// then.
// Threads: the loop's thread only.
// At most one coroutine receives at a time; any number may wait to send, and are served in order. A
// received packet is valid until the coroutine next waits: copy it to keep it. A cancelled receive
// consumes nothing.
// While no coroutine receives, packets stay in the kernel, and the socket does not keep the loop
// alive. Packets are read in batches of at most 64. If the coroutine waits for something else
// before a batch is used up, the rest is copied, and received first.
// Back-pressure: send() waits while the kernel has no room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "spate/coro/extend/block.h"
#include "spate/coro/scope.h"
#include "spate/net/bytes.h"
#include "spate/net/datagram.h"

namespace spate::coro {

class SPATE_EXPORT Datagram final : DatagramHandler {
 public:
  class Receive;
  class ReceiveSome;
  class Send;

  // With an empty one all operations return EBADF.
  explicit Datagram(spate::Datagram datagram);
  ~Datagram();
  Datagram(const Datagram&) = delete;
  Datagram& operator=(const Datagram&) = delete;

  // co_await: returns a Packet, with its sender. The socket is usable after an error. Errors: those
  // of DatagramHandler::on_error(); EBADF.
  inline Receive receive();
  // co_await: returns a span of all packets that have arrived, at least one; they count as
  // received.
  inline ReceiveSome receive_some();

  // co_await: sends a packet, and waits until the kernel has taken it. If it must wait, it copies
  // the packet. A cancelled send may have been sent. Errors: those of Datagram::send(), except
  // EAGAIN and ENOBUFS; ENOMEM.
  inline Send send(Bytes bytes, const Address& peer);
  inline Send send(std::string_view text, const Address& peer);
  // As above, to the connected peer.
  inline Send send(Bytes bytes);
  inline Send send(std::string_view text);
  // As above, for several packets. An error is that of the first packet that cannot be sent: the
  // packets before it were sent, the others were not.
  inline Send send(std::span<const Outgoing> packets);

  // Returns the spate::Datagram, for options, the address, multicast, and sending without waiting.
  // Do not call its start(), pause() and resume(), which are used internally.
  spate::Datagram& datagram() { return datagram_; }

 private:
  // The packets passed to on_packets() that were not yet received. `is_destroyed` is set if the
  // receiver destroys the Datagram.
  struct Batch {
    std::span<const Packet> left;
    bool is_destroyed = false;
  };
  class StoredPackets;

  void on_packets(std::span<const Packet> packets) override;
  void on_error(std::error_code error) override;
  void on_writable() override;

  bool has_packets() const;
  std::span<const Packet> take(std::size_t most);
  std::span<const Packet> take_stored(std::size_t most);
  void store(std::span<const Packet> packets);
  void update_receiving();

  spate::Datagram datagram_;
  Receive* receiving_ = nullptr;
  Send* first_ = nullptr;  // The list of coroutines that wait to send.
  Send* last_ = nullptr;
  Batch* batch_ = nullptr;                 // Inside on_packets().
  std::unique_ptr<StoredPackets> stored_;  // Copies, oldest first.
  std::unique_ptr<StoredPackets> current_;
  std::error_code error_;
  bool is_watching_ = false;
};

// The awaitable of receive().
class SPATE_EXPORT Datagram::Receive : public Operation<Receive> {
 public:
  explicit Receive(Datagram& datagram) : datagram_(datagram) {}
  ~Receive() { cancel(); }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<Packet> await_resume();

 protected:
  // Returns up to `most` packets, or the error if none was given.
  Result<std::span<const Packet>> take(std::size_t most);

 private:
  friend class Datagram;

  Datagram& datagram_;
  Continuation continuation_;
  bool is_woken_ = false;
};

// The awaitable of receive_some().
class SPATE_EXPORT Datagram::ReceiveSome : public Receive {
 public:
  using Receive::Receive;

  Result<std::span<const Packet>> await_resume() { return take(SIZE_MAX); }
};

// The awaitable of send().
class SPATE_EXPORT Datagram::Send : public Operation<Send> {
 public:
  Send(Datagram& datagram, Bytes bytes, const Address* peer)
      : datagram_(datagram), one_{bytes, peer}, rest_(&one_, 1) {}
  Send(Datagram& datagram, std::span<const Outgoing> packets)
      : datagram_(datagram), rest_(packets) {}
  ~Send() { cancel(); }

  bool await_ready();
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Datagram;

  bool try_now();
  bool copy_packets();

  Datagram& datagram_;
  Outgoing one_{};
  std::span<const Outgoing> rest_;
  Continuation continuation_;
  std::error_code error_;
  Block copy_;  // The bytes of the waiting packets.
  Send* next_ = nullptr;
  Send* previous_ = nullptr;
  bool is_waiting_ = false;  // For room in the kernel.
};

inline Datagram::Receive Datagram::receive() { return Receive(*this); }
inline Datagram::ReceiveSome Datagram::receive_some() { return ReceiveSome(*this); }
inline Datagram::Send Datagram::send(Bytes bytes, const Address& peer) {
  return Send(*this, bytes, &peer);
}
inline Datagram::Send Datagram::send(std::string_view text, const Address& peer) {
  return send(bytes_of(text), peer);
}
inline Datagram::Send Datagram::send(Bytes bytes) { return Send(*this, bytes, nullptr); }
inline Datagram::Send Datagram::send(std::string_view text) { return send(bytes_of(text)); }
inline Datagram::Send Datagram::send(std::span<const Outgoing> packets) {
  return Send(*this, packets);
}

}  // namespace spate::coro
