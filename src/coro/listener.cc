// Listener: the socket is watched while somebody waits, and nobody is at the door.
#include "spate/coro/listener.h"

#include <new>
#include <optional>

#include "spate/coro/turns.h"

namespace spate::coro {

class Listener::Door {
 public:
  Door() = default;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { SPATE_ASSERT(!turns_.is_anybody_waiting(), "somebody waits for this Listener"); }

  void open(spate::Listener listener) {
    listener_ = std::move(listener);
    listener_.pause();
  }
  spate::Listener::OnAccept on_accept() {
    return [this](spate::Stream stream, const Address& peer) { enter(std::move(stream), peer); };
  }
  const spate::Listener& listener() const { return listener_; }

  bool is_anybody_there() { return turns_.leaves_one(count()); }
  void wait(Then then) {
    turns_.wait(then, count());
    look();
  }
  void give_up(Then& then) {
    if (turns_.give_up(then)) turns_.promise(count());
    look();
  }
  Newcomer take(Then& then) {
    turns_.take(then);
    Newcomer newcomer = *std::move(newcomer_);
    newcomer_.reset();
    look();
    return newcomer;
  }

 private:
  std::size_t count() const { return newcomer_ ? 1 : 0; }
  // Whoever goes on may close the door.
  void enter(spate::Stream stream, const Address& peer) {
    newcomer_.emplace(std::move(stream), peer);
    listener_.pause();
    turns_.promise_first().go();
  }
  void look() {
    if (!newcomer_ && turns_.is_anybody_waiting()) return listener_.resume();
    listener_.pause();
  }

  spate::Listener listener_;
  std::optional<Newcomer> newcomer_;
  Turns turns_;
};

Listener::Listener(std::unique_ptr<Door> door) : door_(std::move(door)) {}
Listener::Listener(Listener&& other) noexcept = default;
Listener& Listener::operator=(Listener&& other) noexcept = default;
Listener::~Listener() = default;

template <class Make>
Result<Listener> Listener::make(Make make) {
  std::unique_ptr<Door> door(new (std::nothrow) Door);
  if (door == nullptr) return std::unexpected(make_error_code(std::errc::not_enough_memory));
  Result<spate::Listener> listener = make(door->on_accept());
  if (!listener) return std::unexpected(listener.error());
  door->open(*std::move(listener));
  return Listener(std::move(door));
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

Listener::Accept Listener::accept() { return Accept(*door_); }
const spate::Listener& Listener::listener() const { return door_->listener(); }

bool Listener::Accept::await_ready() const { return door_.is_anybody_there(); }

bool Listener::Accept::start(Promise&, Then then) {
  then_ = then;
  door_.wait(then);
  return true;
}

void Listener::Accept::cancel() {
  if (then_) door_.give_up(then_);
}

Result<Newcomer> Listener::Accept::await_resume() { return door_.take(then_); }

}  // namespace spate::coro
