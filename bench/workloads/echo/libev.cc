// ev_io, and input and output by hand: libev has no streams. Idle timeouts as its manual advises:
// the timer is left alone, and looks at the last activity when it is due.
#include <ev.h>

#include "harness/server.h"

namespace {

class Server;

struct Session {
  ev_io readable;
  Server* server;
  std::unique_ptr<struct Backlog> backlog;
};

struct Backlog {
  ev_io writable;
  std::string queue;
};

struct TimedSession : Session {
  ev_timer timer;
  ev_tstamp last_active;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(ev_loop_new(EVFLAG_AUTO)),
        tally_(tally),
        idle_(double(options.number("idle_ms")) / 1e3),
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
    Session* session = idle_ > 0 ? begin_timed() : new Session;
    session->server = this;
    ev_io_init(&session->readable, on_readable, fd, EV_READ);
    session->readable.data = session;
    ev_io_start(loop_, &session->readable);
  }

  Session* begin_timed() {
    auto* session = new TimedSession;
    session->last_active = ev_now(loop_);
    ev_timer_init(&session->timer, on_timer, idle_, 0);
    session->timer.data = session;
    ev_timer_start(loop_, &session->timer);
    return session;
  }

  // Goes on while there may be more: the rest of a large block is best copied while it is in the
  // cache.
  static void on_readable(struct ev_loop*, ev_io* io, int) {
    auto& session = *static_cast<Session*>(io->data);
    for (int turn = 0; turn < kMaxReads; ++turn)
      if (!session.server->read_once(session)) return;
  }

  bool read_once(Session& session) {
    const int fd = session.readable.fd;
    const ssize_t size = recv(fd, buffer_.get(), kReadSize, 0);
    if (size < 0 && errno == EAGAIN) return false;
    if (size <= 0) return close_session(session), false;
    tally_.bytes += std::size_t(size);
    if (idle_ > 0) static_cast<TimedSession&>(session).last_active = ev_now(loop_);
    const std::size_t sent = session.backlog ? 0 : bench_send(fd, buffer_.get(), std::size_t(size));
    if (sent < std::size_t(size)) queue(session, buffer_.get() + sent, std::size_t(size) - sent);
    return std::size_t(size) == kReadSize;
  }

  void queue(Session& session, const char* bytes, std::size_t size) {
    if (!session.backlog) {
      session.backlog = std::make_unique<Backlog>();
      ev_io_init(&session.backlog->writable, on_writable, session.readable.fd, EV_WRITE);
      session.backlog->writable.data = &session;
      ev_io_start(loop_, &session.backlog->writable);
    }
    session.backlog->queue.append(bytes, size);
  }

  static void on_writable(struct ev_loop* loop, ev_io* io, int) {
    auto& session = *static_cast<Session*>(io->data);
    std::string& queue = session.backlog->queue;
    queue.erase(0, bench_send(io->fd, queue.data(), queue.size()));
    if (!queue.empty()) return;
    ev_io_stop(loop, io);
    session.backlog.reset();
  }

  static void on_timer(struct ev_loop* loop, ev_timer* timer, int) {
    auto& session = *static_cast<TimedSession*>(static_cast<Session*>(timer->data));
    Server& server = *session.server;
    const ev_tstamp left = session.last_active + server.idle_ - ev_now(loop);
    if (left <= 0) {
      ++server.tally_.expired;
      return server.close_session(session);
    }
    ev_timer_set(timer, left, 0);
    ev_timer_start(loop, timer);
  }

  void close_session(Session& session) {
    ++tally_.closed;
    ev_io_stop(loop_, &session.readable);
    if (session.backlog) ev_io_stop(loop_, &session.backlog->writable);
    close(session.readable.fd);
    if (idle_ == 0) {
      delete &session;
      return;
    }
    auto& timed = static_cast<TimedSession&>(session);
    ev_timer_stop(loop_, &timed.timer);
    delete &timed;
  }

  static constexpr int kMaxReads = 16;

  struct ev_loop* const loop_;
  Tally& tally_;
  const double idle_;
  const std::unique_ptr<char[]> buffer_;
  ev_io listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
