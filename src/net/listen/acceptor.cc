#include "net/listen/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/ownership.h"
#include "core/user_code.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "sys/socket.h"

namespace spate {

namespace {

// What says something about one newcomer, or is over at once. Linux hands a new connection's own
// network errors to accept().
bool concerns_one_newcomer(long error) {
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

Result<Acceptor*> Acceptor::make(Loop& loop, sys::Descriptor& socket, Listener::OnAccept on_accept,
                                 const ListenOptions& options) {
  const auto no_memory = std::unexpected(sys::error_code(-ENOMEM));
  Hub* hub = Hub::of(loop);
  if (hub == nullptr) return no_memory;
  auto* acceptor =
      new (std::nothrow) Acceptor(*hub, std::move(socket), std::move(on_accept), options);
  if (acceptor == nullptr) return no_memory;
  if (acceptor->accepted_ones_ != nullptr && (acceptor->is_full() || acceptor->io_.start()))
    return acceptor;
  socket = std::move(acceptor->socket_);
  delete acceptor;
  return no_memory;
}

Acceptor::Acceptor(Hub& hub, sys::Descriptor socket, Listener::OnAccept on_accept,
                   const ListenOptions& options)
    : hub_(hub),
      socket_(std::move(socket)),
      on_accept_(std::move(on_accept)),
      options_(options),
      io_(hub.loop(), socket_.get(), Events::read, bind<&Acceptor::accept_some>(this)),
      resting_(hub.loop(), bind<&Acceptor::on_rested>(this)),
      accepted_ones_(new(std::nothrow) CountedTransport(hub, *this)),
      sets_no_delay_(options.no_delay && sys::is_tcp(socket_.get()) &&
                     !sys::has_no_delay(socket_.get())) {
  options_.accepts_per_turn = std::max(options_.accepts_per_turn, 1);
  hub_.enter();
}

Acceptor::~Acceptor() {
  if (accepted_ones_ != nullptr) accepted_ones_->abandon();
  hub_.leave();
}

// In the middle of a callback we live on, and must not listen meanwhile.
void Acceptor::abandon() {
  stop_listening();
  std::exchange(accepted_ones_, nullptr)->abandon();
  Abandonable::abandon();
}

int Acceptor::release() {
  io_.stop_now();
  const int fd = socket_.release();
  abandon();
  return fd;
}

// What was stopped in this very turn, the kernel still knows: started once more, it is forgotten by
// being closed, and nobody tells the kernel about a number that somebody else may have by then.
void Acceptor::stop_listening() {
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
    for (int i = 0; i <= options_.backlog && !is_full() && accept_one(); ++i) {
    }
    if (!is_done()) stop_listening();
  });
}

void Acceptor::on_left() {
  if (!is_full()) update();
}

// Listens if there is nothing against it.
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
    for (int i = 0; i < options_.accepts_per_turn && accept_one(); ++i) {
    }
  });
}

// False if there is nobody else, or nobody else is wanted.
bool Acceptor::accept_one() {
  sys::SystemAddress peer;
  const long taken = sys::accept(socket_.get(), peer);
  if (taken == -EAGAIN) return false;
  if (taken < 0) return concerns_one_newcomer(-taken) || (rest(-taken), false);
  return hand_over(sys::Descriptor(taken),
                   Address::from_system(&peer.storage, peer.size).value_or(Address()));
}

bool Acceptor::hand_over(sys::Descriptor socket, const Address& peer) {
  if (sets_no_delay_) sys::set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  Connection* connection = Connection::make(*accepted_ones_, socket.get());
  if (connection == nullptr) return rest(ENOMEM), false;
  socket.release();
  accepted_ones_->enter();
  ++accepted_;
  if (is_full()) update();  // A run inside the callback must not accept more.
  call_user("Listener", [&] { on_accept_(Connection::stream_of(connection), peer); });
  if (is_done() || !hub_.is_alive() || is_full()) return false;
  return is_closing_ || !paused_;
}

void Acceptor::rest(long error) {
  last_error_ = std::error_code(static_cast<int>(error), std::system_category());
  if (resting_.start(kRest)) return update();
  resting_.feed();  // Without memory for a rest, a turn has to do.
}

}  // namespace spate
