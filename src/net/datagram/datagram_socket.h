// DatagramSocket: the object behind a Datagram.
#pragma once

#include <memory>

#include "base/abandonable.h"
#include "net/datagram/datagram_callback_handler.h"
#include "net/datagram/packet_batch.h"
#include "spate/io.h"
#include "spate/net/datagram.h"
#include "spate/timer.h"
#include "sys/datagram.h"

namespace spate {

class DatagramSocket final : private Abandonable<DatagramSocket> {
 public:
  // Takes over `socket`, unless it fails. `options` as they are in effect.
  static Result<DatagramSocket*> make(Loop& loop, sys::Descriptor& socket,
                                      const DatagramOptions& options);
  // The Datagram is being destroyed: closes the descriptor at once, also inside a callback.
  void abandon();

  void start(DatagramHandler& handler);
  // False when memory runs out.
  bool start(DatagramCallbacks callbacks);
  void pause();
  void resume();
  int fd() const;

  std::error_code send(Bytes bytes, const Address* peer);
  std::size_t send(std::span<const Outgoing> packets, std::error_code& error);
  Result<std::size_t> send_segments(Bytes bytes, std::size_t segment, const Address& peer);

 private:
  friend class Abandonable<DatagramSocket>;

  static constexpr std::size_t kBatch = OutgoingBatch::kMax;
  // How long until watching is retried, after the kernel has refused it or memory ran out.
  static constexpr Nanos kRest{50'000'000};
  // How long until on_writable(), after a packet was refused although the socket was writable.
  static constexpr Nanos kRetry{1'000'000};

  DatagramSocket(PacketRoom& room, sys::Descriptor socket, const DatagramOptions& options);
  ~DatagramSocket();

  bool may_be_used() const;
  void watch(Events events);
  void rest();
  void look_again();
  void on_refused(std::error_code error);
  void on_ready(Events events);
  void receive();
  template <class Function>
  bool tell(Function function);

  long wrong_with(const Address* peer) const;
  std::error_code settle(long result);
  long send_once(Bytes bytes, const Address* peer);
  [[gnu::noinline]] std::error_code send_again(Bytes bytes, const Address* peer, long result);
  void wait_for_room();
  bool tell_of_room();
  std::size_t send_some(std::span<const Outgoing> packets, std::error_code& error);
  std::size_t send_part(Bytes bytes, std::size_t segment, const Address& peer,
                        std::error_code& error);
  std::size_t send_one_by_one(Bytes bytes, std::size_t segment, const Address& peer,
                              std::error_code& error);

  PacketRoom& room_;
  sys::Descriptor socket_;
  const PacketShape shape_;
  DatagramHandler* handler_ = nullptr;
  std::unique_ptr<DatagramCallbackHandler> callbacks_;
  Io io_;  // Its events are those that are wanted, also while it is not watched.
  Timer resting_;
  Timer retry_;
  const std::error_code none_;  // To be copied: making one is a call into the C++ library.
  const int family_;
  const bool can_join_;    // UDP: the kernel may do the splitting of send_segments().
  bool is_told_ = false;   // The handler has been told that the socket cannot be watched.
  bool had_room_ = false;  // on_writable() was called, and nothing could be sent since.
};

}  // namespace spate
