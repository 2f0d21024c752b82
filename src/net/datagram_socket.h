// DatagramSocket: what a Datagram is the handle of.
#pragma once

#include "spate/io.h"
#include "spate/net/datagram.h"
#include "sys/datagram.h"

namespace spate {

class Net;

class DatagramSocket {
 public:
  // Takes `socket` over when it has returned something.
  static std::expected<DatagramSocket*, std::error_code> make(Loop& loop, sys::Descriptor& socket,
                                                              const DatagramOptions& options);
  // The Datagram is being destroyed.
  void abandon();

  void start(DatagramHandler& handler);
  void pause();
  void resume();
  int fd() const { return socket_.get(); }

  std::error_code send(Bytes bytes, const Address* peer);
  std::size_t send(std::span<const Outgoing> packets, std::error_code& error);
  std::expected<std::size_t, std::error_code> send_segments(Bytes bytes, std::size_t segment,
                                                            const Address& peer);

 private:
  static constexpr std::size_t kBatch = 64;

  DatagramSocket(Net& net, sys::Descriptor socket, const DatagramOptions& options);
  ~DatagramSocket();

  void on_ready(Events events);
  void receive();
  void on_refused();
  void watch();
  template <class Function>
  bool call(Function function);
  std::error_code refused(long result);
  std::size_t send_one_by_one(Bytes bytes, std::size_t segment, const Address& peer,
                              std::error_code& error);

  Net& net_;
  sys::Descriptor socket_;
  DatagramOptions options_;
  DatagramHandler* handler_ = nullptr;
  Io io_;
  bool can_join_ = true;  // The kernel splits what send_segments() gives it.
  bool in_callback_ = false;
  bool abandoned_ = false;
};

}  // namespace spate
