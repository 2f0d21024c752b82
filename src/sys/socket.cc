#include "sys/socket.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace spate::sys {

namespace {

// Returns an environment variable as an integer; -1 if it is invalid.
int environment_number(const char* name) {
  const char* text = ::getenv(name);
  if (text == nullptr) return -1;
  int number = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

// Blocks SIGPIPE, and consumes the one that comes with EPIPE. A SIGPIPE that was pending before
// stays.
class PipeSignalTaken {
 public:
  PipeSignalTaken() {
    sigemptyset(&pipe_signal_);
    sigaddset(&pipe_signal_, SIGPIPE);
    sigset_t waiting;
    ::sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal_, &before_);
  }
  ~PipeSignalTaken() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  PipeSignalTaken(const PipeSignalTaken&) = delete;
  PipeSignalTaken& operator=(const PipeSignalTaken&) = delete;

  // Returns the result of a call for `size` bytes. A partial write may also cause the signal.
  long from(long result, std::size_t size) {
    const bool is_whole = result >= 0 && static_cast<std::size_t>(result) == size;
    if (!is_whole && !was_waiting_) take_signal(pipe_signal_);
    return result;
  }

 private:
  sigset_t pipe_signal_;
  sigset_t before_;
  bool was_waiting_;
};

}  // namespace

long remove_socket_file(const char* path) {
  struct stat status{};
  if (const int error = injected(SystemCall::lstat)) return -error;
  if (::lstat(path, &status) < 0) return result_of(-1);
  return S_ISSOCK(status.st_mode) ? result_of(::unlink(path)) : -ENOTSOCK;
}

int take_inherited() {
  const int parent = environment_number(kListenParent);
  const bool for_us = environment_number("LISTEN_PID") == ::getpid() ||
                      (parent > 0 && parent == ::getppid());  // 0: the parent is in a container.
  const int count = environment_number("LISTEN_FDS");
  if (!for_us) return 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", kListenParent})
    ::unsetenv(name);
  return count > 0 ? count : 0;
}

long write_without_signal(int fd, const iovec* parts, int count) {
  if (const int error = injected(SystemCall::write)) return -error;
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  PipeSignalTaken taken;
  return taken.from(result_of(::writev(fd, parts, count)), size);
}

long send_file_without_signal(int fd, int file, std::int64_t offset, std::size_t size) {
  if (const int error = injected(SystemCall::send_file)) return -error;
  PipeSignalTaken taken;
  size = shortened(SystemCall::send_file, size);
  return taken.from(result_of(send_file(fd, file, offset, size)), size);
}

void attach_descriptors(msghdr& message, DescriptorRoom& room, std::span<const int> descriptors) {
  std::memset(room.bytes, 0, CMSG_SPACE(descriptors.size_bytes()));
  message.msg_control = room.bytes;
  message.msg_controllen = static_cast<ControlSize>(CMSG_SPACE(descriptors.size_bytes()));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = static_cast<ControlSize>(CMSG_LEN(descriptors.size_bytes()));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

std::size_t descriptors_of(msghdr& message, std::span<int, kMaxDescriptors> descriptors) {
  std::size_t count = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t received = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < received; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
      const long kept = opened(fd);
      // The kernel also cuts off the descriptors for which there is no room.
      if (kept < 0) message.msg_flags |= MSG_CTRUNC;
      if (kept >= 0) descriptors[count++] = static_cast<int>(kept);
    }
  }
  return count;
}

}  // namespace spate::sys
