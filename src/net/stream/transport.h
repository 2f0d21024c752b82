// Transport: moves the bytes of a connection. A Connection states its interest; a Transport makes
// system calls, or uses another connection's memory, and calls on_ready().
//
// Results are those of the kernel: a number of bytes, or a negated errno, or result_of() of an
// Error. After -EAGAIN, on_ready() is called when a retry can succeed, if want() asked for it.
// Bytes that were not sent are passed again, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "net/stream/connection.h"
#include "sys/socket.h"

namespace spate {

class LoopStreams;
class TlsEngine;

// Descriptors that arrived with bytes. The destructor closes those that were not taken.
struct ArrivedDescriptors {
  ~ArrivedDescriptors();
  bool is_empty() const { return count == 0 && !is_cut; }

  int fds[sys::kMaxDescriptors];
  std::size_t count = 0;
  bool is_cut = false;  // The process had no descriptors left for all of them.
};

class Transport {
 public:
  static constexpr std::size_t kMaxPieces = 64;
  // Uninitialized: clearing 1 KiB before each send would cost time.
  union Pieces {
    Pieces() {}
    Bytes all[kMaxPieces];
  };

  // How bytes move: by recv() and send() on the connection's descriptor, which is most frequent and
  // needs no virtual call, or by the functions of the derived class.
  enum class Way : std::uint8_t { socket, own };

  explicit Transport(LoopStreams& loop_state, Way way = Way::own)
      : loop_state_(loop_state), way_(way) {}
  virtual ~Transport() = default;

  LoopStreams& loop_state() const { return loop_state_; }
  // False while connecting.
  virtual bool is_connected() const { return true; }
  // Returns whether bytes go through the descriptor unchanged. Then it may be released, and may
  // pass descriptors.
  virtual bool is_bare() const { return false; }
  // Returns whether bytes move by recv() and send().
  bool is_socket() const { return way_ == Way::socket; }
  // Returns the TLS engine, if TLS is established.
  virtual const TlsEngine* tls() const { return nullptr; }
  // Returns the transport at the bottom: this one, unless it was put over another.
  virtual const Transport& base() const { return *this; }

  // For a transport on top of another (Connection::put_transport()): handles events first, and
  // returns those left for the connection.
  virtual Events on_event(Connection&, Events events) { return events; }

  // Receives up to room.size() bytes; 0 is the peer's end.
  long receive(Connection& connection, std::span<std::byte> room) {
    if (is_socket()) [[likely]]
      return sys::receive(connection.fd(), room.data(), room.size());
    return receive_own_way(connection, room);
  }
  // Returns whether receive() would find nothing: no byte, no end and no error.
  virtual bool is_quiet(Connection& connection) const {
    return !is_socket() || sys::is_quiet(connection.fd());
  }
  // Returns whether another receive() may find more bytes.
  bool may_have_more(long received, std::size_t room) const {
    return static_cast<std::size_t>(received) == room || (way_ == Way::own && has_more());
  }
  // Sends at most kMaxPieces, in order.
  long send(Connection& connection, std::span<const Bytes> pieces) {
    if (pieces.size() == 1) return send_one(connection, pieces.front());
    return send_own_way(connection, pieces);
  }
  long send_one(Connection& connection, Bytes bytes) {
    if (is_socket()) [[likely]]
      return sys::send(connection.fd(), bytes.data(), bytes.size());
    return send_one_own_way(connection, bytes);
  }
  // Sends up to `size` bytes of a file from `offset` on; 0 is the file's end. The default copies
  // them.
  virtual long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size);
  // As send(), with duplicates of descriptors at the first byte.
  virtual long send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                                std::span<const int> descriptors);
  // As receive(), with the descriptors that came with the bytes.
  virtual long receive_descriptors(Connection& connection, std::span<std::byte> room,
                                   ArrivedDescriptors& arrived);
  // Sets the events for which on_ready() is called: read, write, both or none. False when memory
  // runs out.
  virtual bool want(Connection& connection, Events events) = 0;
  // Ends our side; the peer sees the end after all data. False: data must be sent before; it is
  // called again after on_ready(write).
  virtual bool shut_down(Connection& connection) = 0;
  // Returns whether closing the descriptor is not enough to end our side, because shut_down() must
  // still send close_notify.
  virtual bool has_farewell() const { return false; }
  // Closes both sides; `reset` reports to the peer that data was lost. on_ready() is not called
  // again.
  virtual void close(Connection& connection, bool reset) = 0;
  // Returns the descriptor to the caller; otherwise as close(). -1 without one.
  virtual int release(Connection&) { return -1; }
  // Called in the child of a fork: the parent sends the bytes that wait here.
  virtual void on_fork() {}
  // Called when the connection is destroyed.
  virtual void leave(Connection&) {}

 private:
  virtual bool has_more() const { return false; }
  // For transports that are not sockets. The default moves nothing.
  virtual long receive_own_way(Connection& connection, std::span<std::byte> room);
  // As above; for sockets too, if there are several pieces.
  virtual long send_own_way(Connection& connection, std::span<const Bytes> pieces);
  [[gnu::noinline]] long send_one_own_way(Connection& connection, Bytes bytes) {
    return send_own_way(connection, {&bytes, 1});
  }

  LoopStreams& loop_state_;
  const Way way_;
};

}  // namespace spate
