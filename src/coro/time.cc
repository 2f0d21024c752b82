// Sleep.
#include "spate/coro/time.h"

namespace spate::coro {

bool Sleep::start(Promise& chain, Then then) {
  loop_ = &chain.loop();
  node_.head.callback = on_timer;
  node_.head.context = this;
  if (!loop_->restart(node_, deadline_after(loop_->now(), delay_).count())) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return false;
  }
  waiter_.wait(then);
  return true;
}

void Sleep::cancel() {
  waiter_.cancel();
  if (node_.head.active != 0 || node_.head.pending != 0) loop_->stop(node_);
}

void Sleep::on_timer(void* context, Node&, Events) { static_cast<Sleep*>(context)->waiter_.go(); }

}  // namespace spate::coro
