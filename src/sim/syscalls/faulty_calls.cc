// The system calls that can be made to fail (calls.txt). Without a fault each calls the function of
// the same name in calls.cc.

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "sim/syscalls/real_faults.h"
#include "sim/syscalls/simulation.h"

extern "C" int spate_sim_getsockopt(int fd, int level, int name, void* value, socklen_t* size);

namespace spate::sim {

namespace {

using Verdict = CallFaults::Verdict;

// Uses the faults of the World, or of the process where there is no World.
Verdict fault_of(Call call) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) {
    CallFaults* faults = faults_of_process();
    return faults == nullptr ? Verdict{} : faults->decide(call);
  }
  if (simulation->call_faults == nullptr || simulation->host == Kernel::kNoHost) return {};
  const Verdict verdict = simulation->call_faults->decide(call);
  const Event fault{.kind = EventKind::failed,
                    .from = simulation->host,
                    .what = name_of(call),
                    .text = std::string(name_of_error(verdict.error))};
  return verdict && simulation->injects(fault) ? verdict : Verdict{};
}

// Calls `go`, unless the call must fail.
template <class Go>
auto unless_failed(Call call, Go go) -> decltype(go()) {
  const Verdict verdict = fault_of(call);
  if (verdict.error == 0) return go();
  errno = verdict.error;
  return -1;
}

// Calls `go` with the part of `size` that it may move.
template <class Go>
auto with_less(Call call, std::size_t size, Go go) -> decltype(go(size)) {
  const Verdict verdict = fault_of(call);
  if (verdict.error == 0) return go(verdict.shortened(size));
  errno = verdict.error;
  return -1;
}

// Packets are never moved in part.
bool is_of_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return spate_sim_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

std::size_t shortened(const Verdict& verdict, int fd, std::size_t size) {
  return verdict.drawn && is_of_stream(fd) ? verdict.shortened(size) : size;
}

// Counters are never read or written in part.
constexpr std::size_t kCounter = 8;

std::size_t size_of(const iovec* pieces, std::size_t count) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) size += pieces[i].iov_len;
  return size;
}

// Returns pieces for the first `size` bytes.
std::vector<iovec> first_of(const iovec* pieces, std::size_t count, std::size_t size) {
  std::vector<iovec> first;
  for (std::size_t i = 0; i < count && size != 0; ++i) {
    first.push_back(pieces[i]);
    first.back().iov_len = std::min(size, pieces[i].iov_len);
    size -= first.back().iov_len;
  }
  return first;
}

// Calls `go` with a message shortened to the bytes that may be moved.
template <class Message, class Go>
ssize_t with_less_of(Call call, int fd, Message& message, Go go) {
  const Verdict verdict = fault_of(call);
  if (verdict.error != 0) return errno = verdict.error, -1;
  const std::size_t whole = size_of(message.msg_iov, message.msg_iovlen);
  const std::size_t size = shortened(verdict, fd, whole);
  if (size == whole) return go(message);
  std::vector<iovec> pieces = first_of(message.msg_iov, message.msg_iovlen, size);
  msghdr less = message;
  less.msg_iov = pieces.data();
  less.msg_iovlen = pieces.size();
  return go(less);
}

// Calls `go` with the pieces of a file that may be moved.
template <class Go>
ssize_t with_fewer(Call call, const iovec* pieces, int count, Go go) {
  const auto number = static_cast<std::size_t>(count);
  return with_less(call, size_of(pieces, number), [&](std::size_t less) {
    const std::vector<iovec> first = first_of(pieces, number, less);
    return go(first.data(), static_cast<int>(first.size()));
  });
}

}  // namespace

}  // namespace spate::sim

namespace sim = spate::sim;
using sim::Call;

extern "C" {

// ---- defined in calls.cc

int spate_sim_accept4(int fd, sockaddr* peer, socklen_t* size, int flags);
int spate_sim_bind(int fd, const sockaddr* address, socklen_t size);
int spate_sim_connect(int fd, const sockaddr* address, socklen_t size);
int spate_sim_epoll_create1(int flags);
int spate_sim_epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
int spate_sim_epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms);
int spate_sim_epoll_pwait2(int epoll, epoll_event* events, int capacity, const timespec* timeout,
                           const sigset_t* mask);
int spate_sim_fsync(int fd);
int spate_sim_openat(int directory, const char* path, int flags, ...);
ssize_t spate_sim_preadv(int fd, const iovec* pieces, int count, off_t offset);
ssize_t spate_sim_pwritev(int fd, const iovec* pieces, int count, off_t offset);
int spate_sim_rename(const char* from, const char* to);
int spate_sim_eventfd(unsigned count, int flags);
ssize_t spate_sim_getrandom(void* data, std::size_t size, unsigned flags);
int spate_sim_listen(int fd, int backlog);
int spate_sim_open(const char* path, int flags, ...);
int spate_sim_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask);
int spate_sim_pselect(int end, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
                      const sigset_t* mask);
