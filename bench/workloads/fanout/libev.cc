// ev_io, and input and output by hand: a message is sent to each subscriber at once, and the rest
// that the kernel does not take is queued.
#include <ev.h>

#include "workloads/fanout/server.h"

namespace {

class Server;

struct Session {
  ev_io readable, writable;
  Server* server;
  Inbox inbox;
  std::string queue;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(ev_loop_new(EVFLAG_AUTO)),
        size_(std::size_t(options.number("size", 64))),
        tally_(tally),
        buffer_(new char[kReadSize]) {
    ev_io_init(&listener_, on_accept, socket, EV_READ);
    listener_.data = this;
    ev_io_start(loop_, &listener_);
  }

  void run() { ev_run(loop_, 0); }
  static void version() {
    const std::string text =
        std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor());
    bench_version(text.c_str(), "libev.so");
  }

 private:
  static void on_accept(struct ev_loop*, ev_io* io, int) {
    auto& server = *static_cast<Server*>(io->data);
    for (int fd; (fd = accept4(io->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      bench_no_delay(fd);
      server.begin(fd);
    }
  }

  void begin(int fd) {
    ++tally_.accepted;
    auto* session = new Session{{}, {}, this, Inbox(size_), {}};
    ev_io_init(&session->readable, on_readable, fd, EV_READ);
    ev_io_init(&session->writable, on_writable, fd, EV_WRITE);
    session->readable.data = session->writable.data = session;
    ev_io_start(loop_, &session->readable);
    sessions_.push_back(session);
  }

  static void on_readable(struct ev_loop*, ev_io* io, int) {
    auto& session = *static_cast<Session*>(io->data);
    session.server->receive(session);
  }

  void receive(Session& session) {
    const ssize_t size = recv(session.readable.fd, buffer_.get(), kReadSize, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return close_session(session);
    tally_.bytes += std::size_t(size);
    session.inbox.take(buffer_.get(), std::size_t(size), [&](const char* bytes, std::size_t count) {
      for (Session* other : sessions_)
        if (other != &session) deliver(*other, bytes, count);
    });
  }

  void deliver(Session& session, const char* bytes, std::size_t size) {
    const bool queued = !session.queue.empty();
    const std::size_t sent = queued ? 0 : bench_send(session.readable.fd, bytes, size);
    if (sent == size) return;
    session.queue.append(bytes + sent, size - sent);
    if (!queued) ev_io_start(loop_, &session.writable);
  }

  static void on_writable(struct ev_loop* loop, ev_io* io, int) {
    std::string& queue = static_cast<Session*>(io->data)->queue;
    queue.erase(0, bench_send(io->fd, queue.data(), queue.size()));
    if (queue.empty()) ev_io_stop(loop, io);
  }

  void close_session(Session& session) {
    ++tally_.closed;
    ev_io_stop(loop_, &session.readable);
    ev_io_stop(loop_, &session.writable);
    close(session.readable.fd);
    std::erase(sessions_, &session);
    delete &session;
  }

  struct ev_loop* const loop_;
  const std::size_t size_;
  Tally& tally_;
  const std::unique_ptr<char[]> buffer_;
  ev_io listener_;
  std::vector<Session*> sessions_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
