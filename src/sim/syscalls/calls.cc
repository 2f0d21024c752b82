// The functions that the library calls instead of the system's (calls.txt). They call the World's
// kernel for its descriptors, and for new objects in a World; otherwise the system.

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>

#include "sim/net/packet_socket.h"
#include "sim/net/stream_socket.h"
#include "sim/syscalls/returned.h"
#include "sim/syscalls/simulation.h"
#include "sim/syscalls/thread_calls.h"
#include "sim/unix/packets.h"
#include "sim/unix/pipe.h"
#include "sim/unix/stream.h"

extern "C" ssize_t spate_sim_pread(int fd, void* data, std::size_t size, off_t offset);
extern "C" int spate_sim_openat(int directory, const char* path, int flags, ...);

namespace spate::sim {

namespace {

std::shared_ptr<File> file_at(int fd) {
  const Kernel* kernel = Kernel::current();
  return kernel == nullptr ? nullptr : kernel->find(fd);
}

// Returns whether the number belongs to a World, open or not.
bool is_simulated(int fd) { return Kernel::current() != nullptr && fd >= Kernel::kFirstDescriptor; }

// Calls `what` with the socket, or returns the error.
template <class What>
long with_socket(int fd, What what) {
  const std::shared_ptr<File> file = file_at(fd);
  if (file == nullptr) return returned(-EBADF);
  const std::shared_ptr<Socket> socket = file_cast<Socket>(file);
  return returned(socket == nullptr ? -ENOTSOCK : what(*socket));
}

template <class What>
long with_file(int fd, What what) {
  const std::shared_ptr<File> file = file_at(fd);
  return returned(file == nullptr ? -EBADF : what(*file));
}

// Calls `what` with a message of one piece.
template <class What>
long with_message(const void* data, std::size_t size, What what) {
  iovec piece{.iov_base = const_cast<void*>(data), .iov_len = size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return what(message);
}

// Calls `move` with one message after the other, until it fails. Returns how many were moved.
template <class Move>
long move_messages(mmsghdr* messages, unsigned count, Move move) {
  long moved = 0;
  for (mmsghdr& message : std::span(messages, count)) {
    const long result = move(message.msg_hdr);
    if (result < 0) return moved > 0 ? moved : result;
    message.msg_len = static_cast<unsigned>(result);
    ++moved;
  }
  return moved;
}

// Busy polling (LoopOptions::spin) consumes simulated time, so that the World advances. The first
// polls are free: a loop polls once per turn.
Nanos end_of_poll(Kernel& kernel) {
  constexpr int kFreePolls = 64;
  constexpr Nanos kPollTime{1'000};
  return ++kernel.failed_polls() > kFreePolls ? kernel.now() + kPollTime : kernel.now();
}

long wait(int epoll, epoll_event* events, int capacity, Nanos timeout) {
  const std::shared_ptr<EpollSet> set = file_cast<EpollSet>(file_at(epoll));
  if (set == nullptr || capacity <= 0) return -EINVAL;
  Kernel& kernel = *Kernel::current();
  const std::span room(events, static_cast<std::size_t>(capacity));
  const Nanos limit = timeout > Nanos{0} ? kernel.deadline(timeout) : end_of_poll(kernel);
  kernel.run_due_events();
  for (;;) {
    if (const std::size_t count = set->take(room); count != 0) {
      kernel.failed_polls() = 0;
      return static_cast<long>(count);
    }
    if (kernel.now() >= limit) return 0;
    const Step step = kernel.sleep(limit, [set] { return set->ready() != 0; });
    if (step == Step::spinning || (step == Step::stuck && timeout >= kForever)) return -EDEADLK;
  }
}

long control(int epoll, int operation, int fd, const epoll_event* event) {
  const std::shared_ptr<EpollSet> set = file_cast<EpollSet>(file_at(epoll));
  const std::shared_ptr<File> file = file_at(fd);
  if (set == nullptr) return -EINVAL;
  if (file == nullptr) return is_simulated(fd) ? -EBADF : -EOPNOTSUPP;
  if (!file->is_pollable()) return -EPERM;
  return set->control(operation, fd, *file, event == nullptr ? epoll_event{} : *event);
}

template <class Local>
std::shared_ptr<Local> make_local() {
  Simulation& simulation = *Simulation::current();
  return std::make_shared<Local>(simulation.local_names, simulation.network.memory,
                                 simulation.host);
}

bool is_short_of_memory() {
  const Simulation& simulation = *Simulation::current();
  return simulation.network.memory.is_short(simulation.host);
}

long open_socket(int family, int type) {
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) return -EAFNOSUPPORT;
  if (kind != SOCK_STREAM && kind != SOCK_DGRAM) return -EPROTONOSUPPORT;
  Simulation& simulation = *Simulation::current();
  if (simulation.host == Kernel::kNoHost) return -ENETDOWN;
  if (is_short_of_memory()) return -ENOBUFS;
  const bool is_stream = kind == SOCK_STREAM;
  if (family == AF_UNIX && is_stream) return simulation.open(make_local<LocalStream>());
  if (family == AF_UNIX) return simulation.open(make_local<LocalPackets>());
  if (is_stream)
    return simulation.open(
        std::make_shared<StreamSocket>(simulation.network, simulation.host, family));
  return simulation.open(
      std::make_shared<PacketSocket>(simulation.network, simulation.host, family));
}

// Opens both, or none.
long open_both(const std::shared_ptr<File>& one, const std::shared_ptr<File>& other, int* fds) {
  Kernel& kernel = *Kernel::current();
  const int first = kernel.open(one);
  if (first < 0) return first;
  const int second = kernel.open(other);
  if (second < 0) return kernel.close(first), second;
  fds[0] = first;
  fds[1] = second;
  return 0;
}

template <class End>
long open_joined(int* fds) {
  const auto one = make_local<End>();
  const auto other = make_local<End>();
  End::join(*one, *other);
  return open_both(one, other, fds);
}

long open_pair(int family, int type, int* fds) {
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (family != AF_UNIX || (kind != SOCK_STREAM && kind != SOCK_DGRAM)) return -EOPNOTSUPP;
  if (is_short_of_memory()) return -ENOBUFS;
  return kind == SOCK_STREAM ? open_joined<LocalStream>(fds) : open_joined<LocalPackets>(fds);
}

long accept(Socket& listener, sockaddr* peer, socklen_t* size) {
  long error = 0;
  Kernel& kernel = *Kernel::current();
  if (const long result = kernel.may_open(); result < 0) return result;
  if (listener.waiting() != 0 && is_short_of_memory()) return -ENOBUFS;
  const std::shared_ptr<Socket> accepted = listener.accept(error);
  if (accepted == nullptr) return error;
  const int fd = kernel.open(accepted);
  if (fd >= 0 && peer != nullptr) accepted->accepted_from(peer, size);
  return fd;
}

// Sends a file of a disk or of the system to a socket.
long send_file(Socket& socket, int file, off_t* offset, std::size_t size) {
  char piece[16 * 1024];
  const ssize_t count = spate_sim_pread(file, piece, std::min(size, sizeof(piece)), *offset);
  if (count <= 0) return count < 0 ? -errno : 0;
  const long sent = with_message(piece, static_cast<std::size_t>(count),
                                 [&](const msghdr& message) { return socket.send(message); });
  if (sent > 0) *offset += sent;
  return sent;
}

// Returns how many are ready.
int look(std::span<pollfd> fds) {
  int count = 0;
  for (pollfd& one : fds) {
    const std::shared_ptr<File> file = file_at(one.fd);
    const auto wanted = static_cast<std::uint32_t>(one.events) | EPOLLERR | EPOLLHUP;
    const std::uint32_t events = file == nullptr ? std::uint32_t{POLLNVAL} : file->ready() & wanted;
    one.revents = static_cast<short>(events);
    count += one.revents != 0 ? 1 : 0;
  }
  return count;
}

timespec spec_of(Nanos time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000),
          .tv_nsec = static_cast<long>(time.count() % 1'000'000'000)};
}

}  // namespace

}  // namespace spate::sim

using spate::Nanos;
using spate::sim::File;
using spate::sim::Kernel;
using spate::sim::Simulation;
using spate::sim::Socket;
namespace sim = spate::sim;

extern "C" {

// ---- any descriptor

int spate_sim_close(int fd) {
  if (!sim::is_simulated(fd)) return ::close(fd);
  return sim::returned_int(Kernel::current()->close(fd));
}

ssize_t spate_sim_read(int fd, void* data, std::size_t size) {
  if (!sim::is_simulated(fd)) return ::read(fd, data, size);
  return sim::with_file(
      fd, [&](File& file) { return file.read({static_cast<std::byte*>(data), size}); });
}

ssize_t spate_sim_write(int fd, const void* data, std::size_t size) {
  if (!sim::is_simulated(fd)) return ::write(fd, data, size);
  return sim::with_file(
      fd, [&](File& file) { return file.write({static_cast<const std::byte*>(data), size}); });
}

ssize_t spate_sim_writev(int fd, const iovec* pieces, int count) {
  if (!sim::is_simulated(fd)) return ::writev(fd, pieces, count);
  return sim::with_file(fd, [&](File& file) {
    return file.write_all(std::span(pieces, static_cast<std::size_t>(count)));
  });
}

int spate_sim_fcntl(int fd, int command, ...) {
  std::va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  if (!sim::is_simulated(fd)) return ::fcntl(fd, command, argument);
  const std::shared_ptr<File> file = sim::file_at(fd);
  if (file == nullptr) return sim::returned_int(-EBADF);
  switch (command) {
    case F_DUPFD_CLOEXEC:
      return sim::returned_int(Kernel::current()->open(file));
    case F_GETFL:
      return file->access() | O_NONBLOCK;
    case F_SETSIG:
      file->signal = static_cast<int>(argument);
      return 0;
    case F_GETSIG:
      return file->signal;
    default:
      return 0;
  }
}

int spate_sim_pipe2(int* fds, int flags) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::pipe2(fds, flags);
  if (sim::is_short_of_memory()) return sim::returned_int(-ENFILE);  // As Linux reports it.
  const auto [reader, writer] = sim::make_pipe(simulation->network.memory, simulation->host);
  return sim::returned_int(sim::open_both(reader, writer, fds));
}

int spate_sim_poll(pollfd* fds, nfds_t count, int timeout_ms) {
  if (count == 0 || !sim::is_simulated(fds[0].fd)) return ::poll(fds, count, timeout_ms);
  if (timeout_ms != 0) return sim::returned_int(-ENOSYS);
  return sim::look(std::span(fds, count));
}

// Paths of unix sockets are the World's; a socket of the system is treated as missing.
int spate_sim_lstat(const char* path, struct stat* status) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::lstat(path, status);
  if (simulation->local_names.has_path(simulation->host, path)) {
    *status = {};
    status->st_mode = S_IFSOCK | 0777;
    return 0;
  }
  if (::lstat(path, status) < 0) return -1;
  return S_ISSOCK(status->st_mode) ? sim::returned_int(-ENOENT) : 0;
}