int spate_sim_posix_spawnp(pid_t* process, const char* file,
                           const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const* arguments,
                           char* const* environment);
int spate_sim_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                             void* (*body)(void*), void* argument);
ssize_t spate_sim_read(int fd, void* data, std::size_t size);
ssize_t spate_sim_recv(int fd, void* data, std::size_t size, int flags);
ssize_t spate_sim_recvmsg(int fd, msghdr* message, int flags);
int spate_sim_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
ssize_t spate_sim_send(int fd, const void* data, std::size_t size, int flags);
ssize_t spate_sim_sendto(int fd, const void* data, std::size_t size, int flags,
                         const sockaddr* peer, socklen_t peer_size);
ssize_t spate_sim_sendmsg(int fd, const msghdr* message, int flags);
int spate_sim_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags);
ssize_t spate_sim_sendfile(int fd, int file, off_t* offset, std::size_t size);
int spate_sim_setsockopt(int fd, int level, int name, const void* value, socklen_t size);
int spate_sim_shutdown(int fd, int how);
int spate_sim_socket(int family, int type, int protocol);
int spate_sim_socketpair(int family, int type, int protocol, int* fds);
int spate_sim_timerfd_create(int clock, int flags);
int spate_sim_timerfd_settime(int fd, int flags, const itimerspec* time, itimerspec* before);
ssize_t spate_sim_write(int fd, const void* data, std::size_t size);
ssize_t spate_sim_writev(int fd, const iovec* pieces, int count);

// ---- any descriptor

ssize_t spate_faulty_read(int fd, void* data, std::size_t size) {
  return sim::with_less(Call::read, size, [&](std::size_t less) {
    return spate_sim_read(fd, data, size == sim::kCounter ? size : less);
  });
}

ssize_t spate_faulty_write(int fd, const void* data, std::size_t size) {
  return sim::with_less(Call::write, size, [&](std::size_t less) {
    return spate_sim_write(fd, data, size == sim::kCounter ? size : less);
  });
}

ssize_t spate_faulty_writev(int fd, const iovec* pieces, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = static_cast<std::size_t>(count);
  return sim::with_less_of(Call::write, fd, message, [&](const msghdr& less) {
    return spate_sim_writev(fd, less.msg_iov, static_cast<int>(less.msg_iovlen));
  });
}

int spate_faulty_open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return sim::unless_failed(Call::open, [&] { return spate_sim_open(path, flags, mode); });
}

// ---- files

int spate_faulty_openat(int directory, const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return sim::unless_failed(Call::open,
                            [&] { return spate_sim_openat(directory, path, flags, mode); });
}

ssize_t spate_faulty_preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return sim::with_fewer(Call::read, pieces, count, [&](const iovec* first, int fewer) {
    return spate_sim_preadv(fd, first, fewer, offset);
  });
}

ssize_t spate_faulty_pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return sim::with_fewer(Call::write, pieces, count, [&](const iovec* first, int fewer) {
    return spate_sim_pwritev(fd, first, fewer, offset);
  });
}

int spate_faulty_fsync(int fd) {
  return sim::unless_failed(Call::fsync, [&] { return spate_sim_fsync(fd); });
}

int spate_faulty_rename(const char* from, const char* to) {
  return sim::unless_failed(Call::rename, [&] { return spate_sim_rename(from, to); });
}

// ---- descriptors of the World

int spate_faulty_eventfd(unsigned count, int flags) {
  return sim::unless_failed(Call::eventfd, [&] { return spate_sim_eventfd(count, flags); });
}

int spate_faulty_timerfd_create(int clock, int flags) {
  return sim::unless_failed(Call::timerfd, [&] { return spate_sim_timerfd_create(clock, flags); });
}

int spate_faulty_timerfd_settime(int fd, int flags, const itimerspec* time, itimerspec* before) {
  return sim::unless_failed(Call::timerfd,
                            [&] { return spate_sim_timerfd_settime(fd, flags, time, before); });
}

// ---- waiting

int spate_faulty_epoll_create1(int flags) {
  return sim::unless_failed(Call::epoll_create, [&] { return spate_sim_epoll_create1(flags); });
}

int spate_faulty_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  return sim::unless_failed(Call::epoll_ctl,
                            [&] { return spate_sim_epoll_ctl(epoll, operation, fd, event); });
}

int spate_faulty_epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  return sim::with_less(
      Call::epoll_wait, static_cast<std::size_t>(capacity), [&](std::size_t less) {
        return spate_sim_epoll_wait(epoll, events, static_cast<int>(less), timeout_ms);
      });
}

int spate_faulty_epoll_pwait2(int epoll, epoll_event* events, int capacity, const timespec* timeout,
                              const sigset_t* mask) {
  return sim::with_less(
      Call::epoll_wait, static_cast<std::size_t>(capacity), [&](std::size_t less) {
        return spate_sim_epoll_pwait2(epoll, events, static_cast<int>(less), timeout, mask);
      });
}

