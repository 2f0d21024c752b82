// ExitOf.
#include "spate/coro/child.h"

namespace spate::coro {

bool ExitOf::start(Promise& chain, Then then) {
  child_.emplace(chain.loop(), bind<&ExitOf::on_exit>(this));
  if (const std::error_code error = child_->start(pid_)) {
    outcome_ = std::unexpected(error);
    return false;
  }
  then_ = then;
  return true;
}

void ExitOf::cancel() {
  then_.leave();
  child_.reset();
}

void ExitOf::on_exit(Child& child) {
  outcome_ = child.status();
  if (child.status() == -1) {
    outcome_ = std::unexpected(std::make_error_code(std::errc::no_child_process));
  }
  then_.go();
}

}  // namespace spate::coro
