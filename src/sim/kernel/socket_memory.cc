#include "sim/kernel/socket_memory.h"

#include <algorithm>

namespace spate::sim {

void SocketMemory::limit(int host, std::size_t bytes) {
  const std::size_t before = room(host);
  limits_[host] = bytes == 0 ? SIZE_MAX : bytes;
  tell(host, before);
}

void SocketMemory::tell(int host, std::size_t room_before) {
  const bool was_short = room_before == 0 && !is_short(host);
  const bool was_low = room_before < kPage && !is_low(host);
  if (was_short || was_low) on_room_(host);
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
  const std::size_t before = room(host);
  used_[host] -= bytes;
  tell(host, before);
}

void ByteQueue::take(std::size_t count) {
  begin_ += count;
  memory_.give(host_, count);
  if (begin_ * 2 < bytes_.size()) return;
  bytes_.erase(0, begin_);
  begin_ = 0;
}

}  // namespace spate::sim
