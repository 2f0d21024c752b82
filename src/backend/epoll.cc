#include "backend/epoll.h"

#include <cerrno>
#include <iterator>
#include <new>

#include "backend/registry.h"
#include "sys/clock.h"

namespace spate {

namespace {

constexpr std::uint32_t mask_of(Events events) {
  std::uint32_t mask = 0;
  if (any(events & Events::read)) mask |= EPOLLIN;
  if (any(events & Events::write)) mask |= EPOLLOUT;
  if (any(events & Events::urgent)) mask |= EPOLLPRI;
  if (any(events & Events::peer_closed)) mask |= EPOLLRDHUP;
  if (any(events & kEdge)) mask |= EPOLLET;
  return mask;
}

constexpr Events from_epoll(std::uint32_t mask) {
  Events events = Events::none;
  if (mask & EPOLLIN) events |= Events::read;
  if (mask & EPOLLOUT) events |= Events::write;
  if (mask & EPOLLPRI) events |= Events::urgent;
  if (mask & EPOLLRDHUP) events |= Events::peer_closed;
  if (mask & (EPOLLERR | EPOLLHUP)) events |= kHungUp;
  return events;
}

// A lookup table covers nearly all events that occur, and all that can be requested.
constexpr std::uint32_t kPlainMasks = 8;
static_assert((EPOLLIN | EPOLLPRI | EPOLLOUT) < kPlainMasks);

struct Tables {
  constexpr Tables() {
    for (std::uint32_t mask = 0; mask < kPlainMasks; ++mask) events[mask] = from_epoll(mask);
    for (std::uint32_t wish = 0; wish < std::size(masks); ++wish)
      masks[wish] = mask_of(static_cast<Events>(wish));
  }
  Events events[kPlainMasks] = {};
  std::uint32_t masks[2 * static_cast<std::uint32_t>(kEdge)] = {};
};
constexpr Tables kTables;

// Returns the kernel's entry for a descriptor; its data is returned with each event.
epoll_event entry_of(int fd, Events events, std::uint32_t generation) {
  const std::uint64_t cookie = std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
  return {.events = kTables.masks[static_cast<std::uint32_t>(events)], .data = {.u64 = cookie}};
}
int fd_of(const epoll_event& entry) { return static_cast<int>(entry.data.u64 & 0xffffffffu); }

}  // namespace

Result<int> Epoll::poll_fd() {
  if (!around_.is_open()) {
    if (const std::error_code error = surround()) return std::unexpected(error);
  }
  return around_.get();
}

long Epoll::modify(int fd, Events before, Events after, std::uint32_t generation) {
  epoll_event entry = entry_of(fd, after, generation);
  if (!any(after)) {
    control(EPOLL_CTL_DEL, fd, entry);  // Fails if the file was closed already, which removed it.
    return 0;
  }
  // Adding the same file again fails, which is cheaper than changing it to the same events.
  const bool is_new = before == after && !any(after & kEdge);
  const int operation = any(before) && !is_new ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  const long result = control(operation, fd, entry);
  return result >= 0 || is_new ? result : correct(result, entry);
}

long Epoll::wait(Nanos timeout, ReadyList& ready) {
  const std::size_t room = room_for(buffer_.size(), ready);
  long count = wait_for(timeout, room);
  if (count < 0) {
    count = look_after(count, room);
    if (count < 0) return count;
  }
  Ready* to = ready.end();
  for (const epoll_event* event = buffer_.begin(); event != buffer_.begin() + count; ++event) {
    *to++ = {.fd = fd_of(*event),
             .generation = static_cast<std::uint32_t>(event->data.u64 >> 32),
             .events = event->events < kPlainMasks ? kTables.events[event->events]
                                                   : from_epoll(event->events),
             .error = 0};
  }
  ready.grow_reserved(static_cast<std::size_t>(count));
  if (static_cast<std::size_t>(count) == buffer_.size()) make_larger_batches();
  return 0;
}

std::error_code Epoll::reopen() {
  around_ = sys::Descriptor();
  return start_over();
}

std::error_code Epoll::start_over() {
  if (buffer_.empty() && !buffer_.grow_with_zeros(kFirstBatch)) return sys::error_code(-ENOMEM);
  const long fd = sys::epoll_create();
  if (fd < 0) return sys::error_code(fd);
  epoll_ = sys::Descriptor(fd);
  return around_.is_open() ? put_into(around_) : std::error_code();
}

std::error_code Epoll::surround() {
  const long fd = sys::epoll_create();
  if (fd < 0) return sys::error_code(fd);
  sys::Descriptor around(fd);
  if (const std::error_code error = put_into(around)) return error;
  around_ = std::move(around);
  return {};
}

std::error_code Epoll::put_into(const sys::Descriptor& around) {
  epoll_event entry{.events = EPOLLIN, .data = {}};
  return sys::error_code(sys::epoll_ctl(around.get(), EPOLL_CTL_ADD, epoll_.get(), entry));
}

long Epoll::control(int operation, int fd, epoll_event& entry) {
  ++calls_.modify;
  return sys::epoll_ctl(epoll_.get(), operation, fd, entry);
}

long Epoll::wait_for(Nanos timeout, std::size_t room) {
  ++calls_.wait;
  const int capacity = static_cast<int>(room);
  if (timeout >= kForever) return sys::epoll_wait(epoll_.get(), buffer_.begin(), capacity, -1);
  if (timeout <= Nanos{0}) return sys::epoll_wait(epoll_.get(), buffer_.begin(), capacity, 0);
  return wait_until(timeout, capacity);
}

[[gnu::noinline]] long Epoll::wait_until(Nanos timeout, int capacity) {
  if (precise_) {
    const long count = sys::epoll_wait_precise(epoll_.get(), buffer_.begin(), capacity, timeout);
    if (count != -ENOSYS && count != -EPERM) return count;
    precise_ = false;  // An older kernel, or a sandbox that predates the call.
  }
  return sys::epoll_wait(epoll_.get(), buffer_.begin(), capacity, sys::to_milliseconds(timeout));
}

// The number was closed and reopened, or is in the set through a duplicate, so the other operation
// applies. Only MOD reports a missing entry, and only ADD reports an existing one.
[[gnu::noinline]] long Epoll::correct(long result, epoll_event& entry) {
  if (result == -ENOENT) return control(EPOLL_CTL_ADD, fd_of(entry), entry);
  if (result == -EEXIST) return control(EPOLL_CTL_MOD, fd_of(entry), entry);
  return result;
}

// Handles a failed wait. After an interruption, checks again without waiting.
[[gnu::noinline]] long Epoll::look_after(long error, std::size_t room) {
  const long count = error == -EINTR ? wait_for(Nanos{0}, room) : error;
  return count == -EINTR ? 0 : count;
}

// When memory runs out, the batches stay smaller.
[[gnu::noinline]] void Epoll::make_larger_batches() {
  if (buffer_.size() < kMaxBatch) buffer_.grow_with_zeros(buffer_.size() * 2);
}

std::unique_ptr<Backend> make_epoll() { return std::unique_ptr<Backend>(new (std::nothrow) Epoll); }

}  // namespace spate
