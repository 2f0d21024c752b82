// Hand-written epoll; messages are answered in place, in the one buffer that all are read into: the
// bound.

#include "harness/floor.h"
#include "workloads/header_body/server.h"

namespace {

struct Session {
  int fd;
  std::string rest;     // An incomplete message.
  std::string waiting;  // To be sent.
};

class Server : Floor {
 public:
  Server(int socket, const ServerOptions&, Tally& tally) : Floor(socket, tally) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
  }

  void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        auto* session = static_cast<Session*>(events[std::size_t(i)].data.ptr);
        const std::uint32_t ready = events[std::size_t(i)].events;
        if (session == nullptr)
          accept_new();
        else if ((ready & EPOLLOUT) != 0)
          drain(*session);
        else
          receive(*session);
      }
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  void accept_new() {
    accept_all([this](int fd) { watch(EPOLL_CTL_ADD, fd, EPOLLIN, new Session{fd, {}, {}}); });
  }

  void receive(Session& session) {
    const std::size_t kept = session.rest.size();
    memcpy(buffer_.get(), session.rest.data(), kept);
    const ssize_t size = recv(session.fd, buffer_.get() + kept, kReadSize - kept, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      close(session.fd);
      delete &session;
      ++tally_.closed;
      return;
    }
    const std::size_t all = kept + std::size_t(size);
    const std::size_t used = answer_whole(buffer_.get(), all);
    tally_.bytes += used;
    session.rest.assign(buffer_.get() + used, all - used);
    const std::size_t sent =
        session.waiting.empty() ? bench_send(session.fd, buffer_.get(), used) : 0;
    if (sent == used) return;
    session.waiting.append(buffer_.get() + sent, used - sent);
    watch(EPOLL_CTL_MOD, session.fd, EPOLLOUT, &session);
  }

  void drain(Session& session) {
    std::string& waiting = session.waiting;
    waiting.erase(0, bench_send(session.fd, waiting.data(), waiting.size()));
    if (waiting.empty()) watch(EPOLL_CTL_MOD, session.fd, EPOLLIN, &session);
  }
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
