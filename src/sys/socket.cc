#include "sys/socket.h"

#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace spate::sys {

namespace {

// An environment variable as a whole number; -1 if it is none.
int environment_number(const char* name) {
  const char* text = ::getenv(name);
  if (text == nullptr) return -1;
  int number = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

// Blocks SIGPIPE, and consumes the one that comes with EPIPE. One that was pending before stays.
class PipeSignalTaken {
 public:
  PipeSignalTaken() {
    ::sigemptyset(&pipe_signal_);
    ::sigaddset(&pipe_signal_, SIGPIPE);
    sigset_t waiting;
    ::sigpending(&waiting);
    was_waiting_ = ::sigismember(&waiting, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal_, &before_);
  }
  ~PipeSignalTaken() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  PipeSignalTaken(const PipeSignalTaken&) = delete;
  PipeSignalTaken& operator=(const PipeSignalTaken&) = delete;

  // Returns the result of a call for `size` bytes. The signal may also come with a partial write.
  long from(long result, std::size_t size) {
    const timespec at_once{};
    const bool is_whole = result >= 0 && static_cast<std::size_t>(result) == size;
    if (!is_whole && !was_waiting_) ::sigtimedwait(&pipe_signal_, nullptr, &at_once);
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
  const bool for_us = environment_number("LISTEN_PID") == ::getpid();
  const int count = environment_number("LISTEN_FDS");
  if (!for_us) return 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
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
  off_t position = offset;
  size = shortened(SystemCall::send_file, size);
  return taken.from(result_of(::sendfile(fd, file, &position, size)), size);
}

void attach_descriptors(msghdr& message, DescriptorRoom& room, std::span<const int> descriptors) {
  std::memset(room.bytes, 0, CMSG_SPACE(descriptors.size_bytes()));
  message.msg_control = room.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

std::size_t descriptors_of(msghdr& message, std::span<int, kMaxDescriptors> descriptors) {
  std::size_t count = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t size = header->cmsg_len - CMSG_LEN(0);
    std::memcpy(&descriptors[count], CMSG_DATA(header), size);
    count += size / sizeof(int);
  }
  return count;
}

}  // namespace spate::sys
