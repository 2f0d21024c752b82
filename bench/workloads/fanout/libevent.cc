// bufferevents: a message is added to the output buffer of each subscriber, which libevent writes
// when it comes to the socket.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "harness/libevent_base.h"
#include "workloads/fanout/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : size_(std::size_t(options.number("size", 64))), tally_(tally), base_(bench_event_base()) {
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
    server.connections_.push_back(bench_bufferevent(server.base_, fd, on_read, on_event, &server));
  }

  static void on_read(bufferevent* connection, void* context) {
    auto& server = *static_cast<Server*>(context);
    evbuffer* input = bufferevent_get_input(connection);
    while (evbuffer_get_length(input) >= server.size_) {
      const unsigned char* message = evbuffer_pullup(input, ev_ssize_t(server.size_));
      for (bufferevent* other : server.connections_)
        if (other != connection) bufferevent_write(other, message, server.size_);
      evbuffer_drain(input, server.size_);
      server.tally_.bytes += server.size_;
    }
  }

  static void on_event(bufferevent* connection, short, void* context) {
    auto& server = *static_cast<Server*>(context);
    ++server.tally_.closed;
    std::erase(server.connections_, connection);
    bufferevent_free(connection);
  }

  const std::size_t size_;
  Tally& tally_;
  event_base* const base_;
  std::vector<bufferevent*> connections_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
