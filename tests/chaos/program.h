// Program: a list of steps, all of them written down before the first is done, so that one that
// fails can be done again with fewer.
//
// A step is done outside of callbacks, in its turn; or it is laid out when its turn comes, for the
// next callback of the kind that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chaos/tape.h"

namespace spate::chaos {

enum class Op : std::uint8_t {
  // The world's.
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
  after,
  defer,
  signal,
  offload,
  offloading,
  spawn,
  process,
  // A stream's.
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
  // A raw peer's.
  peer_send,
  peer_read,
  peer_mode,
  peer_end,
  peer_reset,
  peer_close,
  // Listeners, connecting, clients.
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
  anywhere,  // In whichever callback comes next.
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
  done,      // What is told once: after(), defer(), offload(), relay(), spawn(), drain().
};
inline constexpr int kWheres = static_cast<int>(Where::done) + 1;

const char* name_of(Op op);
const char* name_of(Where where);
// Whether programs do this there at all.
bool is_possible(Op op, Where where);

struct Step {
  Op op;
  Where where;
  std::uint8_t target;  // Which object; for most, the callback's own.
  bool more;            // The callback goes on to the next step laid out for it.
  std::uint32_t a;
  std::uint32_t b;
};

enum class Weather : std::uint8_t {
  fair,
  gusty,   // Calls are cut short, interrupted, or told to come again. Nothing may get lost.
  stormy,  // They fail. Everything may end, and all must be told.
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
