#include "net/process/child_process.h"

#include <cerrno>

#include "core/ownership.h"
#include "core/user_code.h"
#include "sys/spawn.h"

namespace spate {

std::error_code ChildProcess::kill(int signal) {
  return sys::error_code(is_running() ? sys::kill(pid(), signal) : -ESRCH);
}

// After a fork, it is not our child to kill or reap.
void ChildProcess::let_go() {
  if (!is_running() || is_foreign(child_.loop())) return abandon();
  if (kills_) kill(SIGKILL);
  callback_ = nullptr;
  Orphans* orphans = Orphans::of(child_.loop());
  if (orphans == nullptr) return abandon();
  orphans->add(*this);
}

void ChildProcess::on_exit() {
  if (is_orphan_) return Orphans::of(child_.loop())->remove(*this);
  Process::OnExit callback = std::move(callback_);
  call([&] { call_user("spawn()", [&] { callback(child_); }); });
}

// ---- orphans

void Orphans::add(ChildProcess& process) {
  process.is_orphan_ = true;
  processes_.add(process);
  loop().unref();
}

void Orphans::remove(ChildProcess& process) {
  processes_.remove(process);
  loop().ref();
  process.abandon();
}

}  // namespace spate
