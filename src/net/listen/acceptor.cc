#include "net/listen/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ownership.h"
#include "net/socket_address.h"
#include "spate/named_callback.h"
#include "sys/socket.h"

namespace spate {

namespace {

// Exceeds the default limit of every kernel.
constexpr int kMostQueued = 65'536;

// Returns how many connections close() accepts. listen() takes a negative backlog for the kernel's
// limit.
int most_queued(int backlog) { return backlog < 0 ? kMostQueued : backlog; }

// True for errors of one new connection, and transient ones: Linux returns a new connection's
// network errors from accept().
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
    case sys::kNoNetwork:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

void show_listener(const Node& node, ActiveInfo& info) {
  info.label = local_address_of(reinterpret_cast<const FdNode&>(node).fd).to_string();
}

}  // namespace

Acceptor::Acceptor(LoopStreams& loop_state, sys::Descriptor socket, const ListenOptions& options)
    : loop_state_(loop_state),
      socket_(std::move(socket)),
      io_(loop_state.loop(), socket_.get(), Events::read,
          named<Io, ActiveKind::listener, show_listener>(bind<&Acceptor::accept_some>(this))),
      resting_(loop_state.loop(),
               named<Timer, ActiveKind::listener>(bind<&Acceptor::on_rested>(this))),
      backlog_(most_queued(options.backlog)),
      accepts_per_turn_(std::max(options.accepts_per_turn, 1)),
      sets_no_delay_(options.no_delay && sys::is_tcp(socket_.get()) &&
                     !sys::has_no_delay(socket_.get())) {
  loop_state_.enter();
}

Acceptor::~Acceptor() { loop_state_.leave(); }

// If a callback is running, this is destroyed later, and must not listen until then.
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

// An Io that was stopped in this turn is still registered with the kernel. Starting it and then
// stop_before_close() makes close() remove it. Otherwise the removal would be sent later for a
// number that may belong to another file by then.
void Acceptor::stop_listening() {
  is_closing_ = true;
  if (loop_state_.is_alive() && socket_.is_open()) io_.start();
  io_.stop_before_close();
  resting_.stop();
  socket_ = sys::Descriptor();
}

bool Acceptor::may_be_touched() const {
  return !loop_state_.is_alive() || may_touch(loop_state_.loop());
}

void Acceptor::pause() {
  paused_ = true;
  update();
}

void Acceptor::resume() {
  paused_ = false;
  update();
}

void Acceptor::close() {
  if (!loop_state_.is_alive()) return stop_listening();
  if (std::exchange(is_closing_, true)) return;
  io_.stop();
  if (!resting_.start(Nanos{0})) resting_.feed();
}

void Acceptor::finish() {
  is_closing_ = true;
  io_.stop();
  call_acceptor([this] {
    for (int i = 0; i <= backlog_ && !is_full() && accept_one(); ++i) {
    }
    if (!is_done()) stop_listening();
  });
}

// The last that is done. A callback that closes the socket returns before it is destroyed.
template <class Function>
void Acceptor::call_acceptor(Function function) {
  if (call(function) && is_done() && !is_calling()) on_closed();
}

void Acceptor::update() {
  if (!loop_state_.is_alive() || is_closing_) return;
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
  if (!io_.is_active()) return rest(io_.error().value());  // The kernel cannot watch it.
  call_acceptor([this] {
    for (int i = 0; i < accepts_per_turn_ && accept_one(); ++i) {
    }
  });
}

// Accepts one connection. False if there is no other connection, or none is wanted. Errors of the
// process or system (EMFILE, ENFILE, ENOBUFS, ENOMEM) pause accepting.
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
  if (is_done() || !loop_state_.is_alive() || is_full()) return false;
  return is_closing_ || !paused_;
}

void Acceptor::rest(long error) {
  last_error_ = std::error_code(static_cast<int>(error), std::system_category());
  if (resting_.start(kRest)) return update();
  resting_.feed();  // Without memory for the timer, pauses for one turn.
}

}  // namespace spate
