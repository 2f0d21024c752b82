// poll: one array of all descriptors, handed to the kernel at each wait.
#include <cerrno>

#include "backend/registry.h"
#include "sys/poll.h"

namespace spate {

namespace {

short to_poll(Events events) {
  int mask = 0;
  if (any(events & Events::read)) mask |= POLLIN;
  if (any(events & Events::write)) mask |= POLLOUT;
  if (any(events & Events::urgent)) mask |= POLLPRI;
  if (any(events & Events::closed)) mask |= POLLRDHUP;
  return static_cast<short>(mask);
}

Events from_poll(short mask) {
  Events events = Events::none;
  if (mask & POLLIN) events |= Events::read;
  if (mask & POLLOUT) events |= Events::write;
  if (mask & POLLPRI) events |= Events::urgent;
  if (mask & POLLRDHUP) events |= Events::closed;
  if (mask & (POLLERR | POLLHUP)) events |= kHungUp;
  return events;
}

class Poll final : public Backend {
 public:
  std::string_view name() const override { return "poll"; }

  std::error_code modify(int fd, Events before, Events after, std::uint32_t generation) override {
    const auto number = static_cast<std::size_t>(fd);
    if (number >= place_.size()) place_.resize(number + 1, kNone);
    if (!any(after)) {
      if (any(before)) remove(number);
      return {};
    }
    if (!sys::is_open(fd)) return {EBADF, std::system_category()};
    if (place_[number] == kNone) {
      place_[number] = static_cast<std::uint32_t>(fds_.size());
      fds_.push_back({.fd = fd, .events = 0, .revents = 0});
      generations_.push_back(generation);
    }
    fds_[place_[number]].events = to_poll(after);
    generations_[place_[number]] = generation;
    return {};
  }

  std::error_code wait(Nanos timeout, std::vector<Ready>& ready) override {
    long count = wait_for(timeout);
    if (count == -EINTR) count = wait_for(Nanos{0});
    if (count == -EINTR) return {};
    if (count < 0) return sys::error_code(count);
    for (std::size_t i = 0; count > 0; ++i) {
      const pollfd& entry = fds_[i];
      if (entry.revents == 0) continue;
      --count;
      ready.push_back({.fd = entry.fd,
                       .generation = generations_[i],
                       .events = from_poll(entry.revents),
                       .error = entry.revents & POLLNVAL ? EBADF : 0});
    }
    return {};
  }

  std::error_code reopen() override {
    fds_.clear();
    generations_.clear();
    place_.clear();
    return {};
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  long wait_for(Nanos timeout) {
    ++calls_.wait;
    return sys::poll(fds_.data(), fds_.size(), timeout);
  }

  void remove(std::size_t number) {
    const std::uint32_t hole = place_[number];
    if (hole == kNone) return;
    fds_[hole] = fds_.back();
    generations_[hole] = generations_.back();
    place_[static_cast<std::size_t>(fds_[hole].fd)] = hole;
    place_[number] = kNone;
    fds_.pop_back();
    generations_.pop_back();
  }

  std::vector<pollfd> fds_;
  std::vector<std::uint32_t> generations_;  // Of fds_, entry by entry.
  std::vector<std::uint32_t> place_;        // By descriptor: its index in fds_.
};

}  // namespace

std::unique_ptr<Backend> make_poll() { return std::make_unique<Poll>(); }

}  // namespace spate