int spate_faulty_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return sim::unless_failed(Call::poll, [&] { return spate_sim_ppoll(fds, count, timeout, mask); });
}

int spate_faulty_pselect(int end, fd_set* read, fd_set* write, fd_set* except,
                         const timespec* timeout, const sigset_t* mask) {
  return sim::unless_failed(
      Call::select, [&] { return spate_sim_pselect(end, read, write, except, timeout, mask); });
}

// ---- sockets

int spate_faulty_socket(int family, int type, int protocol) {
  return sim::unless_failed(Call::socket, [&] { return spate_sim_socket(family, type, protocol); });
}

int spate_faulty_socketpair(int family, int type, int protocol, int* fds) {
  return sim::unless_failed(Call::socket,
                            [&] { return spate_sim_socketpair(family, type, protocol, fds); });
}

int spate_faulty_bind(int fd, const sockaddr* address, socklen_t size) {
  return sim::unless_failed(Call::bind, [&] { return spate_sim_bind(fd, address, size); });
}

int spate_faulty_listen(int fd, int backlog) {
  return sim::unless_failed(Call::listen, [&] { return spate_sim_listen(fd, backlog); });
}

int spate_faulty_connect(int fd, const sockaddr* address, socklen_t size) {
  return sim::unless_failed(Call::connect, [&] { return spate_sim_connect(fd, address, size); });
}

int spate_faulty_accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  return sim::unless_failed(Call::accept, [&] { return spate_sim_accept4(fd, peer, size, flags); });
}

ssize_t spate_faulty_recv(int fd, void* data, std::size_t size, int flags) {
  const auto verdict = sim::fault_of(Call::recv);
  if (verdict.error != 0) return errno = verdict.error, -1;
  return spate_sim_recv(fd, data, sim::shortened(verdict, fd, size), flags);
}

ssize_t spate_faulty_recvmsg(int fd, msghdr* message, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return spate_sim_recvmsg(fd, message, flags);
  return sim::with_less_of(Call::recv, fd, *message, [&](msghdr& less) {
    const ssize_t result = spate_sim_recvmsg(fd, &less, flags);
    message->msg_namelen = less.msg_namelen;
    message->msg_controllen = less.msg_controllen;
    message->msg_flags = less.msg_flags;
    return result;
  });
}

int spate_faulty_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  return sim::with_less(Call::recv, count, [&](std::size_t less) {
    return spate_sim_recvmmsg(fd, messages, static_cast<unsigned>(less), flags, timeout);
  });
}

ssize_t spate_faulty_send(int fd, const void* data, std::size_t size, int flags) {
  const auto verdict = sim::fault_of(Call::send);
  if (verdict.error != 0) return errno = verdict.error, -1;
  return spate_sim_send(fd, data, sim::shortened(verdict, fd, size), flags);
}

ssize_t spate_faulty_sendto(int fd, const void* data, std::size_t size, int flags,
                            const sockaddr* peer, socklen_t peer_size) {
  return sim::unless_failed(
      Call::send, [&] { return spate_sim_sendto(fd, data, size, flags, peer, peer_size); });
}

ssize_t spate_faulty_sendmsg(int fd, const msghdr* message, int flags) {
  return sim::with_less_of(Call::send, fd, *message,
                           [&](const msghdr& less) { return spate_sim_sendmsg(fd, &less, flags); });
}

int spate_faulty_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return sim::with_less(Call::send, count, [&](std::size_t less) {
    return spate_sim_sendmmsg(fd, messages, static_cast<unsigned>(less), flags);
  });
}

ssize_t spate_faulty_sendfile(int fd, int file, off_t* offset, std::size_t size) {
  return sim::with_less(Call::sendfile, size, [&](std::size_t less) {
    return spate_sim_sendfile(fd, file, offset, less);
  });
}

int spate_faulty_shutdown(int fd, int how) {
  return sim::unless_failed(Call::shutdown, [&] { return spate_sim_shutdown(fd, how); });
}

int spate_faulty_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  return sim::unless_failed(Call::setsockopt,
                            [&] { return spate_sim_setsockopt(fd, level, name, value, size); });
}

// ---- the rest

ssize_t spate_faulty_getrandom(void* data, std::size_t size, unsigned flags) {
  return sim::unless_failed(Call::getrandom,
                            [&] { return spate_sim_getrandom(data, size, flags); });
}

int spate_faulty_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                void* (*body)(void*), void* argument) {
  if (const auto verdict = sim::fault_of(Call::thread); verdict.error != 0) return verdict.error;
  return spate_sim_pthread_create(thread, attributes, body, argument);
}

int spate_faulty_posix_spawnp(pid_t* process, const char* file,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* arguments,
                              char* const* environment) {
  if (const auto verdict = sim::fault_of(Call::spawn); verdict.error != 0) return verdict.error;
  return spate_sim_posix_spawnp(process, file, actions, attributes, arguments, environment);
}

}  // extern "C"
