// Coverage: the operations done, by kind of connection and by callback, and their outcomes.
#pragma once

#include <cstdint>

#include "chaos/channel.h"
#include "chaos/program.h"

namespace spate::chaos {

// The events that programs should cause.
enum class Event : std::uint8_t {
  session_opened,
  session_refused,  // It ended itself in on_open().
  session_swept,
  session_visited,
  sessions_drained,
  sessions_destroyed,
  told_to_drain,
  ended_all,
  connected,  // Stream::connect().
  not_connected,
  given_up,  // As above, destroyed or closed before the result.
  relayed,
  relay_failed,
  relay_idle,
  relay_cancelled,
  called_after,
  deferred,
  signalled,
  ran_for,
  offloaded,
  offload_cancelled,
  offload_refused,
  exited,
  killed,
  process_let_go,
  want_met,
  unread_seen,
  functions_called,
  optioned,
  secured,
  not_secured,
  resumed,
  handshake_cancelled,
  reloaded,
};
inline constexpr int kEvents = static_cast<int>(Event::reloaded) + 1;
inline constexpr const char* kEventNames[kEvents] = {
    "session opened",   "session refused",  "session swept",
    "session visited",  "sessions drained", "sessions destroyed",
    "told to drain",    "ended all",        "connected",
    "not connected",    "given up",         "relayed",
    "relay failed",     "relay idle",       "relay cancelled",
    "called after",     "deferred",         "signalled",
    "ran for",          "offloaded",        "offload cancelled",
    "offload refused",  "exited",           "killed",
    "process let go",   "want met",         "unread seen",
    "functions called", "optioned",         "secured",
    "not secured",      "resumed",          "handshake given up",
    "reloaded"};

// Plain numbers, so that it can be in memory shared by processes.
struct Coverage {
  static constexpr int kNone = kKinds;  // For operations without a connection.

  void note(Op op, int kind, Where where) {
    ++hits[static_cast<int>(op)][kind][static_cast<int>(where)];
  }
  void note(Event event) { ++events[static_cast<int>(event)]; }
  std::uint64_t count(Op op, Where where) const {
    std::uint64_t sum = 0;
    for (int kind = 0; kind <= kKinds; ++kind)
      sum += hits[static_cast<int>(op)][kind][static_cast<int>(where)];
    return sum;
  }
  void add(const Coverage& other) {
    for (std::size_t i = 0; i < sizeof(hits) / sizeof(std::uint64_t); ++i)
      (&hits[0][0][0])[i] += (&other.hits[0][0][0])[i];
    for (int i = 0; i < kEvents; ++i) events[i] += other.events[i];
  }

  std::uint64_t hits[kOps][kKinds + 1][kWheres];
  std::uint64_t events[kEvents];
};

}  // namespace spate::chaos
