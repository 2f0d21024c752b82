// Sleep: the awaitable of sleep().
#include "spate/coro/time.h"
#include "spate/named_callback.h"

namespace spate::coro {

bool Sleep::start(Promise& fiber, Continuation continuation) {
  static const NamedCallback name(on_timer, ActiveKind::sleep, nullptr);
  loop_ = &fiber.loop();
  node_.head.callback = on_timer;
  node_.head.context = this;
  if (!loop_->restart(node_, deadline_after(loop_->now(), delay_).count())) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return false;
  }
  continuation_ = continuation;
  return true;
}

void Sleep::cancel() {
  continuation_.cancel();
  if (node_.head.active != 0 || node_.head.pending != 0) loop_->stop(node_);
}

void Sleep::on_timer(void* context, Node&, Events) {
  static_cast<Sleep*>(context)->continuation_.resume();
}

}  // namespace spate::coro
