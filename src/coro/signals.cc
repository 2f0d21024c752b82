// Signals: a bit for each that has come.
#include "spate/coro/signals.h"

#include <bit>
#include <new>

namespace spate::coro {

struct Signals::Added {
  explicit Added(Signals& owner) : signal(owner.loop_, bind<&Signals::on_signal>(&owner)) {}

  Signal signal;
  std::unique_ptr<Added> older;
};

Signals::Signals(Loop& loop) : loop_(loop) {}

Signals::~Signals() {
  SPATE_ASSERT(!turns_.is_anybody_waiting(), "somebody waits for these Signals");
  for (const Added* added = added_.get(); added != nullptr; added = added->older.get()) {
    if (added->signal.is_active()) loop_.ref();
  }
}

std::error_code Signals::add(int signum) {
  std::unique_ptr<Added> added(new (std::nothrow) Added(*this));
  if (added == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  if (const std::error_code error = added->signal.start(signum)) return error;
  loop_.unref();
  added->older = std::move(added_);
  added_ = std::move(added);
  return {};
}

void Signals::on_signal(Signal& signal) {
  came_ |= std::uint64_t{1} << (signal.signum() - 1);
  turns_.promise(count());
}

std::size_t Signals::count() const { return static_cast<std::size_t>(std::popcount(came_)); }

int Signals::take() {
  const int signum = std::countr_zero(came_) + 1;
  came_ &= came_ - 1;
  return signum;
}

bool Signals::Next::start(Promise&, Then then) {
  signals_.loop_.ref();
  then_ = then;
  signals_.turns_.wait(then, signals_.count());
  return true;
}

void Signals::Next::cancel() {
  let_go();
  if (signals_.turns_.give_up(then_)) signals_.turns_.promise(signals_.count());
}

int Signals::Next::await_resume() {
  let_go();
  signals_.turns_.take(then_);
  return signals_.take();
}

void Signals::Next::let_go() {
  if (then_) signals_.loop_.unref();
}

}  // namespace spate::coro
