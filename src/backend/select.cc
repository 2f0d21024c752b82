// select: three bit sets, and no descriptor from FD_SETSIZE on.
#include <cerrno>
#include <new>

#include "backend/registry.h"
#include "spate/error.h"
#include "sys/poll.h"

namespace spate {

namespace {

class Select final : public Backend {
 public:
  std::string_view name() const override { return "select"; }

  // select cannot report Events::peer_closed by itself: it is reported with read, since a
  // half-closed peer makes the descriptor readable.
  long modify(int fd, Events, Events after, std::uint32_t generation) override {
    if (fd >= FD_SETSIZE) return any(after) ? kOutOfRange : 0;
    // One closed descriptor would make select() fail for all of them.
    if (any(after) && !sys::is_open(fd)) return -EBADF;
    wanted_[fd] = after;
    generations_[fd] = generation;
    if (any(after) && fd >= end_) end_ = fd + 1;
    while (end_ > 0 && !any(wanted_[end_ - 1])) --end_;
    return 0;
  }

  long wait(Nanos timeout, ReadyList& ready) override {
    const std::size_t max = ready.size() + room_for(static_cast<std::size_t>(end_), ready);
    long count = wait_for(timeout);
    if (count == -EINTR) count = wait_for(Nanos{0});
    if (count == -EBADF) return report_closed(ready, max);
    if (count < 0) return count == -EINTR ? 0 : count;
    if (count > 0) report_ready(ready, max);
    return 0;
  }

  std::error_code reopen() override {
    for (Events& wanted : wanted_) wanted = Events::none;
    end_ = 0;
    return {};
  }

 private:
  long wait_for(Nanos timeout) {
    ++calls_.wait;
    fill_sets();
    return sys::select(end_, &read_, &write_, &except_, timeout);
  }

  void fill_sets() {
    FD_ZERO(&read_);
    FD_ZERO(&write_);
    FD_ZERO(&except_);
    for (int fd = 0; fd < end_; ++fd) {
      if (any(wanted_[fd] & (Events::read | Events::peer_closed))) FD_SET(fd, &read_);
      if (any(wanted_[fd] & Events::write)) FD_SET(fd, &write_);
      if (any(wanted_[fd] & Events::urgent)) FD_SET(fd, &except_);
    }
  }

  // Begins with another descriptor each time, as poll does.
  void report_ready(ReadyList& ready, std::size_t max) {
    first_ = first_ + 1 < end_ ? first_ + 1 : 0;
    for (int i = 0; i < end_ && ready.size() < max; ++i) {
      const int fd = first_ + i < end_ ? first_ + i : first_ + i - end_;
      const Events events = events_of(fd);
      if (any(events)) ready.push_reserved({fd, generations_[fd], events, 0});
    }
  }

  Events events_of(int fd) const {
    Events events = Events::none;
    if (FD_ISSET(fd, &read_)) events |= wanted_[fd] & (Events::read | beyond_readable(fd));
    if (FD_ISSET(fd, &write_)) events |= Events::write;
    if (FD_ISSET(fd, &except_)) events |= Events::urgent;
    return events;
  }

  // "Readable" may also mean a hang-up or a half-close. For the few descriptors that want these
  // events, poll() distinguishes them.
  Events beyond_readable(int fd) const {
    if (!any(wanted_[fd] & (Events::write | Events::peer_closed))) return Events::none;
    pollfd entry{.fd = fd, .events = sys::kPollPeerClosed, .revents = 0};
    if (sys::poll(&entry, 1, Nanos{0}) <= 0) return Events::none;
    return entry.revents & (POLLERR | POLLHUP) ? kHungUp : Events::peer_closed;
  }

  // select does not report which descriptor is invalid.
  long report_closed(ReadyList& ready, std::size_t max) const {
    for (int fd = 0; fd < end_ && ready.size() < max; ++fd) {
      if (any(wanted_[fd]) && !sys::is_open(fd))
        ready.push_reserved({fd, generations_[fd], Events::none, EBADF});
    }
    return 0;
  }

  Events wanted_[FD_SETSIZE] = {};
  std::uint32_t generations_[FD_SETSIZE] = {};
  int end_ = 0;    // One beyond the highest descriptor wanted.
  int first_ = 0;  // Where the last report began.
  fd_set read_;
  fd_set write_;
  fd_set except_;
};

}  // namespace

std::unique_ptr<Backend> make_select() {
  return std::unique_ptr<Backend>(new (std::nothrow) Select);
}

}  // namespace spate
