#include "net/stream/loop_streams.h"

#include <utility>

#include "net/stream/connection.h"

namespace spate {

LoopStreams::LoopStreams(Loop& loop) : LoopLocal(loop) {
  Connection::name_callbacks();
  timer_.head.priority = kDirect;
  timer_.head.context = this;
  timer_.head.callback = [](void* context, Node&, Events) {
    LoopStreams& loop_state = *static_cast<LoopStreams*>(context);
    loop_state.loop().feed(loop_state.due_, Events::timer);
  };
  due_.context = this;
  due_.callback = [](void* context, Node&, Events) {
    static_cast<LoopStreams*>(context)->look_at_due();
  };
  sending_.context = this;
  sending_.priority = kPriorityMin;
  sending_.callback = [](void* context, Node&, Events) {
    static_cast<LoopStreams*>(context)->send_held();
  };
  releasing_.context = this;
  releasing_.callback = [](void* context, Node&, Events) {
    static_cast<LoopStreams*>(context)->release_spent();
  };
}

LoopStreams::~LoopStreams() = default;

bool LoopStreams::open() { return arrivals_.open() && gather_.open(); }

bool LoopStreams::note_deadline(Connection& connection, std::int64_t when) {
  return deadlines_.note(connection, when) && arm();
}

// The timer may expire early, never late: an entry whose deadline was postponed is re-registered
// then.
bool LoopStreams::arm() {
  const std::int64_t earliest = deadlines_.earliest();
  if (earliest == INT64_MAX || (timer_.head.active != 0 && timer_.deadline <= earliest))
    return true;
  return loop().restart(timer_, earliest);
}

void LoopStreams::look_at_due() {
  const std::int64_t now = loop().now().count();
  while (Connection* connection = deadlines_.take_due(now)) connection->on_deadline();
  arm();
}

// A connection may be in the list with an empty queue, if memory ran out for its bytes.
bool LoopStreams::hold_back(Connection& connection) {
  if (connection.held_place() != 0) return true;
  if (!held_.reserve(held_.size() + 1) || !loop().feed(sending_, Events::custom)) return false;
  held_.push_reserved(&connection);
  connection.set_held_place(static_cast<std::uint32_t>(held_.size()));
  return true;
}

void LoopStreams::forget_held(Connection& connection) {
  held_[connection.held_place() - 1] = nullptr;
  connection.set_held_place(0);
}

// Calls no user code, so none are added meanwhile.
void LoopStreams::send_held() {
  for (Connection* connection : held_) {
    if (connection != nullptr) connection->send_held();
  }
  held_.shrink_to(0);
}

void LoopStreams::release_later(Buffer&& spent) {
  spent_.append(std::move(spent));
  if (is_alive()) {
    loop().feed(releasing_, Events::custom);
  } else {
    release_spent();
  }
}

// Moves the Buffer first: a release function may write, and add to it.
void LoopStreams::release_spent() { const Buffer released = std::move(spent_); }

// Before a nested run(): the callback may wait for the response to bytes that it has just written.
// Bytes written before a fork are sent by the parent.
void LoopStreams::on_handover() {
  if (is_foreign()) return;
  if (Connection* writer = gather_.owner()) {
    writer->send_gathered();
    gather_.end();
  }
  send_held();
}

// When memory runs out, a connection without a Stream is destroyed at its deadline.
void LoopStreams::on_fork() {
  if (const Connection* writer = gather_.owner(); writer != nullptr && writer->fd() >= 0)
    gather_.drop();
  Array<Connection*> lost;
  slab_.for_each([&lost](Connection& connection) {
    if (!connection.on_fork()) lost.push(&connection);
  });
  for (Connection* connection : lost) connection->abandon();
}

// Closes the connections of existing Streams. Connections without one were waiting for their last
// bytes to be read, until a deadline. All are closed before the first release function is called.
void LoopStreams::on_loop_end() {
  loop().stop(timer_);
  loop().clear_pending(due_);
  loop().clear_pending(sending_);
  loop().clear_pending(releasing_);
  while (Connection* connection = deadlines_.take_due(INT64_MAX)) connection->on_loop_end();
  on_loop_destroyed();
  release_spent();
  drop_functions();
}

// Destroying some may destroy Streams, so all are taken out first. Functions for which the array
// has no room are destroyed with their Stream.
void LoopStreams::drop_functions() {
  Array<CallbackHandler*> taken;
  slab_.for_each([&taken](Connection& connection) {
    if (!taken.reserve(taken.size() + 1)) return;
    if (OwnCallbacks callbacks = connection.take_callbacks())
      taken.push_reserved(callbacks.release());
  });
  for (CallbackHandler* callbacks : taken) CallbackHandlerEnd()(callbacks);
}

}  // namespace spate
