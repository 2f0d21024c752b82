// poll: one array of all descriptors, which is passed to the kernel at each wait.
#include <cerrno>
#include <new>

#include "backend/registry.h"
#include "sys/poll.h"

namespace spate {

namespace {

short to_poll(Events events) {
  int mask = 0;
  if (any(events & Events::read)) mask |= POLLIN;
  if (any(events & Events::write)) mask |= POLLOUT;
  if (any(events & Events::urgent)) mask |= POLLPRI;
  if (any(events & Events::peer_closed)) mask |= sys::kPollPeerClosed;
  return static_cast<short>(mask);
}

Events from_poll(short mask) {
  Events events = Events::none;
  if (mask & POLLIN) events |= Events::read;
  if (mask & POLLOUT) events |= Events::write;
  if (mask & POLLPRI) events |= Events::urgent;
  if (mask & sys::kPollPeerClosed) events |= Events::peer_closed;
  if (mask & (POLLERR | POLLHUP)) events |= kHungUp;
  return events;
}

class Poll final : public Backend {
 public:
  std::string_view name() const override { return "poll"; }

  long modify(int fd, Events before, Events after, std::uint32_t generation) override {
    const auto number = static_cast<std::size_t>(fd);
    if (!any(after)) {
      if (any(before)) remove(number);
      return 0;
    }
    if (!sys::is_open(fd)) return -EBADF;
    if (!has_place(number) && !add(number)) return -ENOMEM;
    const std::size_t index = place_[number] - 1;
    fds_[index].events = to_poll(after);
    generations_[index] = generation;
    return 0;
  }

  long wait(Nanos timeout, ReadyList& ready) override {
    std::size_t room = room_for(fds_.size(), ready);
    long count = wait_for(timeout);
    if (count == -EINTR) count = wait_for(Nanos{0});
    if (count < 0) return count == -EINTR ? 0 : count;
    // Begins with another descriptor each time. If memory or a limit of the program suffices only
    // for the first ones, all of them have their turn.
    first_ = next(first_);
    for (std::size_t at = first_; count > 0 && room > 0; at = next(at)) {
      const pollfd& entry = fds_[at];
      if (entry.revents == 0) continue;
      --count;
      --room;
      ready.push_reserved({.fd = entry.fd,
                           .generation = generations_[at],
                           .events = from_poll(entry.revents),
                           .error = entry.revents & POLLNVAL ? EBADF : 0});
    }
    return 0;
  }

  std::error_code reopen() override {
    fds_.clear();
    generations_.clear();
    place_.clear();
    return {};
  }

 private:
  long wait_for(Nanos timeout) {
    ++calls_.wait;
    return sys::poll(fds_.begin(), fds_.size(), timeout);
  }

  std::size_t next(std::size_t index) const { return index + 1 < fds_.size() ? index + 1 : 0; }

  bool has_place(std::size_t number) const { return number < place_.size() && place_[number] != 0; }

  bool add(std::size_t number) {
    if (number >= place_.size() && !place_.grow_with_zeros(number + 1)) return false;
    const std::size_t count = fds_.size() + 1;
    if (!fds_.reserve(count) || !generations_.reserve(count)) return false;
    fds_.push_reserved({.fd = static_cast<int>(number), .events = 0, .revents = 0});
    generations_.push_reserved(0);
    place_[number] = static_cast<std::uint32_t>(count);
    return true;
  }

  void remove(std::size_t number) {
    if (!has_place(number)) return;
    const std::uint32_t hole = place_[number];
    fds_[hole - 1] = fds_.back();
    generations_[hole - 1] = generations_.back();
    place_[static_cast<std::size_t>(fds_[hole - 1].fd)] = hole;
    place_[number] = 0;
    fds_.pop();
    generations_.pop();
  }

  Array<pollfd> fds_;
  Array<std::uint32_t> generations_;  // Parallel to fds_.
  Array<std::uint32_t> place_;        // By descriptor: 1 + its index in fds_; 0 if none.
  std::size_t first_ = 0;             // Where the last report began.
};

}  // namespace

std::unique_ptr<Backend> make_poll() { return std::unique_ptr<Backend>(new (std::nothrow) Poll); }

}  // namespace spate