int spate_sim_unlink(const char* path) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::unlink(path);
  return sim::returned_int(simulation->local_names.remove(simulation->host, path));
}

int spate_sim_open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = static_cast<mode_t>(va_arg(list, int));
  va_end(list);
  Simulation* simulation = Simulation::current();
  if (simulation != nullptr && simulation->disks.find(path).tree != nullptr)
    return spate_sim_openat(AT_FDCWD, path, flags, mode);
  const bool is_hosts = std::string_view(path) == "/etc/hosts";
  if (simulation != nullptr && (flags & O_CREAT) != 0) return sim::returned_int(-EROFS);
  if (simulation == nullptr || !is_hosts || simulation->hosts_file.empty())
    return ::open(path, flags, mode);
  return sim::returned_int(
      simulation->open(std::make_shared<sim::TextFile>(simulation->hosts_file)));
}

int spate_sim_eventfd(unsigned count, int flags) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::eventfd(count, flags);
  return sim::returned_int(kernel->open(std::make_shared<sim::EventCounter>(count)));
}

int spate_sim_timerfd_create(int clock, int flags) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::timerfd_create(clock, flags);
  return sim::returned_int(kernel->open(std::make_shared<sim::QuietTimer>()));
}

int spate_sim_timerfd_settime(int fd, int flags, const itimerspec* time, itimerspec* before) {
  if (!sim::is_simulated(fd)) return ::timerfd_settime(fd, flags, time, before);
  return 0;
}

