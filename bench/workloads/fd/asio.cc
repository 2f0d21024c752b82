// Standalone Asio: async_wait for readability on a stream_descriptor, recv and send by hand in the
// handler. The context's concurrency hint says that one thread uses it (no locks). A wait is
// one-shot, so the handler waits again; set-up cancels and waits again. The idle timeout is a
// steady_timer: setting its expiry cancels the wait that is pending on it.
#include "fd.h"

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <asio/version.hpp>
#include <deque>

namespace {

asio::io_context context(ASIO_CONCURRENCY_HINT_UNSAFE);

struct Connection {
  explicit Connection(int fd) : socket(context, fd), timer(context) {}
  asio::posix::stream_descriptor socket;
  asio::steady_timer timer;
};

std::deque<Connection> connections;

void reset_timeout(long i) {
  auto& timer = connections[i].timer;
  timer.expires_after(std::chrono::nanoseconds(fd_timeout_ns()));
  timer.async_wait([](const asio::error_code& error) {
    if (!error) fd_expired++;
  });
}

void await_readable(long i) {
  connections[i].socket.async_wait(asio::posix::stream_descriptor::wait_read,
                                   [i](const asio::error_code& error) {
                                     if (error) return;  // cancelled by set-up
                                     if (fd_timeouts) reset_timeout(i);
                                     fd_receive(i);
                                     await_readable(i);
                                   });
}

}  // namespace

static void fd_open(int, char**) {
  for (long i = 0; i < fd_pairs; i++) connections.emplace_back(fd_socket(i));
}

static inline void fd_watch(long i, int) {
  connections[i].socket.cancel();
  await_readable(i);
  if (fd_timeouts) reset_timeout(i);
}

static inline void fd_pass(void) {
  context.restart();
  context.poll();
}

static void fd_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000,
           ASIO_VERSION % 100);
  bench_version(version, nullptr);
}
