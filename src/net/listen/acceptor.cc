#include "net/listen/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ownership.h"
#include "net/socket_address.h"
#include "sys/socket.h"

namespace spate {

namespace {

// Errors of one new connection, or transient ones: Linux returns a new connection's network errors
// from accept().
bool concerns_one_connection(long error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

}  // namespace

Acceptor::Acceptor(Hub& hub, sys::Descriptor socket, const ListenOptions& options)
    : hub_(hub),
      socket_(std::move(socket)),
      io_(hub.loop(), socket_.get(), Events::read, bind<&Acceptor::accept_some>(this)),
      resting_(hub.loop(), bind<&Acceptor::on_rested>(this)),
      backlog_(options.backlog),
      accepts_per_turn_(std::max(options.accepts_per_turn, 1)),
      sets_no_delay_(options.no_delay && sys::is_tcp(socket_.get()) &&
                     !sys::has_no_delay(socket_.get())) {
  hub_.enter();
}

Acceptor::~Acceptor() { hub_.leave(); }

// In the middle of a callback we live on, and must not listen meanwhile.
void Acceptor::abandon() {
  stop_listening();
  Abandonable::abandon();
}

int Acceptor::release() {
  io_.stop_now();
  const int fd = socket_.release();
  abandon();
  return fd;
}

// What was stopped in this turn is still registered. Started once more, it is removed by closing,
// so the kernel is not told about a number that another file may have by then.
void Acceptor::stop_listening() {
  is_closing_ = true;
  if (hub_.is_alive() && socket_.is_open()) io_.start();
  io_.stop_before_close();
  resting_.stop();
  socket_ = sys::Descriptor();
}

bool Acceptor::may_be_touched() const { return !hub_.is_alive() || may_touch(hub_.loop()); }

void Acceptor::pause() {
  paused_ = true;
  update();
}

void Acceptor::resume() {
  paused_ = false;
  update();
}

void Acceptor::close() {
  if (!hub_.is_alive()) return stop_listening();
  if (std::exchange(is_closing_, true)) return;
  io_.stop();
  if (!resting_.start(Nanos{0})) resting_.feed();
}

void Acceptor::finish() {
  is_closing_ = true;
  io_.stop();
  call([this] {
    for (int i = 0; i <= backlog_ && !is_full() && accept_one(); ++i) {
    }
    if (!is_done()) stop_listening();
  });
}

void Acceptor::update() {
  if (!hub_.is_alive() || is_closing_) return;
  if (paused_ || is_full() || resting_.is_active()) {
    io_.stop();
  } else if (!io_.start()) {
    rest(ENOMEM);
  }
}

void Acceptor::on_rested() {
  if (is_closing_) return finish();
  update();
}

void Acceptor::accept_some() {
  if (!io_.is_active()) return rest(io_.error().value());  // The kernel refuses to watch.
  call([this] {
    for (int i = 0; i < accepts_per_turn_ && accept_one(); ++i) {
    }
  });
}

// False if there is no other connection, or none is wanted. What does not concern this connection
// alone, such as EMFILE, ENFILE, ENOBUFS and ENOMEM, pauses accepting.
bool Acceptor::accept_one() {
  Address peer;
  socklen_t size = AddressRoom::kSize;
  const long taken = sys::accept(socket_.get(), AddressRoom::of(peer), size);
  if (taken == -EAGAIN) return false;
  if (taken < 0) return concerns_one_connection(-taken) || (rest(-taken), false);
  AddressRoom::settle(peer, size);
  sys::Descriptor socket(taken);
  if (sets_no_delay_) sys::set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (!hand_over(socket, peer)) return rest(ENOMEM), false;
  if (is_done() || !hub_.is_alive() || is_full()) return false;
  return is_closing_ || !paused_;
}

void Acceptor::rest(long error) {
  last_error_ = std::error_code(static_cast<int>(error), std::system_category());
  if (resting_.start(kRest)) return update();
  resting_.feed();  // Without memory for a rest, a turn has to do.
}

}  // namespace spate
