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

void Hub::release_later(Buffer&& spent) {
  spent_.append(std::move(spent));
  if (is_alive()) {
    loop().feed(releasing_, Events::custom);
  } else {
    release_spent();
  }
}

// Not in place: who is told may write, and have more released.
void Hub::release_spent() { const Buffer released = std::move(spent_); }

// A callback may run the loop in order to wait for the answer to what it has just written.
void Hub::on_nested_run() {
  Connection* writer = gather_.owner();
  if (writer == nullptr) return;
  writer->send_gathered();
  gather_.end();
}

// Whoever still holds a Stream finds it closed. Those that nobody holds have been waiting for
// their last bytes to be taken, each until a deadline. Who is told that bytes are released finds
// all of them closed.
void Hub::on_loop_end() {
  loop().stop(timer_);
  loop().clear_pending(due_);
  loop().clear_pending(releasing_);
  while (Connection* connection = deadlines_.take_due(INT64_MAX)) connection->on_loop_end();
  forsake_loop();
  release_spent();
}

}  // namespace spate
