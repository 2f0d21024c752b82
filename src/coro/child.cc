// ExitOf: the awaitable of exit_of().
#include "spate/coro/child.h"

namespace spate::coro {

bool ExitOf::start(Promise& fiber, Continuation continuation) {
  child_.emplace(fiber.loop(), bind<&ExitOf::on_exit>(this));
  if (const std::error_code error = child_->start(pid_)) {
    outcome_ = std::unexpected(error);
    return false;
  }
  continuation_ = continuation;
  return true;
}

void ExitOf::cancel() {
  continuation_.cancel();
  child_.reset();
}

void ExitOf::on_exit(Child& child) {
  outcome_ = child.status();
  if (child.status() == -1) {
    outcome_ = std::unexpected(std::make_error_code(std::errc::no_child_process));
  }
  continuation_.resume();
}

}  // namespace spate::coro
