// Net: what all connections of one loop share: the memory that bytes arrive in, the gathering of
// what a callback writes, the deadlines, the transports, and the resolver.
//
// It goes with the loop, or with the last Stream that outlives the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/deadlines.h"
#include "net/loans.h"
#include "net/packet_batch.h"
#include "net/slab.h"
#include "net/socket_transport.h"
#include "net/write_gather.h"
#include "spate/loop.h"

namespace spate {

class Resolver;

class Net {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
  static Net* of(Loop& loop);

  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  Loop& loop() const { return *loop_; }
  // Whether the loop is still there; without it, connections are closed.
  bool is_alive() const { return loop_ != nullptr; }

  SocketTransport& sockets() { return sockets_; }
  FileTransport& files() { return files_; }

  // As much as one call to the kernel is given room for. What arrives there is gone with the next
  // arrival, of whichever connection.
  std::span<std::byte> arrivals() { return {arrivals_.get(), kArrivals}; }
  WriteGather& gather() { return gather_; }
  // Opened for the first datagram socket.
  Loans<PacketBatch>& packets() { return packets_; }
  // Made when it is first asked for. nullptr when memory runs out.
  Resolver* resolver();

  // Another one each time.
  std::uint64_t next_number() { return ++last_number_; }

  Slab<Connection>& slab() { return slab_; }
  // Every connection enters and leaves.
  void enter() { ++connections_; }
  void leave() {
    if (--connections_ == 0 && !is_alive()) delete this;
  }

  // Has the connection looked at by `when`, in loop time. False when memory runs out.
  bool note_deadline(Connection& connection, std::int64_t when);
  void forget_deadline(Connection& connection) { deadlines_.forget(connection); }

 private:
  class Tenancy;

  static constexpr std::size_t kArrivals = 64 * 1024;

  explicit Net(Loop& loop);
  ~Net();
  bool open();
  bool arm();
  void look_at_due();
  void loop_goes();

  Loop* loop_;
  Slab<Connection> slab_;
  SocketTransport sockets_{*this};
  FileTransport files_{*this};
  std::unique_ptr<std::byte[]> arrivals_;
  WriteGather gather_;
  Loans<PacketBatch> packets_;
  Deadlines deadlines_;
  std::unique_ptr<Resolver> resolver_;
  TimerNode timer_{};  // Direct: it only queues `due_`, in which connections are looked at.
  Node due_{};
  std::size_t connections_ = 0;
  std::uint64_t last_number_ = 0;
};

// ---- Connection, what every message needs

inline Net& Connection::net() const { return transport_->net(); }

inline bool Connection::is_open() const { return !has(kClosed) && net().is_alive(); }

inline void Connection::touch() {
  last_active_ticks_ = static_cast<std::uint32_t>(net().loop().now().count() / kNanosPerTick);
}

// Returns the connection whose callback is running the loop, if one is.
inline Connection* Connection::begin_call(Bytes arrived) {
  WriteGather& gather = net().gather();
  Connection* outer = gather.owner();
  if (outer != nullptr) outer->send_gathered();
  set(kInCallback);
  gather.begin(this, arrived);
  return outer;
}

inline bool Connection::end_call(Connection* outer) {
  WriteGather& gather = net().gather();
  if (!gather.empty() && is_open()) send_gathered();
  gather.begin(outer, {});
  set(kInCallback, false);
  constexpr std::uint32_t kOutOfTheOrdinary =
      kNested | kAbandoned | kClosed | kEnding | kBroken | kPeerEnded | kDiscarding;
  return has(kOutOfTheOrdinary) || !net().is_alive() ? after_call() : true;
}

}  // namespace spate
