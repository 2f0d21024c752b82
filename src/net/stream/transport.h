// Transport: how the bytes of a connection move. A Connection says what it wants; a Transport
// enters the kernel, or another connection's memory, and calls on_ready() when it is worth trying.
//
// Results are the kernel's: how many bytes, or a negated errno, or result_of() an error of ours.
// -EAGAIN means that on_ready() will be called once it is worth trying again, if want() asked for
// it. Bytes that were not sent are given again, the same ones first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/stream/connection.h"
#include "net/stream/result.h"
#include "sys/socket.h"

namespace spate {

class Hub;
class TlsEngine;

// What such a result means.
std::error_code error_of(long result);

// Descriptors that have come with bytes. Those that are not taken are closed.
struct ArrivedDescriptors {
  ~ArrivedDescriptors();
  bool is_empty() const { return count == 0 && !is_cut; }

  int fds[sys::kMaxDescriptors];
  std::size_t count = 0;
  bool is_cut = false;  // There was no room in the process for all of them.
};

class Transport {
 public:
  static constexpr std::size_t kMaxPieces = 64;
  // Room for them. A KiB of it is not filled with nothing before each send.
  union Pieces {
    Pieces() {}
    Bytes all[kMaxPieces];
  };

  // How bytes move: by recv() and send() on the connection's descriptor, which is most often so and
  // asks nobody, or by the functions of the derived class.
  enum class Way : std::uint8_t { socket, own };

  explicit Transport(Hub& hub, Way way = Way::own) : hub_(hub), way_(way) {}
  virtual ~Transport() = default;

  Hub& hub() const { return hub_; }
  // False while connecting.
  virtual bool is_connected() const { return true; }
  // Whether the bytes go through the descriptor as they are: then it may be given away, and send
  // others.
  virtual bool is_bare() const { return false; }
  // Whether they go there by recv() and send().
  bool is_socket() const { return way_ == Way::socket; }
  // What TLS knows of it, if that is established.
  virtual const TlsEngine* tls() const { return nullptr; }

  // Of a transport that was put over another (Connection::put_transport()): what has come for the
  // connection. Returns what is left for it.
  virtual Events on_event(Connection&, Events events) { return events; }

  // Up to room.size() bytes; 0 is the peer's end.
  long receive(Connection& connection, std::span<std::byte> room) {
    if (is_socket()) [[likely]]
      return sys::receive(connection.fd(), room.data(), room.size());
    return receive_own_way(connection, room);
  }
  // Whether what receive() has returned for so much room is no sign that this was all.
  bool may_have_more(long received, std::size_t room) const {
    return static_cast<std::size_t>(received) == room || (way_ == Way::own && has_more());
  }
  // At most kMaxPieces, in their order.
  long send(Connection& connection, std::span<const Bytes> pieces) {
    if (pieces.size() == 1) return send_one(connection, pieces.front());
    return send_own_way(connection, pieces);
  }
  long send_one(Connection& connection, Bytes bytes) {
    if (is_socket()) [[likely]]
      return sys::send(connection.fd(), bytes.data(), bytes.size());
    return send_one_own_way(connection, bytes);
  }
  // Up to `size` bytes of a file from `offset` on; 0 is the file's end. Here: by way of memory.
  virtual long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size);
  // send(), and duplicates of descriptors with the first byte.
  virtual long send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                                std::span<const int> descriptors);
  // receive(), and the descriptors that came with the bytes.
  virtual long receive_descriptors(Connection& connection, std::span<std::byte> room,
                                   ArrivedDescriptors& arrived);
  // What on_ready() is to be called for: read, write, both or nothing. False: out of memory.
  virtual bool want(Connection& connection, Events events) = 0;
  // Ends our side; the peer sees it once it has read everything. False: something is to be sent
  // before; it is called again after on_ready(write).
  virtual bool shut_down(Connection& connection) = 0;
  // Whether the peer has to be told more than that it is closed: shut_down() is not done.
  virtual bool has_farewell() const { return false; }
  // Ends both; with `reset` the peer is told that something was lost. on_ready() is not called
  // again.
  virtual void close(Connection& connection, bool reset) = 0;
  // Gives the descriptor away; as close() otherwise. -1 if there is none.
  virtual int release(Connection&) { return -1; }
  // The connection is going.
  virtual void leave(Connection&) {}

 private:
  virtual bool has_more() const { return false; }
  // Unless it is a socket. Here: nothing moves.
  virtual long receive_own_way(Connection& connection, std::span<std::byte> room);
  // The same, and several pieces of a socket's.
  virtual long send_own_way(Connection& connection, std::span<const Bytes> pieces);
  [[gnu::noinline]] long send_one_own_way(Connection& connection, Bytes bytes) {
    return send_own_way(connection, {&bytes, 1});
  }

  Hub& hub_;
  const Way way_;
};

}  // namespace spate
