// ev_io, and input and output by hand: libev has no streams.
#include <ev.h>

#include <list>
#include <string>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Side;

struct Connection {
  ev_io readable;
  ev_io writable;
  int fd;
  Side* side;
  std::string queue;
};

struct Side {
  Side(std::span<const int> sockets, Tally& the_tally) : tally(the_tally) {
    loop = ev_loop_new(EVFLAG_AUTO);
    for (const int fd : sockets) {
      Connection& one = connections.emplace_back();
      one.fd = fd;
      one.side = this;
      ev_io_init(&one.readable, on_readable, fd, EV_READ);
      ev_io_init(&one.writable, on_writable, fd, EV_WRITE);
      one.readable.data = one.writable.data = &one;
      ev_io_start(loop, &one.readable);
    }
    ev_timer_init(&look, on_look, 0.02, 0.02);
    look.data = this;
    ev_timer_start(loop, &look);
  }
  ~Side() {
    for (Connection& one : connections) close(one.fd);
    ev_loop_destroy(loop);
  }

  void send_to_all(std::span<const char> block) {
    for (Connection& one : connections) write(one, block.data(), block.size());
  }
  void run() { ev_run(loop, 0); }
  static void version() {
    const std::string text =
        std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor());
    bench_version(text.c_str(), "libev.so");
  }

  static void write(Connection& one, const char* bytes, std::size_t size) {
    const std::size_t sent = one.queue.empty() ? pingpong_send(one.fd, bytes, size) : 0;
    if (sent == size) return;
    one.queue.append(bytes + sent, size - sent);
    ev_io_start(one.side->loop, &one.writable);
  }
  static void on_readable(struct ev_loop* loop, ev_io* io, int) {
    static thread_local char buffer[65536];
    auto& one = *static_cast<Connection*>(io->data);
    const ssize_t size = recv(one.fd, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return ev_io_stop(loop, io);
    write(one, buffer, std::size_t(size));
    if (one.side->tally.add(std::size_t(size))) ev_break(loop, EVBREAK_ALL);
  }
  static void on_writable(struct ev_loop* loop, ev_io* io, int) {
    auto& one = *static_cast<Connection*>(io->data);
    one.queue.erase(0, pingpong_send(one.fd, one.queue.data(), one.queue.size()));
    if (one.queue.empty()) ev_io_stop(loop, io);
  }
  static void on_look(struct ev_loop* loop, ev_timer* timer, int) {
    if (static_cast<Side*>(timer->data)->tally.over->load()) ev_break(loop, EVBREAK_ALL);
  }

  Tally& tally;
  struct ev_loop* loop;
  ev_timer look;
  std::list<Connection> connections;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
