// bufferevent_openssl over the socket; input moves from the input buffer to the output buffer, and
// the large reply is added by reference, not copied.
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "harness/libevent_base.h"
#include "workloads/tls/openssl_server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : kind_(options),
        tally_(tally),
        context_(bench_ssl_context(kind_)),
        base_(bench_event_base()) {
    SSL_CTX_set_read_ahead(context_, 0);  // It chooses its events by SSL_pending().
    if (evconnlistener_new(base_, on_accept, this, LEV_OPT_CLOSE_ON_EXEC, 0, socket) == nullptr)
      bench_die("evconnlistener_new");
  }

  void run() { event_base_dispatch(base_); }
  static void version() { bench_version(event_get_version(), "libevent"); }

 private:
  struct Session {
    Server& server;
    Asked asked{};
  };

  static void on_accept(evconnlistener*, int fd, sockaddr*, int, void* context) {
    auto& server = *static_cast<Server*>(context);
    ++server.tally_.accepted;
    bench_no_delay(fd);
    bufferevent* connection =
        bufferevent_openssl_socket_new(server.base_, fd, SSL_new(server.context_),
                                       BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (connection == nullptr) bench_die("bufferevent_openssl_socket_new");
    bufferevent_setcb(connection, on_read, nullptr, on_event, new Session{server});
    bufferevent_set_max_single_read(connection, kReadSize);
    bufferevent_set_max_single_write(connection, 16 * kReadSize);
    bufferevent_enable(connection, EV_READ | EV_WRITE);
  }

  static void on_read(bufferevent* connection, void* context) {
    auto& session = *static_cast<Session*>(context);
    evbuffer* input = bufferevent_get_input(connection);
    evbuffer* output = bufferevent_get_output(connection);
    const std::size_t size = evbuffer_get_length(input);
    session.server.tally_.bytes += size;
    if (!session.server.kind_.is_bulk) {
      evbuffer_add_buffer(output, input);
      return;
    }
    evbuffer_drain(input, size);
    for (std::size_t left = session.asked.take(size); left > 0; --left)
      evbuffer_add_reference(output, bench_bulk().data(), kBulkSize, nullptr, nullptr);
  }

  static void on_event(bufferevent* connection, short what, void* context) {
    if ((what & BEV_EVENT_CONNECTED) != 0) return;
    auto* session = static_cast<Session*>(context);
    ++session->server.tally_.closed;
    delete session;
    bufferevent_free(connection);
  }

  const TlsServerKind kind_;
  Tally& tally_;
  SSL_CTX* const context_;
  event_base* const base_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
