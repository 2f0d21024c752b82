// Hub: what all connections of one loop share: the memory that bytes arrive in, the gathering of
// what a callback writes, the deadlines, and the transports.
//
// It goes with the loop, or with the last Stream that outlives the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/array.h"
#include "base/loans.h"
#include "base/slab.h"
#include "core/loop_local.h"
#include "net/stream/deadlines.h"
#include "net/stream/shared_writes.h"
#include "net/stream/socket_transport.h"
#include "net/stream/write_gather.h"
#include "spate/loop.h"

namespace spate {

// As much as one call to the kernel is given room for.
struct Arrivals {
  static constexpr std::size_t kSize = 64 * 1024;
  std::span<std::byte> room() { return bytes; }

  std::byte bytes[kSize];
};

class Hub final : public LoopLocal {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
  static Hub* of(Loop& loop) { return local_of<Hub>(loop); }
  explicit Hub(Loop& loop);  // For local_of().

  SocketTransport& sockets() { return sockets_; }
  FileTransport& files() { return files_; }

  // Where bytes arrive, lent for as long as they are looked at.
  Loans<Arrivals>::Loan lend_arrivals() { return arrivals_.borrow(); }
  WriteGather& gather() { return gather_; }
  SharedWrites& shared_writes() { return shared_writes_; }
  // Has its queue sent before the loop waits: when all that is due now has been called, since it
  // may write more. False when memory runs out.
  bool hold_back(Connection& connection);
  void forget_held(Connection& connection);
  // Bytes that were sent by reference are released from the loop, never inside a call to a Stream.
  void release_later(Buffer&& spent);

  // Another one each time.
  std::uint64_t next_number() { return ++last_number_; }

  Slab<Connection>& slab() { return slab_; }
  // Shows all connections; none may be made or destroyed meanwhile.
  template <class Visit>
  void show_all(Visit visit) {
    is_showing_ = true;
    slab_.for_each(visit);
    is_showing_ = false;
  }
  bool is_showing() const { return is_showing_; }

  // Has the connection looked at by `when`, in loop time. False when memory runs out.
  bool note_deadline(Connection& connection, std::int64_t when);
  void forget_deadline(Connection& connection) {
    if (connection.deadline_place() != 0) deadlines_.forget(connection);
  }

 private:
  ~Hub() override;
  bool open() override;
  void on_loop_end() override;
  void on_handover() override;
  void send_held();
  bool arm();
  void look_at_due();
  void release_spent();

  Slab<Connection> slab_;
  SocketTransport sockets_{*this};
  FileTransport files_{*this};
  Loans<Arrivals> arrivals_;
  WriteGather gather_;
  SharedWrites shared_writes_;
  Array<Connection*> held_;  // Those that have been sent since are nullptr.
  Node sending_{};
  Buffer spent_;
  Node releasing_{};
  Deadlines deadlines_;
  TimerNode timer_{};  // Direct: it only queues `due_`, in which connections are looked at.
  Node due_{};
  std::uint64_t last_number_ = 0;
  bool is_showing_ = false;
};

// ---- Connection, what every message needs

inline Hub& Connection::hub() const { return transport_->hub(); }

inline bool Connection::is_open() const { return state_ < State::closed && hub().is_alive(); }

// When a connection was made is told by what the loop leaves to us of its node.
inline std::uint32_t Connection::age_now() const {
  return static_cast<std::uint32_t>(hub().loop().now().count() >> kAgeBits);
}

inline void Connection::touch() {
  last_active_ticks_ = static_cast<std::uint32_t>(hub().loop().now().count() >> kTickBits);
}

// Of one that does not linger, nobody asks when it was active unless there is an idle timeout.
inline void Connection::note_activity() {
  if (idle_ticks_ != 0) touch();
}

inline void Connection::begin_call(Hub& hub, Bytes arrived) {
  set(kInCallback);
  hub.gather().begin(this, arrived);
}

// Most answers are in one piece.
inline bool Connection::end_call(Hub& hub) {
  WriteGather& gather = hub.gather();
  if (busy_ == nullptr && gather.is_one_piece()) {
    const Bytes bytes = gather.take_one();
    if (!bytes.empty()) send_one_now(bytes);
  } else {
    send_what_waits();
  }
  gather.end();
  clear(kInCallback);
  const bool is_ordinary = state_ == State::open && !has(kNested | kAbandoned | kEndDue | kOffer);
  return is_ordinary || after_call();
}

// Calls user code; `arrived` is what it is shown. False, as of all that may end it: there is
// nothing left to go on with, the connection is closed or gone.
template <class Function>
[[gnu::always_inline]] inline bool Connection::call(Hub& hub, Bytes arrived, Function function) {
  if (handler() == nullptr) return is_open();
  begin_call(hub, arrived);
  call_user("StreamHandler", [&] { function(*handler()); });
  return end_call(hub);
}

// ---- Connection, writing

// Inside its own callback; it is sent when that returns.
inline bool Connection::write(Bytes bytes) {
  WriteGather& gather = hub().gather();
  if (gather.owner() != this || state_ != State::open || busy_ != nullptr)
    return (is_held() && add_to_held(bytes)) || write_slowly(bytes);
  return gather.add_in_place(bytes) || write_behind(bytes);
}

// Of a connection that has no BusyState.
inline void Connection::send_one_now(Bytes bytes) {
  set(kWrote);
  const long sent = transport_->send_one(*this, bytes);
  if (sent == static_cast<long>(bytes.size())) return note_activity();
  on_one_sent_in_part(sent, bytes);
}

}  // namespace spate
