// kqueue, level-triggered: the queue of the BSDs and of macOS. Each direction of a descriptor is an
// entry of the queue; both are reported in one.
#include "backend/registry.h"

#ifdef SPATE_HAS_KQUEUE

#include <cerrno>
#include <climits>
#include <iterator>
#include <new>

#include "sys/kqueue.h"
#include "sys/poll.h"
#include "sys/process.h"

namespace spate {

namespace {

struct Filter {
  decltype(kevent::filter) name;
  Events events;  // It serves these.
};
constexpr Filter kFilters[] = {
    {EVFILT_READ, Events::read | Events::peer_closed},
    {EVFILT_WRITE, Events::write},
#ifdef EVFILT_EXCEPT
    {EVFILT_EXCEPT, Events::urgent},
#endif
};
constexpr std::size_t kFilterCount = std::size(kFilters);
constexpr Events kServed = Events::read | Events::peer_closed | Events::write |
                           (kFilterCount > 2 ? Events::urgent : Events::none);

struct kevent removal(int fd, const Filter& filter) {
  struct kevent change{};
  change.ident = static_cast<std::uintptr_t>(fd);
  change.filter = filter.name;
  change.flags = EV_DELETE | EV_RECEIPT;
  return change;
}

// Adding an entry that exists replaces its generation and its options.
struct kevent addition(int fd, const Filter& filter, Events events, std::uint32_t generation) {
  struct kevent change = removal(fd, filter);
  change.flags = EV_ADD | EV_RECEIPT;
  change.udata = reinterpret_cast<void*>(std::uintptr_t{generation});
  if (filter.name == EVFILT_READ && !any(events & Events::read)) {
    // The end alone is wanted: no amount of data is enough.
    change.fflags = NOTE_LOWAT;
    change.data = INT_MAX;
  }
#ifdef EVFILT_EXCEPT
  if (filter.name == EVFILT_EXCEPT) change.fflags = NOTE_OOB;
#endif
  return change;
}

// EVFILT_READ would report a file until its end, which is not what poll() calls readable.
bool has_readiness(long type) { return type != S_IFREG && type != S_IFDIR && type != S_IFBLK; }

// Returns whether a descriptor that the queue refuses never blocks: /dev/null on some systems, and
// a pipe whose other end is closed.
bool is_always_ready(long type, long error) {
  if (type == S_IFIFO) return error == -EPIPE || error == -EBADF;
  return type == S_IFCHR && error != -ENOMEM;
}

// For a descriptor whose output has ended: returns whether its input has, too. Some kernels report
// POLLHUP for the end of a requested direction, the others when both have ended.
bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return sys::poll(&entry, 1, Nanos{0}) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

// EV_EOF is the end of one direction, which is not an error. With the socket's error, it is the end
// of both. Output also ends by the program's own shutdown(), which is no hang-up.
Events events_of(const struct kevent& event) {
  const bool has_ended = (event.flags & EV_EOF) != 0;
  if (has_ended && event.fflags != 0) return kHungUp;
  switch (event.filter) {
    case EVFILT_READ:
      return has_ended ? Events::read | Events::peer_closed : Events::read;
    case EVFILT_WRITE:
      return has_ended && is_hung_up(static_cast<int>(event.ident)) ? kHungUp : Events::write;
    default:
      return Events::urgent;
  }
}

class Kqueue final : public Backend {
 public:
  ~Kqueue() override { leave_queue_to_parent(); }
  std::string_view name() const override { return "kqueue"; }
  Result<int> poll_fd() override { return queue_.get(); }

  long modify(int fd, Events before, Events after, std::uint32_t generation) override {
    if (!any(after)) {
      remove(fd, before);
      return 0;
    }
    if (any(after & kIoEvents & ~kServed)) return -EOPNOTSUPP;
    const long type = sys::file_type(fd);
    if (type < 0) return type;
    if (!has_readiness(type)) return -EPERM;
    if (!make_place(static_cast<std::size_t>(fd))) return -ENOMEM;
    const long error = change(fd, before, after, generation);
    if (error == 0) return 0;
    remove(fd, before | after);  // One direction may have been accepted.
    return is_always_ready(type, error) ? -EPERM : error;
  }

