// Party: one end of a connection, played by a Stream (End) or by the test with a bare descriptor
// (Raw), and the ways in which the other end may see it end.
#pragma once

#include "chaos/channel.h"

namespace spate::chaos {

class World;

struct Party {
  Party(World& its_world, unsigned its_number, Kind its_kind, bool is_bare)
      : world(its_world), number(its_number), kind(its_kind), is_raw(is_bare) {}
  Party(const Party&) = delete;
  Party& operator=(const Party&) = delete;

  // Updates its state, before the other end is judged by it.
  virtual void catch_up() {}

  // The other end may take a truncated stream for a complete one.
  virtual bool may_end_short() const { return false; }
  // The other end is certain to learn that this one is closed.
  virtual bool must_show_end() const { return may_show_end || may_show_cut; }

  World& world;
  const unsigned number;
  const Kind kind;
  const bool is_raw;
  bool is_secure = false;  // Over TLS.
  Party* peer = nullptr;
  Channel* in = nullptr;   // Null at the end of a pipe that only writes, ...
  Channel* out = nullptr;  // ... or only reads.

  // The other end may see: all bytes and then EOF; EOF in the middle; an error.
  bool may_show_end = false;
  bool may_show_cut = false;
  bool may_show_error = false;

 protected:
  virtual ~Party() = default;
};

}  // namespace spate::chaos
