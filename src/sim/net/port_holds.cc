#include "sim/net/port_holds.h"

#include <algorithm>

namespace spate::sim {

std::vector<PortHold>* PortHolds::find(const Key& key) {
  const auto found = holds_.find(key);
  return found == holds_.end() ? nullptr : &found->second;
}

PortHold* PortHolds::find(const Key& key, std::uint64_t owner) {
  std::vector<PortHold>* those = find(key);
  if (those == nullptr) return nullptr;
  const auto found = std::ranges::find(*those, owner, &PortHold::owner);
  return found == those->end() ? nullptr : &*found;
}

void PortHolds::add(const PortHold& hold) {
  end_wait(hold.host, hold.local, hold.peer);
  holds_[{hold.host, hold.local.port}].push_back(hold);
}

void PortHolds::end_wait(int host, const Place& local, const Place& peer) {
  const Key key{host, local.port};
  erase(key, [&](const PortHold& hold) {
    return hold.is_over && hold.local == local && hold.peer == peer;
  });
}

void PortHolds::share(int host, std::uint16_t port, std::uint64_t owner, const PortHold& as) {
  PortHold* hold = find({host, port}, owner);
  if (hold == nullptr) return;
  hold->shares_address = as.shares_address;
  hold->shares_port = as.shares_port;
}

void PortHolds::erase(const Key& key, const std::function<bool(const PortHold&)>& is_one) {
  std::vector<PortHold>* those = find(key);
  if (those == nullptr) return;
  std::erase_if(*those, is_one);
  if (those->empty()) holds_.erase(key);
}

void PortHolds::remove(int host, std::uint16_t port, std::uint64_t owner) {
  erase({host, port}, [owner](const PortHold& hold) { return hold.owner == owner; });
}

void PortHolds::wait(int host, std::uint16_t port, std::uint64_t owner, Nanos now, Wait wait) {
  const Key key{host, port};
  PortHold* hold = find(key, owner);
  if (hold == nullptr) return;
  hold->is_over = wait == Wait::for_nobody;
  hold->over_since = now;
  hold->ends = now + kWait;
  waiting_.emplace_back(hold->ends, key, owner);
}

void PortHolds::crash(int host) {
  std::erase_if(holds_, [host](const auto& one) { return one.first.first == host; });
}

// A hold that waits again has a second, later entry.
void PortHolds::drop_ended(Nanos now) {
  while (!waiting_.empty() && std::get<Nanos>(waiting_.front()) <= now) {
    const auto [ends, key, owner] = waiting_.front();
    waiting_.pop_front();
    const PortHold* hold = find(key, owner);
    if (hold != nullptr && hold->ends <= now) remove(key.first, key.second, owner);
  }
}

bool PortHolds::any(int host, std::uint16_t port, Nanos now,
                    const std::function<bool(const PortHold&)>& is_in_the_way) {
  drop_ended(now);
  const std::vector<PortHold>* those = find({host, port});
  return those != nullptr && std::ranges::any_of(*those, is_in_the_way);
}

}  // namespace spate::sim
