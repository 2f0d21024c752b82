#include "net/connect_race.h"

#include <algorithm>
#include <cerrno>

#include "net/connection.h"
#include "net/net.h"
#include "spate/error.h"
#include "sys/socket.h"

namespace spate {

ConnectRace::Runner::Runner(ConnectRace& race, sys::Descriptor socket)
    : race_(race),
      socket_(std::move(socket)),
      io_(race.loop_, socket_.get(), Events::write, bind<&Runner::on_writable>(this)) {}

ConnectRace::ConnectRace(Loop& loop, OnConnected callback, const ConnectOptions& options)
    : loop_(loop),
      callback_(std::move(callback)),
      options_(options),
      error_(std::make_error_code(std::errc::invalid_argument)),
      patience_(loop, bind<&ConnectRace::try_next>(this)),
      limit_(loop, [this] { give_up(Error::connect_timeout); }) {}

void ConnectRace::add(std::vector<Address> addresses) {
  const bool was_waiting = next_ == addresses_.size() && next_ > 0 && !patience_.is_active();
  addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  if (was_waiting) try_soon(runners_.empty() ? Nanos{0} : options_.attempt_delay);
}

// The first address is tried from the loop too: whatever it answers, nobody is called before the
// caller has its Connecting.
void ConnectRace::start() {
  if (options_.timeout > Nanos{0}) limit_.start(options_.timeout);
  try_soon(Nanos{0});
}

// Without memory to wait, at once.
void ConnectRace::try_soon(Nanos delay) {
  if (!patience_.start(delay)) patience_.feed();
}

void ConnectRace::try_next() {
  while (next_ < addresses_.size()) {
    const long result = try_address(addresses_[next_++]);
    if (result >= 0) break;
    error_ = sys::error_code(result);
  }
  if (next_ < addresses_.size()) {
    try_soon(options_.attempt_delay);
  } else {
    lose_if_all_have_failed();
  }
}

long ConnectRace::try_address(const Address& address) {
  if (address.family() == Address::Family::none) return -EINVAL;
  sys::Descriptor socket(sys::open_socket(sys::family_of(address.data()), SOCK_STREAM));
  if (!socket.is_open()) return socket.get();
  if (const long result = prepare(socket.get(), address); result < 0) return result;
  long result = sys::connect(socket.get(), address.data(), address.size());
  if (result == -EINTR) result = -EINPROGRESS;  // It goes on all the same.
  if (result < 0 && result != -EINPROGRESS) return result;
  // One that is connected already is writable.
  runners_.push_back(std::make_unique<Runner>(*this, std::move(socket)));
  if (runners_.back()->start()) return 0;
  runners_.pop_back();
  return -ENOMEM;
}

long ConnectRace::prepare(int fd, const Address& address) {
  long result = 0;
  if (address.is_ip() && options_.no_delay)
    result = sys::set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (result >= 0 && options_.local.family() == address.family())
    result = sys::bind(fd, options_.local.data(), options_.local.size());
  return result;
}

void ConnectRace::on_answer(Runner& runner) {
  const int error = runner.error();
  if (error == 0) return win(runner.take());
  error_ = std::error_code(error, std::system_category());
  std::erase_if(runners_, [&](const auto& one) { return one.get() == &runner; });
  // No need to be patient with one that has failed.
  if (next_ < addresses_.size()) return try_next();
  lose_if_all_have_failed();
}

void ConnectRace::win(sys::Descriptor socket) {
  runners_.clear();
  Net* net = Net::of(loop_);
  Connection* connection =
      net == nullptr ? nullptr : Connection::make(net->sockets(), socket.get());
  if (connection == nullptr) return give_up(std::make_error_code(std::errc::not_enough_memory));
  socket.release();
  end(Connection::stream_of(connection));
}

void ConnectRace::lose_if_all_have_failed() {
  if (runners_.empty() && is_closed_ && next_ == addresses_.size()) give_up(error_);
}

void ConnectRace::give_up(std::error_code error) {
  runners_.clear();
  end(std::unexpected(error));
}

// The last that is done: the callback may destroy us.
void ConnectRace::end(std::expected<Stream, std::error_code> result) {
  patience_.stop();
  limit_.stop();
  OnConnected callback = std::move(callback_);
  callback(std::move(result));
}

}  // namespace spate