// ---- waiting

int spate_sim_epoll_create1(int flags) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::epoll_create1(flags);
  return sim::returned_int(kernel->open(std::make_shared<sim::EpollSet>()));
}

int spate_sim_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (!sim::is_simulated(epoll)) return ::epoll_ctl(epoll, operation, fd, event);
  return sim::returned_int(sim::control(epoll, operation, fd, event));
}

int spate_sim_epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  if (!sim::is_simulated(epoll)) return ::epoll_wait(epoll, events, capacity, timeout_ms);
  const Nanos timeout =
      timeout_ms < 0 ? spate::kForever : Nanos{std::chrono::milliseconds{timeout_ms}};
  return sim::returned_int(sim::wait(epoll, events, capacity, timeout));
}

int spate_sim_epoll_pwait2(int epoll, epoll_event* events, int capacity, const timespec* timeout,
                           const sigset_t* mask) {
  if (!sim::is_simulated(epoll)) return ::epoll_pwait2(epoll, events, capacity, timeout, mask);
  Nanos span = spate::kForever;
  if (timeout != nullptr) span = std::chrono::seconds{timeout->tv_sec} + Nanos{timeout->tv_nsec};
  return sim::returned_int(sim::wait(epoll, events, capacity, span));
}

// ---- sockets

