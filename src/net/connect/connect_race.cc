#include "net/connect/connect_race.h"

#include <algorithm>
#include <cerrno>

#include "net/connect/address_order.h"
#include "net/socket_address.h"
#include "spate/error.h"
#include "spate/named_callback.h"
#include "sys/socket.h"

namespace spate {

namespace {

// The minimum of RFC 8305.
constexpr Nanos kLeastAttemptDelay{10'000'000};

}  // namespace

// ---- one attempt

ConnectRace::Attempt::Attempt(ConnectRace& race, const Address& address, sys::Descriptor socket)
    : race_(race),
      port_(address.port()),
      socket_(std::move(socket)),
      io_(race.loop_, socket_.get(), Events::write,
          named<Io, ActiveKind::connecting>(bind<&Attempt::on_writable>(this))) {}

int ConnectRace::Attempt::outcome() const {
  if (!io_.is_active()) return io_.error().value();  // The kernel cannot watch it.
  const int error = sys::pending_error(socket_.get());
  if (error != 0 || !is_connected_to_itself()) return error;
  sys::reset_on_close(socket_.get());
  return ECONNREFUSED;
}

// When connecting to a local port in the ephemeral range where nothing listens, the kernel may
// choose the same port for this end. Then TCP's simultaneous open connects the socket to itself,
// and the server cannot bind its port.
bool ConnectRace::Attempt::is_connected_to_itself() const {
  if (port_ == 0) return false;
  const Address here = local_address_of(socket_.get());
  return here.port() == port_ && peer_address_of(socket_.get()) == here;
}

// ---- the race

ConnectRace::ConnectRace(Loop& loop, OnSocket callback, const ConnectOptions& options)
    : loop_(loop),
      callback_(loop, std::move(callback)),
      options_(options),
      attempt_delay_(loop,
                     named<Timer, ActiveKind::connecting>(bind<&ConnectRace::try_next>(this))),
      limit_(loop,
             named<Timer, ActiveKind::connecting>([this] { give_up(Error::connect_timeout); })),
      forked_(loop, bind<&ConnectRace::on_fork>(this)) {
  forked_.start();
  options_.attempt_delay = std::max(options_.attempt_delay, kLeastAttemptDelay);
  if (options_.timeout > Nanos{0}) limit_.start(options_.timeout);
}

void ConnectRace::add(const std::vector<Address>& addresses) {
  addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  wake();
}

void ConnectRace::add_by_turns(const std::vector<Address>& addresses) {
  addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  const auto untried = addresses_.begin() + static_cast<std::ptrdiff_t>(next_);
  const bool ipv6_is_next = next_ == 0 ? options_.ipv6_first : !is_ipv6(addresses_[next_ - 1]);
  std::ranges::copy(by_turns({untried, addresses_.end()}, ipv6_is_next), untried);
  wake();
}

// If all addresses fail at once, the callback is still called later, when the caller has its
// Connecting.
void ConnectRace::begin() {
  has_begun_ = true;
  if (next_ == addresses_.size()) return wake();
  const bool is_under_way = try_one();
  if (!is_under_way || next_ < addresses_.size())
    try_soon(is_under_way ? options_.attempt_delay : Nanos{0});
}

void ConnectRace::close(std::error_code none) {
  is_closed_ = true;
  if (!error_) error_ = none;
  wake();
}

void ConnectRace::wake() {
  const bool has_nothing_to_do = next_ == addresses_.size() && !attempts_.empty();
  if (!has_begun_ || has_nothing_to_do || attempt_delay_.is_active()) return;
  const Nanos due = deadline_after(last_attempt_, options_.attempt_delay);
  try_soon(attempts_.empty() || due < loop_.now() ? Nanos{0} : due - loop_.now());
}

// Without memory for the timer, tries at once.
void ConnectRace::try_soon(Nanos delay) {
  if (!attempt_delay_.start(delay)) attempt_delay_.feed();
}

void ConnectRace::try_next() {
  while (next_ < addresses_.size() && !try_one()) {
  }
  if (next_ < addresses_.size()) {
    try_soon(options_.attempt_delay);
  } else {
    attempt_delay_.stop();
    lose_if_all_have_failed();
  }
}

bool ConnectRace::try_one() {
  const long result = try_address(addresses_[next_++]);
  if (result < 0) error_ = sys::error_code(result);
  return result >= 0;
}

long ConnectRace::try_address(const Address& address) {
  if (address.family() == Address::Family::none) return -EINVAL;
  sys::Descriptor socket(sys::open_socket(sys::family_of(address.data()), SOCK_STREAM));
  if (!socket.is_open()) return socket.get();
  if (const long result = prepare(socket.get(), address); result < 0) return result;
  long result = sys::connect(socket.get(), address.data(), address.size());
  if (result == -EINTR) result = -EINPROGRESS;  // connect() continues in the background.
  if (result < 0 && result != -EINPROGRESS) return result;
  // A socket that is already connected is writable at once.
  attempts_.push_back(std::make_unique<Attempt>(*this, address, std::move(socket)));
  if (!attempts_.back()->start()) {
    attempts_.pop_back();
    return -ENOMEM;
  }
  last_attempt_ = loop_.now();
  return 0;
}

long ConnectRace::prepare(int fd, const Address& address) {
  const Address& local = options_.local;
  if (address.is_ip() && options_.no_delay) {
    const long result = sys::set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (result < 0) return result;
  }
  if (local.family() == Address::Family::none) return 0;
  if (local.family() != address.family()) return -EAFNOSUPPORT;
  return sys::bind(fd, local.data(), local.size());
}

void ConnectRace::on_result(Attempt& attempt) {
  const int error = attempt.outcome();
  if (error == 0) return end(attempt.take());
  error_ = std::error_code(error, std::system_category());
  std::erase_if(attempts_, [&](const auto& one) { return one.get() == &attempt; });
  // After a failure the next address is tried at once.
  if (next_ < addresses_.size()) return try_next();
  lose_if_all_have_failed();
}

void ConnectRace::lose_if_all_have_failed() {
  if (attempts_.empty() && is_closed_ && next_ == addresses_.size()) give_up(error_);
}

void ConnectRace::give_up(std::error_code error) { end(std::unexpected(error)); }

// Must be the last action: the callback may destroy this.
void ConnectRace::end(Result<sys::Descriptor> result) {
  stop();
  callback_.call_last(std::move(result));
}

void ConnectRace::stop() {
  attempts_.clear();
  attempt_delay_.stop();
  limit_.stop();
}

// In the child, the sockets are the parent's, and the attempt ends without a result. An attempt
// without a socket is the child's own. Must be the last action, as above.
void ConnectRace::on_fork() {
  if (attempts_.empty()) return;
  stop();
  callback_.drop();
}

}  // namespace spate
