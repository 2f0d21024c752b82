// LoopStreams: the state shared by all connections of one loop: receive buffers, the cork buffer,
// the deadlines, and the transports.
//
// It is destroyed with the loop, or with the last Stream that outlives the loop.
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

// The receive buffer for one system call.
struct Arrivals {
  static constexpr std::size_t kSize = 64 * 1024;
  std::span<std::byte> room() { return bytes; }

  std::byte bytes[kSize];
};

class LoopStreams final : public LoopLocal {
 public:
  // Returns the loop's LoopStreams, which the first call makes. nullptr when memory runs out.
  static LoopStreams* of(Loop& loop) { return local_of<LoopStreams>(loop); }
  explicit LoopStreams(Loop& loop);  // For local_of().

  SocketTransport& sockets() { return sockets_; }
  FileTransport& files() { return files_; }

  // Borrows a receive buffer, for as long as its bytes are used.
  Loans<Arrivals>::Loan lend_arrivals() { return arrivals_.borrow(); }
  WriteGather& gather() { return gather_; }
  SharedWrites& shared_writes() { return shared_writes_; }
  // Schedules sending the connection's queue before the loop waits: after all due events were
  // called, since they may write more. False when memory runs out.
  bool hold_back(Connection& connection);
  void forget_held(Connection& connection);
  // Schedules the release of bytes sent by reference: by the loop, never inside a call to a Stream.
  void release_later(Buffer&& spent);

  // Returns a new number each time.
  std::uint64_t next_number() { return ++last_number_; }

  Slab<Connection>& slab() { return slab_; }
  // Visits all connections; none may be made or destroyed meanwhile.
  template <class Visit>
  void show_all(Visit visit) {
    is_showing_ = true;
    slab_.for_each(visit);
    is_showing_ = false;
  }
  bool is_showing() const { return is_showing_; }

  // Ensures that the connection is checked by `when`, in loop time. False when memory runs out.
  bool note_deadline(Connection& connection, std::int64_t when);
  void forget_deadline(Connection& connection) {
    if (connection.deadline_place() != 0) deadlines_.forget(connection);
  }

 private:
  ~LoopStreams() override;
  bool open() override;
  void on_loop_end() override;
  void on_handover() override;
  void on_fork() override;
  void list_active(ActiveList& list) override;
  void send_held();
  bool arm();
  void look_at_due();
  void release_spent();
  void drop_functions();

  Slab<Connection> slab_;
  SocketTransport sockets_{*this};
  FileTransport files_{*this};
  Loans<Arrivals> arrivals_;
  WriteGather gather_;
  SharedWrites shared_writes_;
  Array<Connection*> held_;  // nullptr for those that were sent since.
  Node sending_{};
  Buffer spent_;
  Node releasing_{};
  Deadlines deadlines_;
  TimerNode timer_{};  // Direct: it only queues `due_`, in which connections are checked.
  Node due_{};
  std::uint64_t last_number_ = 0;
  bool is_showing_ = false;
};

// ---- functions of Connection for every message

inline LoopStreams& Connection::loop_state() const { return transport_->loop_state(); }

inline bool Connection::is_parents() const { return has(kForked) || loop_state().is_foreign(); }

inline bool Connection::is_open() const { return !life_.is_closed() && loop_state().is_alive(); }

inline std::int64_t Connection::now() const { return loop_state().loop().now().count(); }

// The creation time is in the node's field that the loop leaves to layers.
inline std::uint32_t Connection::age_now() const {
  return static_cast<std::uint32_t>(now() >> kAgeBits);
}

inline void Connection::touch() { idle_.restart(now()); }

// The time of activity is only needed for idle timeouts; lingering connections call touch()
// themselves.
inline void Connection::note_activity() {
  if (idle_.is_set()) touch();
}

inline void Connection::begin_call(LoopStreams& loop_state, Bytes arrived) {
  set(kInCallback);
  loop_state.gather().begin(this, arrived);
}

// Fast path: most responses are one piece.
inline bool Connection::end_call(LoopStreams& loop_state) {
  WriteGather& gather = loop_state.gather();
  if (busy_ == nullptr && gather.is_one_piece()) {
    const Bytes bytes = gather.take_one();
    if (!bytes.empty()) send_one_now(bytes);
  } else {
    send_what_waits();
  }
  gather.end();
  clear(kInCallback);
  const bool is_ordinary = life_.is(State::open) && !has(kNested | kAbandoned | kEndDue | kOffer);
  return is_ordinary || after_call();
}

// Calls user code; `arrived` is the input that it gets. False if the connection was closed or
// destroyed.
template <class Function>
[[gnu::always_inline]] inline bool Connection::call(LoopStreams& loop_state, Bytes arrived,
                                                    Function function) {
  if (handler() == nullptr) return is_open();
  begin_call(loop_state, arrived);
  call_user("StreamHandler", [&] { function(*handler()); });
  return end_call(loop_state);
}

// ---- writing

// Fast path inside its own callback: corked until that returns.
inline bool Connection::write(Bytes bytes) {
  WriteGather& gather = loop_state().gather();
  if (gather.owner() != this || !life_.is(State::open) || busy_ != nullptr)
    return (is_held() && add_to_held(bytes)) || write_slowly(bytes);
  return gather.add_in_place(bytes) || write_behind(bytes);
}

// Sends the bytes of a connection without a BusyState.
inline void Connection::send_one_now(Bytes bytes) {
  set(kWrote);
  const long sent = transport_->send_one(*this, bytes);
  if (sent == static_cast<long>(bytes.size())) return note_activity();
  on_one_sent_in_part(sent, bytes);
}

}  // namespace spate
