// Hand-written epoll that gathers by hand: all messages that came with one read go to each
// subscriber in one send. The bound.

#include "harness/floor.h"
#include "workloads/fanout/server.h"

namespace {

class Server : Floor {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : Floor(socket, tally), size_(std::size_t(options.number("size", 64))) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
  }

  void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
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
  struct Session {
    Inbox inbox;
    std::string waiting;  // Unsent bytes.
  };

  void accept_new() {
    accept_all([this](int fd) {
      if (std::size_t(fd) >= sessions_.size()) sessions_.resize(std::size_t(fd) * 2);
      sessions_[std::size_t(fd)] = std::make_unique<Session>(Session{Inbox(size_), {}});
      open_.push_back(fd);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    });
  }

  void receive(int fd) {
    const ssize_t size = recv(fd, buffer_.get(), kReadSize, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      std::erase(open_, fd);
      sessions_[std::size_t(fd)].reset();
      close(fd);
      ++tally_.closed;
      return;
    }
    tally_.bytes += std::size_t(size);
    sessions_[std::size_t(fd)]->inbox.take_together(buffer_.get(), std::size_t(size),
                                                    [&](const char* bytes, std::size_t count) {
                                                      for (const int other : open_)
                                                        if (other != fd)
                                                          deliver(other, bytes, count);
                                                    });
  }

  void deliver(int fd, const char* bytes, std::size_t size) {
    std::string& waiting = sessions_[std::size_t(fd)]->waiting;
    const bool queued = !waiting.empty();
    const std::size_t sent = queued ? 0 : bench_send(fd, bytes, size);
    if (sent == size) return;
    waiting.append(bytes + sent, size - sent);
    if (!queued) watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
  }

  void drain(int fd) {
    std::string& waiting = sessions_[std::size_t(fd)]->waiting;
    waiting.erase(0, bench_send(fd, waiting.data(), waiting.size()));
    if (waiting.empty()) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  const std::size_t size_;
  std::vector<std::unique_ptr<Session>> sessions_;  // By descriptor.
  std::vector<int> open_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
