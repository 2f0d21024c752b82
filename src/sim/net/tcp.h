// TCP, as visible to programs: two ends with buffers, each of which may end or reset.
//
// Bytes wait in the sender's buffer until the receiver's has room, which window updates (`window_`)
// announce; then they are sent in segments. So unread bytes are bounded by the two buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/kernel/socket_memory.h"
#include "sim/net/port_reservations.h"
#include "sim/net/socket_address.h"
#include "spate/time.h"

namespace spate::sim {

struct Connection;
class File;
class Network;

enum class Side : std::uint8_t { client, server };
constexpr std::size_t number_of(Side side) { return static_cast<std::size_t>(side); }
constexpr Side opposite(Side side) { return side == Side::client ? Side::server : Side::client; }

// A syn_rst answers a SYN.
enum class SegmentKind : std::uint8_t { syn, syn_ack, syn_rst, window_update, fin, reset, data };

// The header of a segment.
struct SegmentHeader {
  explicit SegmentHeader(SegmentKind what) : kind(what), hash(static_cast<std::uint64_t>(what)) {}
  explicit SegmentHeader(std::string_view text);

  SegmentKind kind;
  std::uint64_t hash;  // For the trace.
  std::size_t size = 0;
  std::string_view bytes{};  // Valid while it is being sent.
};

inline constexpr std::size_t kDefaultBuffer = 64 * 1024;
inline constexpr std::size_t kSegment = 1448;  // A receiver announces a window of this size at
                                               // once.

// Timeouts for a silent peer: SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT and
// TCP_USER_TIMEOUT.
struct TcpTimeouts {
  bool keeps_alive = false;
  Nanos idle = std::chrono::hours{2};
  Nanos interval = std::chrono::seconds{75};
  int count = 9;
  Nanos user_timeout{0};  // 0: none.
};

// One end of a connection. Functions return zero or more, or a negated errno.
class Endpoint {
 public:
  Endpoint(Network& network, Connection& connection, Side side, int host, SocketAddress local);

  int host() const { return host_; }
  const SocketAddress& local() const { return local_; }
  bool is_connecting() const { return state_ == State::connecting; }
  bool is_open() const { return state_ == State::open; }
  bool is_dead() const { return state_ == State::dead; }
  bool has_ended() const { return has_ended_ || has_sent_fin_; }
  std::size_t unread() const { return incoming_.size(); }
  std::size_t unsent() const { return outgoing_.size(); }
  // Its host has crashed.
  bool has_vanished() const { return has_vanished_; }
  // Returns whether neither the program nor the network uses it any more.
  bool is_gone() const { return is_closed_ && state_ == State::dead; }
  // Sets the descriptor's file, which is notified of changes; nullptr before it is accepted.
  void attach(File* file) { file_ = file; }
  void set_send_buffer(std::size_t size) { send_buffer_ = size; }
  // Reserves its port, as described by `reservation`.
  void reserve_port(PortReservation reservation);
  void share_port(const PortReservation& as);
  void set_timeouts(const TcpTimeouts& timeouts);
  const TcpTimeouts& timeouts() const { return timeouts_; }

  // ---- called by the program
  std::uint32_t ready() const;
  long send(std::string_view bytes);
  enum class Peek : bool { no, yes };
  long receive(std::span<std::byte> room, Peek peek);
  void shut_down_writing();
  void shut_down_reading();
  enum class CloseMode : std::uint8_t { graceful, reset };
  // Called when the descriptor is closed; may destroy the connection.
  void close(CloseMode mode);
  int take_error() { return std::exchange(error_, 0); }

  // ---- called by the network
  void on_established(std::size_t window);
  void on_refused(int error);
  void on_bytes(std::string_view bytes);
  void on_window_update(std::size_t count);
  void on_fin();
  void on_fin_acknowledged();
  void on_reset();
  // Called when no segment was acknowledged for too long.
  void on_silence();
  // Called when a segment or an acknowledgement has arrived from the other end.
  void note_received(Nanos now) { received_at_ = now; }
  // Its host has memory again.
  void on_memory();
  // Starts probing, if keep-alive is on: the peer may be unreachable.
  void suspect_peer();
  // Disappears without notifying the peer; later segments are answered by reset_unknown().
  void vanish();
  void reset_unknown(const SegmentHeader& header);

  // For the network: nonzero while its segments do not arrive.
  std::uint64_t silence = 0;
  Nanos vanished_at = kForever;

 private:
  enum class State : std::uint8_t { connecting, open, dead };
  static constexpr Nanos kFirstProbe = std::chrono::milliseconds{200};
  static constexpr Nanos kLastProbe = std::chrono::minutes{2};

  Endpoint& other(Connection& connection) const;
  void transmit();
  void probe_later();
  void probe();
  void reset_peer();
  void announce_window();
  std::size_t send_room() const;
  void die(int error);
  void finish();
  std::uint64_t owner() const { return connection_number() << 1 | number_of(side_); }
  std::uint64_t connection_number() const;
  void release_port();
  void keep_port_waiting();
  void changed();
  void forget_if_gone();
  bool is_stalled() const { return window_ == 0 && outgoing_.size() != 0; }
  void watch_stall();
  void schedule_keep_alive(Nanos time);
  void send_keep_alive();
  bool has_timed_out() const;

  Network& network_;
  Connection& connection_;
  const Side side_;
  const int host_;
  const SocketAddress local_;
  File* file_ = nullptr;
  State state_ = State::connecting;
  int error_ = 0;
  bool is_closed_ = false;  // By the program.
  bool has_vanished_ = false;
  bool has_shut_down_ = false;  // It sends nothing more.
  bool has_sent_fin_ = false;
  bool has_ended_ = false;  // The peer has ended, or its input is ignored.
  bool peer_has_ended_ = false;
  bool ends_second_ = false;  // The peer had ended before.
  bool is_fin_acknowledged_ = false;
  bool has_reservation_ = false;
  ByteQueue outgoing_;
  ByteQueue incoming_;
  std::size_t window_ = 0;
  bool is_probing_ = false;
  Nanos probe_after_ = kFirstProbe;
  std::size_t unannounced_ = 0;  // Read, and not yet announced to the sender.
  std::size_t send_buffer_ = kDefaultBuffer;
  TcpTimeouts timeouts_;
  Nanos received_at_{0};
  Nanos stalled_since_{kForever};
  bool is_keep_alive_due_ = false;
  int probes_ = 0;  // Unanswered probes.
};

struct Connection {
  Connection(Network& network, std::uint64_t number, int from_host, SocketAddress from, int to_host,
             SocketAddress to)
      : id(number),
        client(network, *this, Side::client, from_host, from),
        server(network, *this, Side::server, to_host, to) {}

  Endpoint& end(Side side) { return side == Side::client ? client : server; }
  const Endpoint& end(Side side) const { return side == Side::client ? client : server; }

  const std::uint64_t id;
  Endpoint client;
  Endpoint server;
  std::size_t client_buffer = kDefaultBuffer;  // Receive buffers.
  std::size_t server_buffer = kDefaultBuffer;
  // ---- the unanswered SYNs of the client
  Nanos first_syn_at{0};
  int syns = 0;
  // ---- segments sent by each end
  Nanos last_arrival[2] = {};
  std::uint64_t sent[2] = {};
  std::uint64_t arrived[2] = {};
};

}  // namespace spate::sim