  void closing(int, Events) override {}  // The kernel removes a number that is closed.

  long wait(Nanos timeout, ReadyList& ready) override {
    const std::size_t room = room_for(buffer_.size(), ready);
    long count = wait_for(timeout, room);
    if (count == -EINTR) count = wait_for(Nanos{0}, room);
    if (count < 0) return count == -EINTR ? 0 : count;
    for (long i = 0; i < count; ++i) report(buffer_[static_cast<std::size_t>(i)], ready);
    return 0;
  }

  std::error_code reopen() override {
    leave_queue_to_parent();
    if (buffer_.empty() && !buffer_.grow_with_zeros(kBatch)) return sys::error_code(-ENOMEM);
    const long fd = sys::kqueue_create();
    if (fd < 0) return sys::error_code(fd);
    queue_ = sys::Descriptor(fd);
    fork_generation_ = sys::fork_generation();
    return {};
  }

  // An outer loop may wait on the queue, so it stays, and is emptied.
  std::error_code start_over() override {
    for (std::size_t fd = 0; fd < places_.size(); ++fd) remove(static_cast<int>(fd), kServed);
    return {};
  }

 private:
  static constexpr std::size_t kBatch = 256;

  // The child of a fork does not inherit a queue. There its number is free, or another file's.
  void leave_queue_to_parent() {
    if (fork_generation_ != sys::fork_generation()) queue_.release();
  }

  // Adds also what `before` has: the number may be another file's, which has no entries.
  long change(int fd, Events before, Events after, std::uint32_t generation) {
    struct kevent changes[kFilterCount];
    int count = 0;
    for (const Filter& filter : kFilters) {
      if (any(after & filter.events)) {
        changes[count++] = addition(fd, filter, after, generation);
      } else if (any(before & filter.events)) {
        changes[count++] = removal(fd, filter);
      }
    }
    return change(changes, count);
  }

  void remove(int fd, Events events) { change(fd, events, Events::none, 0); }

  // Returns the first refusal. ENOENT is the result of a removal after the number was closed.
  long change(struct kevent* changes, int count) {
    ++calls_.modify;
    const long results = sys::kevent_change(queue_.get(), changes, count);
    if (results < 0) return results;
    for (const struct kevent* result = changes; result != changes + results; ++result) {
      if (result->data != 0 && result->data != ENOENT) return -static_cast<long>(result->data);
    }
    return 0;
  }

  long wait_for(Nanos timeout, std::size_t room) {
    ++calls_.wait;
    return sys::kevent_wait(queue_.get(), buffer_.begin(), static_cast<int>(room), timeout);
  }

  bool make_place(std::size_t number) {
    return number < places_.size() || places_.grow_with_zeros(number + 1);
  }

  // A place is valid if the list has the descriptor there, so places are never cleared.
  void report(const struct kevent& event, ReadyList& ready) {
    const int fd = static_cast<int>(event.ident);
    std::uint32_t& place = places_[event.ident];
    const Events events = events_of(event);
    if (place < ready.size() && ready[place].fd == fd) {
      ready[place].events |= events;
      return;
    }
    place = static_cast<std::uint32_t>(ready.size());
    const auto generation =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(event.udata));
    ready.push_reserved({.fd = fd, .generation = generation, .events = events, .error = 0});
  }

  sys::Descriptor queue_;
  std::uint32_t fork_generation_ = 0;
  Array<struct kevent> buffer_;
  Array<std::uint32_t> places_;  // By descriptor: where the last wait reported it.
};

}  // namespace

std::unique_ptr<Backend> make_kqueue() {
  return std::unique_ptr<Backend>(new (std::nothrow) Kqueue);
}

}  // namespace spate

#endif