int spate_sim_socket(int family, int type, int protocol) {
  if (Kernel::current() == nullptr) return ::socket(family, type, protocol);
  return sim::returned_int(sim::open_socket(family, type));
}

int spate_sim_socketpair(int family, int type, int protocol, int* fds) {
  if (Kernel::current() == nullptr) return ::socketpair(family, type, protocol, fds);
  return sim::returned_int(sim::open_pair(family, type, fds));
}

int spate_sim_bind(int fd, const sockaddr* address, socklen_t size) {
  if (!sim::is_simulated(fd)) return ::bind(fd, address, size);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.bind(address, size); }));
}

int spate_sim_listen(int fd, int backlog) {
  if (!sim::is_simulated(fd)) return ::listen(fd, backlog);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.listen(backlog); }));
}

int spate_sim_connect(int fd, const sockaddr* address, socklen_t size) {
  if (!sim::is_simulated(fd)) return ::connect(fd, address, size);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.connect(address, size); }));
}

int spate_sim_accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  if (!sim::is_simulated(fd)) return ::accept4(fd, peer, size, flags);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return sim::accept(socket, peer, size); }));
}

int spate_sim_getsockname(int fd, sockaddr* address, socklen_t* size) {
  if (!sim::is_simulated(fd)) return ::getsockname(fd, address, size);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.local_address(address, size); }));
}

int spate_sim_getpeername(int fd, sockaddr* address, socklen_t* size) {
  if (!sim::is_simulated(fd)) return ::getpeername(fd, address, size);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.peer_address(address, size); }));
}

ssize_t spate_sim_recv(int fd, void* data, std::size_t size, int flags) {
  if (!sim::is_simulated(fd)) return ::recv(fd, data, size, flags);
  return sim::with_socket(fd, [&](Socket& socket) {
    return sim::with_message(data, size,
                             [&](msghdr& message) { return socket.receive(message, flags); });
  });
}

ssize_t spate_sim_recvmsg(int fd, msghdr* message, int flags) {
  if (!sim::is_simulated(fd)) return ::recvmsg(fd, message, flags);
  // Simulated sockets have no error queue.
  if ((flags & MSG_ERRQUEUE) != 0) return errno = EAGAIN, -1;
  return sim::with_socket(fd, [&](Socket& socket) { return socket.receive(*message, flags); });
}

int spate_sim_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (!sim::is_simulated(fd)) return ::recvmmsg(fd, messages, count, flags, timeout);
  return static_cast<int>(sim::with_socket(fd, [&](Socket& socket) {
    return sim::move_messages(messages, count,
                              [&](msghdr& message) { return socket.receive(message, flags); });
  }));
}

