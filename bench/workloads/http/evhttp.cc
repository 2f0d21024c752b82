// evhttp, libevent's own server.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "harness/libevent_base.h"
#include "workloads/http/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&)
      : base_(bench_event_base()), http_(evhttp_new(base_)) {
    if (evhttp_accept_socket(http_, socket) != 0) bench_die("evhttp_accept_socket");
    evhttp_set_max_body_size(http_, ssize_t(kUploadSize));
    evhttp_set_cb(
        http_, "/hello",
        [](evhttp_request* request, void*) {
          answer(request, [](evbuffer* body) { evbuffer_add(body, kHello.data(), kHello.size()); });
        },
        nullptr);
    evhttp_set_cb(
        http_, "/page",
        [](evhttp_request* request, void*) {
          answer(request, [](evbuffer* body) {
            evbuffer_add_reference(body, bench_page().data(), bench_page().size(), nullptr,
                                   nullptr);
          });
        },
        nullptr);
    evhttp_set_cb(
        http_, "/file",
        [](evhttp_request* request, void*) {
          answer(request,
                 [](evbuffer* body) { evbuffer_add_file(body, dup(bench_file()), 0, kFileSize); });
        },
        nullptr);
    evhttp_set_cb(
        http_, "/upload",
        [](evhttp_request* request, void*) {
          const std::size_t size = evbuffer_get_length(evhttp_request_get_input_buffer(request));
          answer(request, [size](evbuffer* body) { evbuffer_add_printf(body, "%zu", size); });
        },
        nullptr);
  }

  void run() { event_base_dispatch(base_); }
  static void version() { bench_version(event_get_version(), "libevent"); }

 private:
  template <class Fill>
  static void answer(evhttp_request* request, Fill fill) {
    evbuffer* body = evhttp_request_get_output_buffer(request);
    fill(body);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "text/plain; charset=utf-8");
    evhttp_send_reply(request, 200, "OK", nullptr);
  }

  event_base* const base_;
  evhttp* const http_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
