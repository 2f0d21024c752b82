// Program: a list of steps, all of which are drawn before the first is done, so that a failing
// program can be repeated with fewer.
//
// A step is done outside of callbacks, in its turn; or it is planned in its turn, for the next
// callback of the kind that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chaos/tape.h"

namespace spate::chaos {

enum class Op : std::uint8_t {
  // Operations of the world.
  link,
  turn,
  advance,
  run,
  run_for,
  stop,
  post,
  timer,
  group,
  publish,
  fork,
  ask,
  after,
  defer,
  signal,
  offload,
  offloading,
  spawn,
  process,
  // Operations of a stream.
  write,
  write_buffer,
  write_pieces,
  write_span,
  echo,
  send_file,
  send_descriptors,
  take_descriptors,
  end,
  close,
  abort,
  destroy,
  pause,
  resume,
  start_again,
  use,
  limits,
  rate,
  join,
  half_open,
  want,
  unread,
  configure,
  functions,
  idle_timeout,
  read_timeout,
  write_timeout,
  deadline,
  release,
  move,
  move_over,
  kernel_buffers,
  reconnect,
  become_session,
  relay,
  secure,
  // Operations of a raw peer.
  peer_send,
  peer_read,
  peer_mode,
  peer_end,
  peer_reset,
  peer_close,
  // Operations of listeners, connect() and clients.
  listen,
  listener,
  connect,
  connecting,
  connect_stream,
  client,
  // Sessions and relays.
  sessions,
  sessions_change,
  relaying,
  handshake,
  // Packets.
  packets,
  packets_send,
  packets_change,
};
inline constexpr int kOps = static_cast<int>(Op::packets_change) + 1;

enum class Where : std::uint8_t {
  outside,
  anywhere,  // In the next callback of any kind.
  data,
  end,
  drained,
  closed,
  descriptors,
  timer,
  post,
  accept,
  connected,
  packets,
  packet_error,
  writable,
  released,  // A Buffer's release function.
  open,      // A session's on_open(), ...
  drain,     // ... and its on_drain().
  done,      // Callbacks that come once: after(), defer(), offload(), relay(), spawn(), drain().
  dropped,   // The destructor of a function that the library was given, or of a session.
};
inline constexpr int kWheres = static_cast<int>(Where::dropped) + 1;

const char* name_of(Op op);
const char* name_of(Where where);
// Returns whether programs do this operation there at all.
bool is_possible(Op op, Where where);

struct Step {
  Op op;
  Where where;
  std::uint8_t target;  // The object; for most, the callback's own.
  bool more;            // The callback continues with the next step planned for it.
  std::uint32_t a;
  std::uint32_t b;
};

enum class Weather : std::uint8_t {
  fair,
  gusty,   // Calls are cut short, or fail with EINTR or EAGAIN. Nothing may get lost.
  stormy,  // They fail. Every connection may end, and each must report it.
};

struct Program {
  Weather weather = Weather::fair;
  std::uint32_t weather_seed = 0;
  bool loop_goes_first = false;
  std::vector<Step> steps;
};

Program make_program(Tape& tape);
std::string to_string(const Step& step);

}  // namespace spate::chaos