ssize_t spate_sim_send(int fd, const void* data, std::size_t size, int flags) {
  if (!sim::is_simulated(fd)) return ::send(fd, data, size, flags);
  return sim::with_socket(fd, [&](Socket& socket) {
    return sim::with_message(data, size,
                             [&](const msghdr& message) { return socket.send(message); });
  });
}

ssize_t spate_sim_sendto(int fd, const void* data, std::size_t size, int flags,
                         const sockaddr* peer, socklen_t peer_size) {
  if (!sim::is_simulated(fd)) return ::sendto(fd, data, size, flags, peer, peer_size);
  return sim::with_socket(fd, [&](Socket& socket) {
    return sim::with_message(data, size, [&](msghdr& message) {
      message.msg_name = const_cast<sockaddr*>(peer);
      message.msg_namelen = peer_size;
      return socket.send(message);
    });
  });
}

ssize_t spate_sim_sendmsg(int fd, const msghdr* message, int flags) {
  if (!sim::is_simulated(fd)) return ::sendmsg(fd, message, flags);
  return sim::with_socket(fd, [&](Socket& socket) { return socket.send(*message); });
}

int spate_sim_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!sim::is_simulated(fd)) return ::sendmmsg(fd, messages, count, flags);
  return static_cast<int>(sim::with_socket(fd, [&](Socket& socket) {
    return sim::move_messages(messages, count,
                              [&](const msghdr& message) { return socket.send(message); });
  }));
}

ssize_t spate_sim_sendfile(int fd, int file, off_t* offset, std::size_t size) {
  if (!sim::is_simulated(fd)) return ::sendfile(fd, file, offset, size);
  return sim::with_socket(
      fd, [&](Socket& socket) { return sim::send_file(socket, file, offset, size); });
}

int spate_sim_shutdown(int fd, int how) {
  if (!sim::is_simulated(fd)) return ::shutdown(fd, how);
  return static_cast<int>(
      sim::with_socket(fd, [&](Socket& socket) { return socket.shut_down(how); }));
}

int spate_sim_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  if (!sim::is_simulated(fd)) return ::setsockopt(fd, level, name, value, size);
  return static_cast<int>(sim::with_socket(
      fd, [&](Socket& socket) { return socket.set_option(level, name, value, size); }));
}

int spate_sim_getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  if (!sim::is_simulated(fd)) return ::getsockopt(fd, level, name, value, size);
  return static_cast<int>(sim::with_socket(
      fd, [&](Socket& socket) { return socket.get_option(level, name, value, size); }));
}

// ---- time and random bytes

int spate_sim_clock_gettime(clockid_t clock, timespec* time) {
  const Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::clock_gettime(clock, time);
  *time = sim::spec_of(clock == CLOCK_REALTIME ? kernel->wall() : kernel->monotonic());
  return 0;
}

ssize_t spate_sim_getrandom(void* data, std::size_t size, unsigned flags) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::getrandom(data, size, flags);
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t drawn = kernel->draw_next();
    std::memcpy(static_cast<char*>(data) + at, &drawn, std::min(size - at, sizeof(drawn)));
  }
  return static_cast<ssize_t>(size);
}

// ---- not simulated

int spate_sim_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (Kernel::current() != nullptr) return sim::returned_int(-ENOSYS);
  return ::ppoll(fds, count, timeout, mask);
}

int spate_sim_pselect(int end, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
                      const sigset_t* mask) {
  if (Kernel::current() != nullptr) return sim::returned_int(-ENOSYS);
  return ::pselect(end, read, write, except, timeout, mask);
}

// io_uring and openat2, for which the library has alternatives, and calls it needs.
long spate_sim_syscall(long number, ...) {
  long arguments[6];
  std::va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  Kernel* kernel = Kernel::current();
  if (kernel != nullptr && number == SYS_futex) return sim::returned(sim::futex(arguments));
  if (kernel != nullptr && number == SYS_pidfd_open)
    return sim::returned(kernel->processes.open_file(static_cast<int>(arguments[0])));
  if (kernel != nullptr) return sim::returned(-ENOSYS);
  return ::syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                   arguments[5]);
}

}  // extern "C"
