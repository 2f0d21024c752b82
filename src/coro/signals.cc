// Signals: one bit per received signal.
#include "spate/coro/signals.h"
#include "spate/named_callback.h"

#include <bit>
#include <new>

namespace spate::coro {

struct Signals::Watched {
  explicit Watched(Signals& owner)
      : signal(owner.loop_,
               named<Signal, ActiveKind::signal, hide_active>(bind<&Signals::on_signal>(&owner))) {}

  Signal signal;
  std::unique_ptr<Watched> older;
};

Signals::Signals(Loop& loop) : loop_(loop) {}

Signals::~Signals() {
  SPATE_ASSERT(!waiters_.has_waiter(),
               "the Signals were destroyed while a coroutine waits for them");
  for (const Watched* watched = watched_.get(); watched != nullptr;
       watched = watched->older.get()) {
    if (watched->signal.is_active()) loop_.ref();
  }
}

std::error_code Signals::add(int signum) {
  std::unique_ptr<Watched> watched(new (std::nothrow) Watched(*this));
  if (watched == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  if (const std::error_code error = watched->signal.start(signum)) return error;
  loop_.unref();
  watched->older = std::move(watched_);
  watched_ = std::move(watched);
  return {};
}

void Signals::on_signal(Signal& signal) {
  received_ |= std::uint64_t{1} << (signal.signum() - 1);
  waiters_.wake(count());
}

std::size_t Signals::count() const { return static_cast<std::size_t>(std::popcount(received_)); }

int Signals::take() {
  const int signum = std::countr_zero(received_) + 1;
  received_ &= received_ - 1;
  return signum;
}

bool Signals::Next::start(Promise&, Continuation continuation) {
  signals_.loop_.ref();
  continuation_ = continuation;
  signals_.waiters_.push(continuation, signals_.count());
  return true;
}

void Signals::Next::cancel() {
  unref_loop();
  if (signals_.waiters_.remove(continuation_)) signals_.waiters_.wake(signals_.count());
}

int Signals::Next::await_resume() {
  unref_loop();
  signals_.waiters_.claim(continuation_);
  return signals_.take();
}

void Signals::Next::unref_loop() {
  if (continuation_) signals_.loop_.unref();
}

}  // namespace spate::coro
