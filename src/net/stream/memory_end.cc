#include "net/stream/memory_end.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "net/stream/loop_streams.h"

namespace spate {

std::pair<Connection*, Connection*> MemoryEnd::make_pair(LoopStreams& loop_state) {
  auto* one = new (std::nothrow) MemoryEnd(loop_state);
  auto* two = new (std::nothrow) MemoryEnd(loop_state);
  Connection* first = one == nullptr ? nullptr : Connection::make(*one);
  Connection* second = two == nullptr || first == nullptr ? nullptr : Connection::make(*two);
  if (second == nullptr) {
    if (first != nullptr) {
      first->abandon();
    } else {
      delete one;
    }
    delete two;
    return {};
  }
  one->connection_ = first;
  two->connection_ = second;
  one->peer_ = two;
  two->peer_ = one;
  return {first, second};
}

// Feeds an event if a wanted one is pending.
void MemoryEnd::tell() {
  if (!loop_state().is_alive()) return;
  Events events = Events::none;
  if (is_readable()) events |= wish_ & Events::read;
  if (is_writable()) events |= wish_ & Events::write;
  if (any(events)) loop_state().loop().feed(connection_->node().head, events);
}

long MemoryEnd::receive_own_way(Connection&, std::span<std::byte> room) {
  if (peer_reset_) return -ECONNRESET;
  if (inbox_.empty()) {
    is_end_reported_ = peer_ended_;
    return peer_ended_ ? 0 : -EAGAIN;
  }
  const auto count = static_cast<long>(inbox_.read(room));
  if (peer_ != nullptr) peer_->tell();
  tell();
  return count;
}

long MemoryEnd::send_own_way(Connection&, std::span<const Bytes> pieces) {
  if (peer_ == nullptr) return peer_reset_ ? -ECONNRESET : -EPIPE;
  if (!is_writable()) return -EAGAIN;
  long count = 0;
  for (const Bytes piece : pieces) {
    const std::size_t room = kInbox - peer_->inbox_.size();
    const Bytes part = piece.first(std::min(piece.size(), room));
    if (!peer_->inbox_.append(part)) return count > 0 ? count : -ENOMEM;
    count += static_cast<long>(part.size());
    if (part.size() < piece.size()) break;
  }
  peer_->tell();
  return count;
}

bool MemoryEnd::want(Connection& connection, Events events) {
  wish_ = events;
  Node& head = connection.node().head;
  const Events queued = loop_state().loop().clear_pending(head) & Events::custom;
  if (any(queued)) loop_state().loop().feed(head, queued);
  tell();
  return true;
}

bool MemoryEnd::shut_down(Connection&) {
  if (peer_ == nullptr) return true;
  peer_->peer_ended_ = true;
  peer_->tell();
  return true;
}

void MemoryEnd::close(Connection& connection, bool reset) {
  wish_ = Events::none;
  if (loop_state().has_loop()) loop_state().loop().clear_pending(connection.node().head);
  if (peer_ == nullptr) return;
  peer_->peer_ended_ = true;
  peer_->peer_reset_ = reset || !inbox_.empty();
  peer_->peer_ = nullptr;
  peer_->peer_reset_ ? peer_->report_reset() : peer_->tell();
  peer_ = nullptr;
}

// A connection that has read the peer's end does not read any more, so the reset is reported
// directly.
void MemoryEnd::report_reset() {
  if (is_end_reported_ && loop_state().is_alive()) connection_->on_reset();
  tell();
}

void MemoryEnd::leave(Connection&) { delete this; }

}  // namespace spate
