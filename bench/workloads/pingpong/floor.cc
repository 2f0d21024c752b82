// Hand-written epoll, a 64 KiB buffer for all, no abstraction: the bound.
#include <sys/epoll.h>

#include <string>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Side {
  Side(std::span<const int> sockets, Tally& the_tally)
      : tally(the_tally), epoll(epoll_create1(EPOLL_CLOEXEC)), waiting(70000) {
    for (const int fd : sockets) watch(EPOLL_CTL_ADD, fd, EPOLLIN), fds.push_back(fd);
  }
  ~Side() {
    for (const int fd : fds) close(fd);
    close(epoll);
  }

  void send_to_all(std::span<const char> block) {
    for (const int fd : fds) write(fd, block.data(), block.size());
  }

  void run() {
    static thread_local char buffer[65536];
    epoll_event events[1024];
    for (bool enough = false; !enough && !tally.over->load(std::memory_order_relaxed);) {
      const int count = epoll_wait(epoll, events, 1024, 20);
      for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (events[i].events & EPOLLOUT) drain(fd);
        if (!(events[i].events & EPOLLIN)) continue;
        const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
        if (size <= 0) continue;
        enough = tally.add(std::size_t(size)) || enough;
        write(fd, buffer, std::size_t(size));
      }
    }
  }

  void write(int fd, const char* bytes, std::size_t size) {
    std::string& queue = waiting[std::size_t(fd)];
    const std::size_t sent = queue.empty() ? pingpong_send(fd, bytes, size) : 0;
    if (sent == size) return;
    queue.append(bytes + sent, size - sent);
    watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
  }

  void drain(int fd) {
    std::string& queue = waiting[std::size_t(fd)];
    queue.erase(0, pingpong_send(fd, queue.data(), queue.size()));
    if (queue.empty()) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  void watch(int operation, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll, operation, fd, &event);
  }

  static void version() { bench_version("none", nullptr); }

  Tally& tally;
  int epoll;
  std::vector<int> fds;
  std::vector<std::string> waiting;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
