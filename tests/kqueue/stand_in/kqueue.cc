// kqueue on Linux, for tests. A queue is an epoll set, so that other sets and poll() can wait for
// it. Each number is registered for one report, and again after it: this fails if the number was
// closed since, and an entry that remains through a duplicate of the file is not reported again.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace {

using std::chrono::nanoseconds;

nanoseconds now() {
  timespec spec{};
  ::clock_gettime(CLOCK_MONOTONIC, &spec);
  return std::chrono::seconds{spec.tv_sec} + nanoseconds{spec.tv_nsec};
}

// A knote: the registration of one filter of a number.
struct Knote {
  struct kevent change;
  bool is_enabled = true;
};

struct Watched {
  std::uint32_t serial;
  mode_t type;
  int kind;  // SOCK_STREAM, for example; zero unless it is a socket.
  std::map<std::int16_t, Knote> knotes;
};

bool is_closed(int fd) { return ::fcntl(fd, F_GETFD) < 0; }

Watched looked_at(int fd, std::uint32_t serial) {
  struct stat status{};
  ::fstat(fd, &status);
  int kind = 0;
  socklen_t size = sizeof(kind);
  ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size);
  return {serial, status.st_mode & S_IFMT, kind, {}};
}

// An empty message has no effect on a stream, and fails after shutdown(SHUT_WR). A socket of
// packets would send an empty packet.
bool has_shut_down(int fd) {
  return ::send(fd, nullptr, 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE;
}

bool is_half_closed_pipe(int fd) {
  pollfd entry{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

std::uint32_t mask_of(const Watched& watched) {
  std::uint32_t mask = EPOLLONESHOT;
  for (const auto& [filter, knote] : watched.knotes) {
    if (!knote.is_enabled) continue;
    if (filter == EVFILT_READ) mask |= EPOLLRDHUP;
    if (filter == EVFILT_READ && (knote.change.fflags & NOTE_LOWAT) == 0) mask |= EPOLLIN;
    if (filter == EVFILT_WRITE) mask |= EPOLLOUT;
    if (filter == EVFILT_EXCEPT) mask |= EPOLLPRI;
  }
  return mask;
}

class Queue {
 public:
  explicit Queue(int set) : set_(set) {}

  // Returns 0 or an errno.
  int apply(const struct kevent& change) {
    const int fd = static_cast<int>(change.ident);
    if (is_closed(fd)) return EBADF;
    forget_if_closed(fd);
    if ((change.flags & ~(EV_ADD | EV_DELETE | EV_ENABLE | EV_DISABLE | EV_RECEIPT)) != 0)
      return EINVAL;
    if ((change.flags & EV_ADD) != 0) return add(fd, change);
    return alter(fd, change);
  }

  // Waits for a report, at most until `end`, and writes at most `room`. Returns how many, or -1.
  int wait(struct kevent* events, int room, std::optional<nanoseconds> end) {
    for (;;) {
      const nanoseconds rest = end ? std::max(*end - now(), nanoseconds{0}) : nanoseconds::max();
      const int count = look(events, room, rest);
      if (count != 0 || rest == nanoseconds{0}) return count;
    }
  }

 private:
  static constexpr int kBatch = 256;

  int add(int fd, const struct kevent& change) {
    const auto found = watched_.find(fd);
    Watched watched = found != watched_.end() ? found->second : looked_at(fd, ++serials_);
    const bool is_new = !watched.knotes.contains(change.filter);
    if (const int error = is_new ? refusal(fd, watched, change) : 0) return error;
    if (watched.type == S_IFREG || watched.type == S_IFDIR) return 0;  // Reports are not modelled.
    watched.knotes[change.filter] = {change, (change.flags & EV_DISABLE) == 0};
    if (!watch(fd, watched)) return errno == EPERM ? EINVAL : errno;
    watched_[fd] = watched;
    return 0;
  }

  static int refusal(int fd, const Watched& watched, const struct kevent& change) {
    switch (change.filter) {
      case EVFILT_READ:
        return 0;
      case EVFILT_WRITE:
        if (watched.type == S_IFREG || watched.type == S_IFDIR) return EINVAL;
        return watched.type == S_IFIFO && is_half_closed_pipe(fd) ? EPIPE : 0;
      case EVFILT_EXCEPT:
        return change.fflags == NOTE_OOB && watched.type == S_IFSOCK ? 0 : EINVAL;
      default:
        return EINVAL;
    }
  }

  int alter(int fd, const struct kevent& change) {
    const auto found = watched_.find(fd);
    if (found == watched_.end() || !found->second.knotes.contains(change.filter)) return ENOENT;
    Watched& watched = found->second;
    if ((change.flags & EV_DELETE) != 0) {
      watched.knotes.erase(change.filter);
    } else {
      watched.knotes[change.filter].is_enabled = (change.flags & EV_DISABLE) == 0;
    }
    const bool is_last = watched.knotes.empty();
    control(is_last ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, watched);
    if (is_last) watched_.erase(found);
    return 0;
  }

  // The set may still have the number, if it was closed and is a duplicate of the same file again.
  bool watch(int fd, const Watched& watched) const {
    return control(EPOLL_CTL_MOD, fd, watched) ||
           (errno == ENOENT && control(EPOLL_CTL_ADD, fd, watched));
  }

  // Registers a number for its next report. False if it refers to another file than the one that is
  // registered, or to none.
  bool control(int operation, int fd, const Watched& watched) const {
    epoll_event entry{.events = mask_of(watched), .data = {}};
    entry.data.u64 = std::uint64_t{watched.serial} << 32 | static_cast<std::uint32_t>(fd);
    return ::epoll_ctl(set_, operation, fd, &entry) == 0;
  }

  void forget_if_closed(int fd) {
    const auto found = watched_.find(fd);
    if (found != watched_.end() && !control(EPOLL_CTL_MOD, fd, found->second))
      watched_.erase(found);
  }

  int look(struct kevent* events, int room, nanoseconds timeout) {
    const timespec spec{.tv_sec = std::chrono::floor<std::chrono::seconds>(timeout).count(),
                        .tv_nsec = (timeout % std::chrono::seconds{1}).count()};
    epoll_event found[kBatch];
    const bool is_forever = timeout == nanoseconds::max();
    const int count =
        ::epoll_pwait2(set_, found, std::min(room, kBatch), is_forever ? nullptr : &spec, nullptr);
    if (count < 0) return count;
    int reported = 0;
    for (const epoll_event& event : std::span(found, static_cast<std::size_t>(count))) {
      reported += report(event, events + reported, room - reported);
    }
    return reported;
  }

  int report(const epoll_event& event, struct kevent* events, int room) {
    const int fd = static_cast<int>(event.data.u64 & 0xffffffff);
    const auto entry = watched_.find(fd);
    if (entry == watched_.end() || entry->second.serial != event.data.u64 >> 32) return 0;
    int count = 0;
    for (const auto& [filter, knote] : entry->second.knotes) {
      if (!knote.is_enabled) continue;
      struct kevent result = knote.change;
      result.flags = 0;
      result.fflags = 0;
      result.data = 0;
      if (!is_active(fd, entry->second, knote, event.events, result)) continue;
      if (count < room) events[count] = result;
      ++count;
    }
    // Without an active knote it has ended, which no knote reports: it would be found each time.
    if (count == 0) return 0;
    if (control(EPOLL_CTL_MOD, fd, entry->second)) return std::min(count, room);
    watched_.erase(entry);
    return 0;
  }

  static bool is_active(int fd, const Watched& watched, const Knote& knote, std::uint32_t found,
                        struct kevent& result) {
    const bool is_socket = watched.type == S_IFSOCK;
    const bool can_end =
        watched.kind == SOCK_STREAM || watched.kind == SOCK_SEQPACKET || watched.type == S_IFIFO;
    bool has_ended = can_end && (found & (EPOLLHUP | EPOLLERR)) != 0;
    switch (knote.change.filter) {
      case EVFILT_READ:
        has_ended = has_ended || (found & (EPOLLHUP | EPOLLRDHUP)) != 0;
        break;
      case EVFILT_WRITE:
        has_ended = has_ended || (watched.kind == SOCK_STREAM && (found & EPOLLOUT) != 0 &&
                                  (found & EPOLLERR) == 0 && has_shut_down(fd));
        break;
      default:
        return (found & EPOLLPRI) != 0;
    }
    if (has_ended) result.flags |= EV_EOF;
    // Linux returns a socket's error once, to the program.
    if (has_ended && is_socket && (found & EPOLLERR) != 0) result.fflags = ECONNRESET;
    if (knote.change.filter == EVFILT_WRITE)
      return has_ended || (found & (EPOLLOUT | EPOLLERR)) != 0;
    result.data = 1;  // The count is not modelled.
    const bool is_enough = (knote.change.fflags & NOTE_LOWAT) == 0 && (found & EPOLLIN) != 0;
    return has_ended || is_enough || (found & EPOLLERR) != 0;
  }

  int set_;
  std::uint32_t serials_ = 0;
  std::map<int, Watched> watched_;
};

// The queues of the process by number. A number that was closed keeps its Queue until it is a
// queue's again.
struct Queues {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Queue>> by_number;
};
Queues& queues() {
  static auto* const queues = new Queues;
  return *queues;
}

// Distinguishes a queue from another file that has the number of a closed one.
constexpr int kMark = SIGPWR;
bool is_marked(int fd) { return ::fcntl(fd, F_GETSIG) == kMark; }

// A child inherits no queue: their numbers are free.
void close_queues() {
  for (const auto& [number, queue] : queues().by_number) {
    if (is_marked(number)) ::close(number);
  }
  queues().by_number.clear();
  queues().mutex.unlock();
}

Queue* queue_of(int number) {
  const std::lock_guard lock(queues().mutex);
  const auto found = queues().by_number.find(number);
  return found != queues().by_number.end() && is_marked(number) ? found->second.get() : nullptr;
}

std::optional<nanoseconds> end_of(const timespec* timeout) {
  if (timeout == nullptr) return std::nullopt;
  return now() + std::chrono::seconds{timeout->tv_sec} + nanoseconds{timeout->tv_nsec};
}

int failed_with(int error) {
  errno = error;
  return -1;
}

// A queue is known by its number. So its number is none of the standard ones, from which the caller
// would move it.
int epoll_set() {
  constexpr int kLowest = 3;
  const int set = ::epoll_create1(0);
  if (set < 0 || set >= kLowest) return set;
  const int moved = ::fcntl(set, F_DUPFD, kLowest);
  ::close(set);
  return moved;
}

}  // namespace

int kqueue() {
  static const int registered = ::pthread_atfork([] { queues().mutex.lock(); },
                                                 [] { queues().mutex.unlock(); }, close_queues);
  if (registered != 0) return failed_with(ENOMEM);
  const int set = epoll_set();
  if (set < 0) return set;
  ::fcntl(set, F_SETSIG, kMark);
  const std::lock_guard lock(queues().mutex);
  queues().by_number[set] = std::make_unique<Queue>(set);
  return set;
}

int kevent(int number, const struct kevent* changes, int change_count, struct kevent* events,
           int event_count, const timespec* timeout) {
  Queue* const queue = queue_of(number);
  if (queue == nullptr) return failed_with(EBADF);
  int results = 0;
  for (int i = 0; i < change_count; ++i) {
    struct kevent result = changes[i];  // The results may be written over the changes.
    const int error = queue->apply(result);
    if (error == 0 && (result.flags & EV_RECEIPT) == 0) continue;
    if (results == event_count) return failed_with(error);
    result.flags = EV_ERROR;
    result.data = error;
    events[results++] = result;
  }
  if (results > 0 || event_count == 0) return results;
  return queue->wait(events, event_count, end_of(timeout));
}
