#include "net/stream/deadlines.h"

#include <algorithm>

#include "net/stream/connection.h"

namespace spate {

bool Deadlines::note(Connection& connection, std::int64_t when) {
  const Place place = connection.deadline_place();
  if (place == 0) {
    const std::size_t size = heap_.size() + 1;
    if (size > heap_.capacity() && !heap_.reserve_exactly(heap_.with_reserve(size))) return false;
    heap_.push_reserved({});
    rise(heap_.size() - 1, {when, &connection});
  } else if (when < heap_[place - 1].when) {
    rise(place - 1, {when, &connection});
  }
  return true;
}

void Deadlines::forget(Connection& connection) {
  const Place place = connection.deadline_place();
  connection.set_deadline_place(0);
  const std::size_t index = place - 1;
  const Entry last = heap_.back();
  heap_.pop();
  heap_.give_back_room();
  if (index == heap_.size()) return;
  if (index > 0 && last.when < heap_[(index - 1) / kWidth].when) return rise(index, last);
  sink(index, last);
}

Connection* Deadlines::take_due(std::int64_t now) {
  if (heap_.empty() || earliest() > now) return nullptr;
  Connection* connection = heap_[0].connection;
  forget(*connection);
  return connection;
}

void Deadlines::put(std::size_t index, Entry entry) {
  heap_[index] = entry;
  entry.connection->set_deadline_place(static_cast<Place>(index + 1));
}

void Deadlines::rise(std::size_t index, Entry entry) {
  while (index > 0) {
    const std::size_t parent = (index - 1) / kWidth;
    if (heap_[parent].when <= entry.when) break;
    put(index, heap_[parent]);
    index = parent;
  }
  put(index, entry);
}

void Deadlines::sink(std::size_t index, Entry entry) {
  for (;;) {
    const std::size_t first = index * kWidth + 1;
    if (first >= heap_.size()) break;
    const std::size_t end = std::min(first + kWidth, heap_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child].when < heap_[least].when) least = child;
    }
    if (heap_[least].when >= entry.when) break;
    put(index, heap_[least]);
    index = least;
  }
  put(index, entry);
}

}  // namespace spate
