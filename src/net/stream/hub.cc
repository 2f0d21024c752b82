#include "net/stream/hub.h"

#include <utility>

#include "net/stream/connection.h"

namespace spate {

Hub::Hub(Loop& loop) : LoopLocal(loop) {
  timer_.head.priority = kDirect;
  timer_.head.context = this;
  timer_.head.callback = [](void* context, Node&, Events) {
    Hub& hub = *static_cast<Hub*>(context);
    hub.loop().feed(hub.due_, Events::timer);
  };
  due_.context = this;
  due_.callback = [](void* context, Node&, Events) { static_cast<Hub*>(context)->look_at_due(); };
  sending_.context = this;
  sending_.priority = kPriorityMin;
  sending_.callback = [](void* context, Node&, Events) { static_cast<Hub*>(context)->send_held(); };
  releasing_.context = this;
  releasing_.callback = [](void* context, Node&, Events) {
    static_cast<Hub*>(context)->release_spent();
  };
}

Hub::~Hub() = default;

bool Hub::open() { return arrivals_.open() && gather_.open(); }

bool Hub::note_deadline(Connection& connection, std::int64_t when) {
  return deadlines_.note(connection, when) && arm();
}

// The timer may be early, never late: a deadline that was postponed is found when it expires.
bool Hub::arm() {
  const std::int64_t earliest = deadlines_.earliest();
  if (earliest == INT64_MAX || (timer_.head.active != 0 && timer_.deadline <= earliest))
    return true;
  return loop().restart(timer_, earliest);
}

void Hub::look_at_due() {
  const std::int64_t now = loop().now().count();
  while (Connection* connection = deadlines_.take_due(now)) connection->on_deadline();
  arm();
}

// One may be held with nothing queued, when there was no memory for it.
bool Hub::hold_back(Connection& connection) {
  if (connection.held_place() != 0) return true;
  if (!held_.reserve(held_.size() + 1) || !loop().feed(sending_, Events::custom)) return false;
  held_.push_reserved(&connection);
  connection.set_held_place(static_cast<std::uint32_t>(held_.size()));
  return true;
}

void Hub::forget_held(Connection& connection) {
  held_[connection.held_place() - 1] = nullptr;
  connection.set_held_place(0);
}

// Calls no user code, so none are added meanwhile.
void Hub::send_held() {
  for (Connection* connection : held_) {
    if (connection != nullptr) connection->send_held();
  }
  held_.shrink_to(0);
}

void Hub::release_later(Buffer&& spent) {
  spent_.append(std::move(spent));
  if (is_alive()) {
    loop().feed(releasing_, Events::custom);
  } else {
    release_spent();
  }
}

// Not in place: a release function may write, and add more.
void Hub::release_spent() { const Buffer released = std::move(spent_); }

// A callback may run the loop in order to wait for the answer to what it has just written. What was
// written before a fork is the parent's to send.
void Hub::on_handover() {
  if (is_foreign()) return;
  if (Connection* writer = gather_.owner()) {
    writer->send_gathered();
    gather_.end();
  }
  send_held();
}

// Streams that still have an owner are closed for it. Those without one were waiting for their last
// bytes to be read, each until a deadline. All are closed before the first release function is
// called.
void Hub::on_loop_end() {
  loop().stop(timer_);
  loop().clear_pending(due_);
  loop().clear_pending(sending_);
  loop().clear_pending(releasing_);
  while (Connection* connection = deadlines_.take_due(INT64_MAX)) connection->on_loop_end();
  forsake_loop();
  release_spent();
}

}  // namespace spate
