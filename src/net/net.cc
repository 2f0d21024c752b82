#include "net/net.h"

#include <new>

#include "core/extension.h"
#include "net/connection.h"
#include "net/resolver.h"

namespace spate {

// How the loop holds its Net.
class Net::Tenancy final : public Extension {
 public:
  explicit Tenancy(Net* net) : net_(net) {}
  ~Tenancy() override { net_->loop_goes(); }
  void on_nested_run() override { net_->stop_gathering(); }
  Net* net() const { return net_; }

 private:
  Net* net_;
};

Net* Net::of(Loop& loop) {
  std::unique_ptr<Extension>& extension = extension_of(loop);
  if (extension == nullptr) {
    auto* net = new (std::nothrow) Net(loop);
    if (net == nullptr) return nullptr;
    if (net->open()) extension.reset(new (std::nothrow) Tenancy(net));
    if (extension == nullptr) return delete net, nullptr;
  }
  return static_cast<Tenancy&>(*extension).net();
}

Net::Net(Loop& loop) : loop_(&loop) {
  timer_.head.priority = kDirect;
  timer_.head.context = this;
  timer_.head.callback = [](void* context, Node&, Events) {
    Net& net = *static_cast<Net*>(context);
    net.loop().feed(net.due_, Events::timer);
  };
  due_.context = this;
  due_.callback = [](void* context, Node&, Events) { static_cast<Net*>(context)->look_at_due(); };
  releasing_.context = this;
  releasing_.callback = [](void* context, Node&, Events) {
    static_cast<Net*>(context)->release_spent();
  };
}

Net::~Net() = default;

bool Net::open() { return arrivals_.open() && gather_.open(); }

Resolver* Net::resolver() {
  if (resolver_ == nullptr) resolver_.reset(new (std::nothrow) Resolver(loop()));
  return resolver_.get();
}

bool Net::note_deadline(Connection& connection, std::int64_t when) {
  return deadlines_.note(connection, when) && arm();
}

// The timer may be early, never late: a deadline that was postponed is found when it expires.
bool Net::arm() {
  const std::int64_t earliest = deadlines_.earliest();
  if (earliest == INT64_MAX || (timer_.head.active != 0 && timer_.deadline <= earliest))
    return true;
  return loop().restart(timer_, earliest);
}

void Net::look_at_due() {
  const std::int64_t now = loop().now().count();
  while (Connection* connection = deadlines_.take_due(now)) connection->on_deadline();
  arm();
}

void Net::release_later(Buffer&& spent) {
  spent_.append(std::move(spent));
  if (is_alive()) {
    loop().feed(releasing_, Events::custom);
  } else {
    release_spent();
  }
}

// Not in place: who is told may write, and have more released.
void Net::release_spent() { const Buffer released = std::move(spent_); }

// A callback may run the loop in order to wait for the answer to what it has just written.
void Net::stop_gathering() {
  Connection* writer = gather_.owner();
  if (writer == nullptr) return;
  writer->send_gathered();
  gather_.end();
}

// Whoever still holds a Stream finds it closed. Those that nobody holds have been waiting for
// their last bytes to be taken, each until a deadline. Who is told that bytes are released may let
// the last Stream go: we stay until we leave ourselves.
void Net::loop_goes() {
  enter();
  resolver_.reset();
  loop().stop(timer_);
  loop().clear_pending(due_);
  loop().clear_pending(releasing_);
  while (Connection* connection = deadlines_.take_due(INT64_MAX)) connection->on_loop_end();
  is_alive_ = false;
  release_spent();
  was_foreign_ = is_foreign();
  loop_ = nullptr;
  leave();
}

}  // namespace spate
