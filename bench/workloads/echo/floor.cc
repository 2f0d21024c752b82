// Hand-written epoll, one 64 KiB buffer, no abstraction: the bound. No idle timeouts.

#include <algorithm>

#include "harness/floor.h"

namespace {

class Server : Floor {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : Floor(socket, tally), busy_ns_(std::uint64_t(options.number("busy_poll_us")) * 1000) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
  }

  void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = wait(events);
      for (int i = 0; i < count; ++i) {
        const int fd = events[std::size_t(i)].data.fd;
        const std::uint32_t ready = events[std::size_t(i)].events;
        if (fd == listener_) {
          accept_new();
          continue;
        }
        if (ready & EPOLLOUT) drain(fd);
        if (ready & ~EPOLLOUT) receive(fd);
      }
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  int wait(std::vector<epoll_event>& events) {
    const int room = int(events.size());
    if (busy_ns_ == 0) return epoll_wait(epoll_, events.data(), room, -1);
    const std::uint64_t end = bench_now_ns() + busy_ns_;
    do {
      const int count = epoll_wait(epoll_, events.data(), room, 0);
      if (count != 0) return count;
    } while (bench_now_ns() < end);
    return epoll_wait(epoll_, events.data(), room, -1);
  }

  void accept_new() {
    accept_all([this](int fd) {
      if (std::size_t(fd) >= waiting_.size()) waiting_.resize(std::size_t(fd) * 2);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    });
  }

  // Goes on while there may be more: the rest of a large block is best copied while it is in the
  // cache.
  void receive(int fd) {
    for (int turn = 0; turn < kMaxReads; ++turn)
      if (!receive_once(fd)) return;
  }

  bool receive_once(int fd) {
    const ssize_t size = recv(fd, buffer_.get(), kReadSize, 0);
    if (size < 0 && errno == EAGAIN) return false;
    if (size <= 0) {
      waiting_[std::size_t(fd)].reset();
      close(fd);
      ++tally_.closed;
      return false;
    }
    tally_.bytes += std::size_t(size);
    echo(fd, std::size_t(size));
    return std::size_t(size) == kReadSize;
  }

  void echo(int fd, std::size_t size) {
    auto& queue = waiting_[std::size_t(fd)];
    const std::size_t sent = queue ? 0 : bench_send(fd, buffer_.get(), size);
    if (sent == size) return;
    if (!queue) {
      queue = std::make_unique<std::string>();
      watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
    }
    queue->append(buffer_.get() + sent, size - sent);
  }

  void drain(int fd) {
    auto& queue = waiting_[std::size_t(fd)];
    queue->erase(0, bench_send(fd, queue->data(), queue->size()));
    if (!queue->empty()) return;
    queue.reset();
    watch(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  static constexpr int kMaxReads = 16;

  const std::uint64_t busy_ns_;
  std::vector<std::unique_ptr<std::string>> waiting_;  // Unsent bytes, by descriptor.
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
