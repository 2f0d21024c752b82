// DatagramSocket: the state behind a Datagram.
#pragma once

#include <memory>
#include <optional>

#include "base/abandonable.h"
#include "net/datagram/datagram_callback_handler.h"
#include "net/datagram/packet_batch.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/net/datagram.h"
#include "spate/timer.h"
#include "sys/datagram.h"

namespace spate {

// Makes a bound socket. Errors: as Datagram::create().
Result<sys::Descriptor> open_datagram_socket(const Address& local, const DatagramOptions& options);

class DatagramSocket final : private Abandonable<DatagramSocket> {
 public:
  // Takes ownership of `socket`, unless it fails. `options` are those in effect.
  static Result<DatagramSocket*> make(Loop& loop, sys::Descriptor& socket,
                                      const DatagramOptions& options);
  // Called by the Datagram's destructor: closes the descriptor at once, also inside a callback.
  void abandon();

  void start(DatagramHandler& handler);
  // False when memory runs out.
  bool start(DatagramCallbacks callbacks);
  void pause();
  void resume();
  int fd() const;

  std::error_code connect(const Address& peer);
  std::error_code send(Bytes bytes, const Address* peer);
  std::size_t send(std::span<const Outgoing> packets, std::error_code& error);
  Result<std::size_t> send_segments(Bytes bytes, std::size_t segment, const Address& peer);

 private:
  friend class Abandonable<DatagramSocket>;

  using OwnCallbacks = std::unique_ptr<DatagramCallbackHandler, DatagramCallbackHandlerEnd>;

  static constexpr std::size_t kBatch = OutgoingBatch::kMax;
  // The delay before watching is retried, after the kernel has refused it or memory ran out.
  static constexpr Nanos kRest{50'000'000};
  // The delay before on_writable(), if a packet was refused although the socket was writable.
  static constexpr Nanos kRetry{1'000'000};

  DatagramSocket(PacketRoom& room, sys::Descriptor socket, const DatagramOptions& options);
  ~DatagramSocket();

  bool may_be_used() const;
  void drop_callbacks();
  void watch(Events events);
  void rest();
  void look_again();
  void on_refused(std::error_code error);
  void on_ready(Events events);
  void receive();
  void drop_foreign_packets(PacketBatch& batch);
  void receive_errors(long received);
  template <class Function>
  bool tell(Function function);

  long wrong_with(const Address* peer) const;
  long wrong_with_info(const Outgoing& packet) const;
  [[gnu::noinline]] long add_info(std::size_t index, const Outgoing& packet);
  std::error_code settle(long result);
  long send_once(Bytes bytes, const Address* peer);
  [[gnu::noinline]] std::error_code send_again(Bytes bytes, const Address* peer, long result);
  void wait_for_room();
  bool report_writable();
  std::size_t send_some(std::span<const Outgoing> packets, std::error_code& error);
  std::optional<std::size_t> send_batch(std::size_t count, const Outgoing& first,
                                        std::error_code& error);
  std::size_t send_joined(const Outgoing& packet, std::error_code& error);
  std::size_t send_one_by_one(const Outgoing& packet, std::error_code& error);

  PacketRoom& room_;
  sys::Descriptor socket_;
  const PacketShape shape_;
  DatagramHandler* handler_ = nullptr;
  OwnCallbacks callbacks_;
  Io io_;  // Its events are the wanted ones, also while it is not watched.
  Timer resting_;
  Timer retry_;
  Cleanup loop_ends_;  // Drops the functions.
  Address connected_;  // The peer, while packets from others may still be queued; otherwise empty.
  const std::error_code none_;  // A constant to copy, because constructing one calls into the C++
                                // library.
  const int family_;
  const bool can_join_;             // UDP: the kernel may split packets.
  bool is_error_reported_ = false;  // The error of watching was reported.
  bool had_room_ = false;  // on_writable() was called, and nothing could be sent since.
};

}  // namespace spate
