// spate: stop and start; the idle timeout is a restart. A connection without timeouts has no timer.
#include <spate/io.h>
#include <spate/timer.h>

#include "fd.h"
#include "harness/spate_loop.h"

static std::unique_ptr<spate::Loop> loop;

struct Connection {
  spate::Io io;

  explicit Connection(long i)
      : io(*loop, fd_socket(i), spate::Events::read, spate::bind<&Connection::on_readable>(this)) {}
  void reset_timeout() {}
  void on_readable();
};

struct TimedConnection {
  spate::Io io;
  spate::Timer timeout;

  explicit TimedConnection(long i)
      : io(*loop, fd_socket(i), spate::Events::read,
           spate::bind<&TimedConnection::on_readable>(this)),
        timeout(*loop, [] { fd_expired++; }) {}
  void reset_timeout() { timeout.restart(spate::Nanos(fd_timeout_ns())); }
  void on_readable();
};

static Connection* connections;
static TimedConnection* timed_connections;

void Connection::on_readable() { fd_receive(this - connections); }

void TimedConnection::on_readable() {
  reset_timeout();
  fd_receive(this - timed_connections);
}

template <class T>
static T* make_connections() {
  T* array = std::allocator<T>().allocate(fd_pairs);
  for (long i = 0; i < fd_pairs; i++) std::construct_at(array + i, i);
  return array;
}

static void fd_open(int argc, char** argv) {
  loop = bench_loop(argc, argv);
  if (fd_timeouts)
    timed_connections = make_connections<TimedConnection>();
  else
    connections = make_connections<Connection>();
}

template <class T>
static inline void watch(T& connection) {
  connection.io.stop();
  connection.io.start();
  connection.reset_timeout();
}

static inline void fd_watch(long i, int) {
  if (fd_timeouts)
    watch(timed_connections[i]);
  else
    watch(connections[i]);
}

static inline void fd_pass(void) { loop->run(spate::Run::no_wait); }

static void fd_version(void) { bench_version("0.1.0", nullptr); }
