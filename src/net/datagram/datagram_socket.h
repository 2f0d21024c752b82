// DatagramSocket: what a Datagram is the handle of.
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
  // Takes `socket` over when it has returned something. `options` as the socket has them.
  static Result<DatagramSocket*> make(Loop& loop, sys::Descriptor& socket,
                                      const DatagramOptions& options);
  // The Datagram is being destroyed: the descriptor is closed at once, wherever this is called.
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

  static constexpr std::size_t kBatch = 64;  // Packets that one call to the kernel takes.
  // How long watching rests when the kernel refuses it, or there is no memory for it.
  static constexpr Nanos kRest{50'000'000};
  // How long a packet waits that was refused although the kernel had said that there is room.
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

  long wrong_with(const Address& peer) const;
  std::error_code settle(long result);
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
  Io io_;  // Its events are those that are wanted, also while watching rests.
  Timer resting_;
  Timer retry_;
  const int family_;
  const bool can_join_;    // The kernel may split what send_segments() gives it.
  bool is_told_ = false;   // The handler knows that watching is refused.
  bool had_room_ = false;  // The handler was told that there is room, and has sent nothing since.
};

}  // namespace spate
