// Datagram: a socket for packets, received and sent by coroutines. It owns the spate::Datagram and
// is its handler.
//
//   coro::Task<Result<void>> echo(spate::Datagram bound) {
//     coro::Datagram socket(std::move(bound));
//     for (;;) {
//       const Packet packet = co_await coro::or_return(socket.receive());
//       co_await coro::or_return(socket.send(packet.bytes, packet.peer));
//     }
//   }
//
// Ownership: it does not move. Destroying it closes the socket; nobody may be waiting then.
// Threads: the loop's thread only.
// One coroutine may receive at a time; any number may wait to send, and are served in order. What
// was received is valid until the coroutine waits for anything: copy what has to last. A receive
// that is given up has taken nothing.
// While nobody receives, packets stay in the kernel, and the socket does not keep the loop alive.
// Packets come in batches of at most 64: what is left of one when the coroutine waits for something
// else is copied, and is received first.
// Back-pressure: send() waits while the kernel has no room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "spate/coro/block.h"
#include "spate/coro/scope.h"
#include "spate/net/bytes.h"
#include "spate/net/datagram.h"

namespace spate::coro {

class SPATE_EXPORT Datagram final : DatagramHandler {
 public:
  class Receive;
  class ReceiveSome;
  class Send;

  // An empty one gives EBADF.
  explicit Datagram(spate::Datagram datagram);
  ~Datagram();
  Datagram(const Datagram&) = delete;
  Datagram& operator=(const Datagram&) = delete;

  // co_await: a Packet, with its sender. Errors, after which the socket is usable: those of
  // DatagramHandler::on_error(); EBADF.
  inline Receive receive();
  // co_await: all that have come, at least one, in a span; they count as received.
  inline ReceiveSome receive_some();

  // co_await: until the kernel has taken it. If that is not at once, it is copied meanwhile.
  // Errors: those of Datagram::send(), but for EAGAIN and ENOBUFS; ENOMEM. When the wait is given
  // up it may have been sent.
  inline Send send(Bytes bytes, const Address& peer);
  inline Send send(std::string_view text, const Address& peer);
  // To the connected peer.
  inline Send send(Bytes bytes);
  inline Send send(std::string_view text);
  // Several. An error is that of the first that cannot be sent: those before it were, those behind
  // it were not.
  inline Send send(std::span<const Outgoing> packets);

  // For options, the address, multicast, and sending without waiting. Its start(), pause() and
  // resume() are this one's to call.
  spate::Datagram& datagram() { return datagram_; }

 private:
  // What on_packets() was given, and is not yet received. The Datagram may be destroyed by who
  // receives.
  struct Arrival {
    std::span<const Packet> left;
    bool is_gone = false;
  };
  class Kept;

  void on_packets(std::span<const Packet> packets) override;
  void on_error(std::error_code error) override;
  void on_writable() override;

  bool has_packets() const;
  std::span<const Packet> take(std::size_t most);
  std::span<const Packet> take_kept(std::size_t most);
  void keep(std::span<const Packet> packets);
  void look();

  spate::Datagram datagram_;
  Receive* receiving_ = nullptr;
  Send* first_ = nullptr;  // Of those who wait to send.
  Send* last_ = nullptr;
  Arrival* arrival_ = nullptr;  // In on_packets().
  std::unique_ptr<Kept> kept_;  // Copies, the oldest first.
  std::unique_ptr<Kept> shown_;
  std::error_code error_;
  bool is_watching_ = false;
};

// What receive() gives to co_await.
class SPATE_EXPORT Datagram::Receive : public Operation<Receive> {
 public:
  explicit Receive(Datagram& datagram) : datagram_(datagram) {}
  ~Receive() { cancel(); }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();
  Result<Packet> await_resume();

 protected:
  // Of one that has been given none: an error.
  Result<std::span<const Packet>> take(std::size_t most);

 private:
  friend class Datagram;

  Datagram& datagram_;
  Then then_;
  bool is_woken_ = false;
};

// What receive_some() gives to co_await.
class SPATE_EXPORT Datagram::ReceiveSome : public Receive {
 public:
  using Receive::Receive;

  Result<std::span<const Packet>> await_resume() { return take(SIZE_MAX); }
};

// What send() gives to co_await.
class SPATE_EXPORT Datagram::Send : public Operation<Send> {
 public:
  Send(Datagram& datagram, Bytes bytes, const Address* peer)
      : datagram_(datagram), one_{bytes, peer}, rest_(&one_, 1) {}
  Send(Datagram& datagram, std::span<const Outgoing> packets)
      : datagram_(datagram), rest_(packets) {}
  ~Send() { cancel(); }

  bool await_ready();
  bool start(Promise& chain, Then then);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Datagram;

  bool try_now();
  bool keep();

  Datagram& datagram_;
  Outgoing one_{};
  std::span<const Outgoing> rest_;
  Then then_;
  std::error_code error_;
  Block copy_;  // Of what waits.
  Send* next_ = nullptr;
  Send* previous_ = nullptr;
  bool is_waiting_ = false;  // For room.
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
