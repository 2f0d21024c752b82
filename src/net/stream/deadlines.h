// Deadlines: a heap of the times at which connections must be checked.
//
// A connection with a deadline has one entry. Postponing the deadline does not change the entry:
// when its time comes, the connection computes the next one. So activity costs a store in the
// connection, and an idle connection takes sixteen bytes here.
#pragma once

#include <cstdint>

#include "base/array.h"

namespace spate {

class Connection;

class Deadlines {
 public:
  // 1 + the index of a connection's entry, 0 for none. Kept in the connection.
  using Place = std::uint32_t;

  // Ensures that `connection` is checked by `when`. False when memory runs out.
  bool note(Connection& connection, std::int64_t when);
  // Removes an entry.
  void forget(Connection& connection);
  // Returns the earliest time; INT64_MAX for an empty heap.
  std::int64_t earliest() const { return heap_.empty() ? INT64_MAX : heap_[0].when; }
  // Removes and returns the first connection that is due; nullptr if none.
  Connection* take_due(std::int64_t now);

 private:
  struct Entry {
    std::int64_t when;
    Connection* connection;
  };
  static constexpr std::size_t kWidth = 4;  // Children per node: one cache line.

  void put(std::size_t index, Entry entry);
  void rise(std::size_t index, Entry entry);
  void sink(std::size_t index, Entry entry);

  Array<Entry> heap_;
};

}  // namespace spate
