// bufferevents, as muduo's and evpp's comparisons have them: the input buffer's contents move to
// the output buffer without a copy. With --direct 1 the input is written at once, and only the rest
// that the kernel does not take moves. Idle timeouts are the bufferevent's own, in libevent's queue
// for equal ones.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "harness/libevent_base.h"
#include "harness/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : tally_(tally), direct_(options.number("direct") != 0), base_(bench_event_base()) {
    const long idle = options.number("idle_ms");
    const timeval timeout = {idle / 1000, idle % 1000 * 1000};
    if (idle > 0) idle_ = event_base_init_common_timeout(base_, &timeout);
    // The socket listens already; any backlog but 0 would shorten its own.
    if (evconnlistener_new(base_, on_accept, this, LEV_OPT_CLOSE_ON_EXEC, 0, socket) == nullptr)
      bench_die("evconnlistener_new");
  }

  void run() { event_base_dispatch(base_); }
  static void version() { bench_version(event_get_version(), "libevent"); }

 private:
  static void on_accept(evconnlistener*, int fd, sockaddr*, int, void* context) {
    auto& server = *static_cast<Server*>(context);
    ++server.tally_.accepted;
    bench_bufferevent(server.base_, fd, on_read, on_event, &server, server.idle_);
  }

  static void on_read(bufferevent* connection, void* context) {
    auto& server = *static_cast<Server*>(context);
    evbuffer* input = bufferevent_get_input(connection);
    evbuffer* output = bufferevent_get_output(connection);
    server.tally_.bytes += evbuffer_get_length(input);
    if (server.direct_ && evbuffer_get_length(output) == 0)
      evbuffer_write(input, bufferevent_getfd(connection));
    if (evbuffer_get_length(input) > 0) evbuffer_add_buffer(output, input);
  }

  static void on_event(bufferevent* connection, short what, void* context) {
    auto& server = *static_cast<Server*>(context);
    if ((what & BEV_EVENT_TIMEOUT) != 0) ++server.tally_.expired;
    ++server.tally_.closed;
    bufferevent_free(connection);
  }

  Tally& tally_;
  const bool direct_;
  event_base* const base_;
  const timeval* idle_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
