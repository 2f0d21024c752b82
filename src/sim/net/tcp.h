// TCP, as far as programs can see it: two ends that buffer, of which each may end or reset.
//
// Bytes wait in the sender's buffer until the receiver's has room, which it tells the sender
// (`credit_`); then they travel in segments. So what is written and not read is bounded by the two
// buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/net/place.h"
#include "sim/net/port_holds.h"
#include "sim/net/socket_memory.h"
#include "spate/time.h"

namespace spate::sim {

struct Connection;
class File;
class Network;

enum class Side : std::uint8_t { client, server };
constexpr std::size_t number_of(Side side) { return static_cast<std::size_t>(side); }
constexpr Side opposite(Side side) { return side == Side::client ? Side::server : Side::client; }

enum class Kind : std::uint8_t { knock, welcome, refusal, credit, end, reset, bytes };

// What is written on a segment.
struct Label {
  explicit Label(Kind what) : kind(what), print(static_cast<std::uint64_t>(what)) {}
  explicit Label(std::string_view text);

  Kind kind;
  std::uint64_t print;  // In the trace.
  std::size_t size = 0;
  std::string_view bytes{};  // Valid while it is sent.
};

// A hash, by which the trace knows bytes.
std::uint64_t print_of(std::string_view bytes);

inline constexpr std::size_t kDefaultBuffer = 64 * 1024;
inline constexpr std::size_t kSegment = 1448;  // For which a receiver makes room known at once.

// For how long an end bears that it hears nothing: SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL,
// TCP_KEEPCNT and TCP_USER_TIMEOUT.
struct Patience {
  bool keeps_alive = false;
  Nanos idle = std::chrono::hours{2};
  Nanos interval = std::chrono::seconds{75};
  int count = 9;
  Nanos user_timeout{0};  // 0: none.
};

// One end. Functions return zero or more, or a negated errno.
class Endpoint {
 public:
  Endpoint(Network& network, Connection& connection, Side side, int host, Place local);

  int host() const { return host_; }
  const Place& local() const { return local_; }
  bool is_connecting() const { return state_ == State::connecting; }
  bool is_open() const { return state_ == State::open; }
  bool is_dead() const { return state_ == State::dead; }
  bool has_ended() const { return has_ended_ || has_sent_end_; }
  std::size_t unread() const { return incoming_.size(); }
  std::size_t unsent() const { return outgoing_.size(); }
  // Its host has crashed.
  bool has_vanished() const { return has_vanished_; }
  // Neither the program nor the network knows of it any more.
  bool is_gone() const { return is_closed_ && state_ == State::dead; }
  // The descriptor's file, which is told of changes; nullptr while it is not accepted.
  void show_at(File* face) { face_ = face; }
  void set_send_buffer(std::size_t size) { send_buffer_ = size; }
  // It has a port from now on, and for as long as `hold` says nothing else.
  void hold_port(PortHold hold);
  void share_port(const PortHold& as);
  void set_patience(const Patience& patience);
  const Patience& patience() const { return patience_; }

  // ---- by its program
  std::uint32_t ready() const;
  long send(std::string_view bytes);
  enum class Peek : bool { no, yes };
  long receive(std::span<std::byte> room, Peek peek);
  void shut_down_writing();
  void shut_down_reading();
  enum class Farewell : std::uint8_t { graceful, reset };
  // The descriptor is closed; the connection may be gone afterwards.
  void close(Farewell farewell);
  int take_error() { return std::exchange(error_, 0); }

  // ---- by the network
  void on_established(std::size_t credit);
  void on_refused(int error);
  void on_bytes(std::string_view bytes);
  void on_credit(std::size_t count);
  void on_end();
  void on_end_acknowledged();
  void on_reset();
  // Nothing of what it has sent was answered, for too long.
  void on_silence();
  // Something has come from the other end, or what says that this end's has come there.
  void on_sign_of_life(Nanos now) { heard_at_ = now; }
  // Its host has memory again.
  void on_memory();
  // The other end may not answer any more: if it asks for that now and then, it begins to.
  void doubt_peer();
  // It is gone without a word; what comes for it is answered by answer_stranger().
  void vanish();
  void answer_stranger(const Label& label);

  // The network's: not zero while what it has sent does not come through.
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
  void tell_room();
  std::size_t send_room() const;
  void die(int error);
  void finish();
  std::uint64_t owner() const { return connection_number() << 1 | number_of(side_); }
  std::uint64_t connection_number() const;
  void release_port();
  void keep_port_waiting();
  void changed();
  void forget_if_gone();
  bool is_stalled() const { return credit_ == 0 && outgoing_.size() != 0; }
  void watch_stall();
  void ask_at(Nanos time);
  void ask_peer();
  bool has_lost_patience() const;

  Network& network_;
  Connection& connection_;
  const Side side_;
  const int host_;
  const Place local_;
  File* face_ = nullptr;
  State state_ = State::connecting;
  int error_ = 0;
  bool is_closed_ = false;  // By its program.
  bool has_vanished_ = false;
  bool has_shut_down_ = false;  // It sends no more.
  bool has_sent_end_ = false;
  bool has_ended_ = false;  // The peer sends no more, or is not listened to.
  bool peer_has_ended_ = false;
  bool ends_second_ = false;  // The peer had ended before it did.
  bool is_end_acknowledged_ = false;
  bool holds_port_ = false;
  ByteQueue outgoing_;
  ByteQueue incoming_;
  std::size_t credit_ = 0;
  bool is_probing_ = false;
  Nanos probe_after_ = kFirstProbe;
  std::size_t owed_ = 0;  // Read, and not yet told to the sender.
  std::size_t send_buffer_ = kDefaultBuffer;
  Patience patience_;
  Nanos heard_at_{0};
  Nanos stalled_since_{kForever};
  bool is_asking_ = false;
  int probes_ = 0;  // Without an answer.
};

struct Connection {
  Connection(Network& network, std::uint64_t number, int from_host, Place from, int to_host,
             Place to)
      : id(number),
        client(network, *this, Side::client, from_host, from),
        server(network, *this, Side::server, to_host, to) {}

  Endpoint& end(Side side) { return side == Side::client ? client : server; }
  const Endpoint& end(Side side) const { return side == Side::client ? client : server; }

  const std::uint64_t id;
  Endpoint client;
  Endpoint server;
  std::size_t client_buffer = kDefaultBuffer;  // Of the receivers.
  std::size_t server_buffer = kDefaultBuffer;
  // The client's first packets, of which none has been answered.
  Nanos knocked_at{0};
  int knocks = 0;
  // Of what each end has sent.
  Nanos last_arrival[2] = {};
  std::uint64_t sent[2] = {};
  std::uint64_t arrived[2] = {};
};

}  // namespace spate::sim
