// bufferevents; the header is counted up where it lies, and the message moves to the output buffer
// without a copy. With --direct 1 the replies of one read are written at once, and only the rest
// that the kernel does not take goes to the output buffer.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "harness/libevent_base.h"
#include "workloads/header_body/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : tally_(tally),
        direct_(options.number("direct") != 0),
        base_(bench_event_base()),
        answers_(evbuffer_new()) {
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
    bench_bufferevent(server.base_, fd, on_read, on_event, &server);
  }

  static void on_read(bufferevent* connection, void* context) {
    auto& server = *static_cast<Server*>(context);
    evbuffer* output = bufferevent_get_output(connection);
    const bool direct = server.direct_ && evbuffer_get_length(output) == 0;
    evbuffer* answers = direct ? server.answers_ : output;
    server.answer_whole_ones(bufferevent_get_input(connection), answers);
    if (!direct || evbuffer_get_length(answers) == 0) return;
    evbuffer_write(answers, bufferevent_getfd(connection));
    if (evbuffer_get_length(answers) > 0) evbuffer_add_buffer(output, answers);
  }

  void answer_whole_ones(evbuffer* input, evbuffer* answers) {
    while (evbuffer_get_length(input) >= sizeof(Header)) {
      auto* header = reinterpret_cast<Header*>(evbuffer_pullup(input, sizeof(Header)));
      const std::size_t whole = header->message_size();
      if (evbuffer_get_length(input) < whole) return;
      header->count_up();
      evbuffer_remove_buffer(input, answers, whole);
      tally_.bytes += whole;
    }
  }

  static void on_event(bufferevent* connection, short, void* context) {
    ++static_cast<Server*>(context)->tally_.closed;
    bufferevent_free(connection);
  }

  Tally& tally_;
  const bool direct_;
  event_base* const base_;
  evbuffer* const answers_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
