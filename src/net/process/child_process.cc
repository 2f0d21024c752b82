#include "net/process/child_process.h"

#include <cerrno>

#include "core/ownership.h"
#include "core/user_code.h"
#include "sys/spawn.h"

namespace spate {

std::error_code ChildProcess::watch(int pid) {
  if (!callback_.is_linked() || (kills_ && !loop_ends_.start())) return sys::error_code(-ENOMEM);
  return child_.start(pid);
}

std::error_code ChildProcess::kill(int signal) {
  return sys::error_code(is_running() ? sys::kill(pid(), signal) : -ESRCH);
}

// In a child of a fork, the process belongs to the parent, and must not be killed or reaped here.
void ChildProcess::let_go() {
  if (!is_running() || is_foreign(child_.loop())) return abandon();
  if (kills_) kill(SIGKILL);
  Orphans* orphans = Orphans::of(child_.loop());
  if (orphans == nullptr) return abandon();
  orphans->add(*this);
  callback_.drop();
}

// Must be done now, because the process is not reaped yet: later, its number may be that of another
// process.
void ChildProcess::on_loop_end() {
  if (!is_foreign(child_.loop())) kill(SIGKILL);
}

void ChildProcess::on_exit() {
  if (is_orphan_) return Orphans::of(child_.loop())->remove(*this);
  call([&] { call_user("spawn()", [&] { callback_.call_last(child_); }); });
}

// ---- orphans

void Orphans::add(ChildProcess& process) {
  process.is_orphan_ = true;
  processes_.push_front(process);
  loop().unref();
}

void Orphans::remove(ChildProcess& process) {
  processes_.remove(process);
  loop().ref();
  process.abandon();
}

}  // namespace spate
