// The memory of the sockets and pipes of each host, and its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace spate::sim {

class SocketMemory {
 public:
  // The amount a pipe takes at once. A host with less is low.
  static constexpr std::size_t kPage = 4096;

  // Calls `on_room` for hosts that had used up all memory, or were low, and now have some again.
  explicit SocketMemory(std::function<void(int)> on_room) : on_room_(std::move(on_room)) {}

  // Limits the memory of a host; zero is no limit.
  void limit(int host, std::size_t bytes);
  std::size_t used(int host) const;
  // Returns how much is left.
  std::size_t room(int host) const;
  bool is_short(int host) const { return room(host) == 0; }
  bool is_low(int host) const { return room(host) < kPage; }

  void take(int host, std::size_t bytes) { used_[host] += bytes; }
  void give(int host, std::size_t bytes);

 private:
  void tell(int host, std::size_t room_before);

  const std::function<void(int)> on_room_;
  std::map<int, std::size_t> limits_;
  std::map<int, std::size_t> used_;
};

// A byte queue in a host's memory. Consumed bytes are freed when they are half of it.
class ByteQueue {
 public:
  ByteQueue(SocketMemory& memory, int host) : memory_(memory), host_(host) {}
  ~ByteQueue() { clear(); }
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  std::size_t size() const { return bytes_.size() - begin_; }
  std::string_view front() const { return std::string_view(bytes_).substr(begin_); }
  void append(std::string_view bytes) {
    bytes_.append(bytes);
    memory_.take(host_, bytes.size());
  }
  void take(std::size_t count);
  void clear() { take(size()); }

 private:
  SocketMemory& memory_;
  const int host_;
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace spate::sim
