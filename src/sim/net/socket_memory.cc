#include "sim/net/socket_memory.h"

#include <algorithm>

namespace spate::sim {

void SocketMemory::limit(int host, std::size_t bytes) {
  const bool was_short = is_short(host);
  limits_[host] = bytes == 0 ? SIZE_MAX : bytes;
  if (was_short && !is_short(host)) on_room_(host);
}

std::size_t SocketMemory::used(int host) const {
  const auto found = used_.find(host);
  return found == used_.end() ? 0 : found->second;
}

std::size_t SocketMemory::room(int host) const {
  const auto limit = limits_.find(host);
  if (limit == limits_.end()) return SIZE_MAX;
  return limit->second - std::min(limit->second, used(host));
}

void SocketMemory::give(int host, std::size_t bytes) {
  if (bytes == 0) return;
  const bool was_short = is_short(host);
  used_[host] -= bytes;
  if (was_short && !is_short(host)) on_room_(host);
}

void ByteQueue::take(std::size_t count) {
  begin_ += count;
  memory_.give(host_, count);
  if (begin_ * 2 < bytes_.size()) return;
  bytes_.erase(0, begin_);
  begin_ = 0;
}

}  // namespace spate::sim
