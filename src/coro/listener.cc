// Listener: accepts while a coroutine waits and no accepted connection is left.
#include "spate/coro/listener.h"

#include <new>
#include <optional>

#include "spate/coro/extend/reservation_queue.h"

namespace spate::coro {

class Listener::State {
 public:
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    SPATE_ASSERT(!waiters_.has_waiter(), "a Listener was destroyed while a coroutine waits for it");
  }

  void open(spate::Listener listener) {
    listener_ = std::move(listener);
    listener_.pause();
  }
  spate::Listener::OnAccept on_accept() {
    return [this](spate::Stream stream, const Address& peer) { add(std::move(stream), peer); };
  }
  const spate::Listener& listener() const { return listener_; }

  bool has_connection() { return waiters_.has_free(count()); }
  void wait(Continuation continuation) {
    waiters_.push(continuation, count());
    accept_if_awaited();
  }
  void cancel(Continuation& continuation) {
    if (waiters_.remove(continuation)) waiters_.wake(count());
    accept_if_awaited();
  }
  Accepted take(Continuation& continuation) {
    waiters_.claim(continuation);
    Accepted accepted = *std::move(accepted_);
    accepted_.reset();
    accept_if_awaited();
    return accepted;
  }

 private:
  std::size_t count() const { return accepted_ ? 1 : 0; }
  // The resumed coroutine may destroy the Listener.
  void add(spate::Stream stream, const Address& peer) {
    accepted_.emplace(std::move(stream), peer);
    listener_.pause();
    waiters_.reserve_first().resume();
  }
  void accept_if_awaited() {
    if (!accepted_ && waiters_.has_waiter()) return listener_.resume();
    listener_.pause();
  }

  spate::Listener listener_;
  std::optional<Accepted> accepted_;
  ReservationQueue waiters_;
};

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::Listener(Listener&& other) noexcept = default;
Listener& Listener::operator=(Listener&& other) noexcept = default;
Listener::~Listener() = default;

template <class Make>
Result<Listener> Listener::make(Make make) {
  std::unique_ptr<State> state(new (std::nothrow) State);
  if (state == nullptr) return std::unexpected(make_error_code(std::errc::not_enough_memory));
  Result<spate::Listener> listener = make(state->on_accept());
  if (!listener) return std::unexpected(listener.error());
  state->open(*std::move(listener));
  return Listener(std::move(state));
}

Result<Listener> Listener::create(Loop& loop, const Address& address,
                                  const ListenOptions& options) {
  return make([&](spate::Listener::OnAccept on_accept) {
    return spate::Listener::create(loop, address, std::move(on_accept), options);
  });
}

Result<Listener> Listener::adopt(Loop& loop, int fd, const ListenOptions& options) {
  return make([&](spate::Listener::OnAccept on_accept) {
    return spate::Listener::adopt(loop, fd, std::move(on_accept), options);
  });
}

Listener::Accept Listener::accept() { return Accept(*state_); }
const spate::Listener& Listener::listener() const { return state_->listener(); }

bool Listener::Accept::await_ready() const { return state_.has_connection(); }

bool Listener::Accept::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  state_.wait(continuation);
  return true;
}

void Listener::Accept::cancel() {
  if (continuation_) state_.cancel(continuation_);
}

Result<Accepted> Listener::Accept::await_resume() { return state_.take(continuation_); }

}  // namespace spate::coro
