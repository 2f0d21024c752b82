// Deadlines: when to look at which connection again.
//
// A heap of times, one entry a connection that has a deadline. Postponing a deadline does not touch
// it: the connection is looked at when the time that is noted here has come, and says when to look
// again. So activity on a connection costs a store in the connection, and an idle one costs sixteen
// bytes here.
#pragma once

#include <cstdint>

#include "base/array.h"

namespace spate {

class Connection;

class Deadlines {
 public:
  // A connection's place in the heap: 1 + its index, 0 for none. Kept in the connection.
  using Place = std::uint32_t;

  // Notes that `connection` is to be looked at by `when`, unless that is noted already. False when
  // memory runs out.
  bool note(Connection& connection, std::int64_t when);
  // One that is noted.
  void forget(Connection& connection);
  // The earliest; INT64_MAX if there is none.
  std::int64_t earliest() const { return heap_.empty() ? INT64_MAX : heap_[0].when; }
  // The first connection whose time has come, no longer noted; nullptr if there is none.
  Connection* take_due(std::int64_t now);

 private:
  struct Entry {
    std::int64_t when;
    Connection* connection;
  };
  static constexpr std::size_t kWidth = 4;  // Children a node: one cache line.

  void put(std::size_t index, Entry entry);
  void rise(std::size_t index, Entry entry);
  void sink(std::size_t index, Entry entry);

  Array<Entry> heap_;
};

}  // namespace spate
