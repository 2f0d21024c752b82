// libmicrohttpd with epoll and its own thread; the answers are prepared once.
#include <microhttpd.h>

#include <utility>

#include "workloads/http/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&)
      : hello_(prepared(kHello)), page_(prepared(bench_page())) {
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr, on_request, this,
                               MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT,
                               19'000u, MHD_OPTION_END);
    if (daemon_ == nullptr) bench_die("MHD_start_daemon");
  }

  void run() {
    for (;;) MHD_run_wait(daemon_, -1);
  }
  static void version() { bench_version(MHD_get_version(), "libmicrohttpd"); }

 private:
  static MHD_Response* prepared(std::string_view body) {
    auto* bytes = const_cast<char*>(body.data());
    MHD_Response* response =
        MHD_create_response_from_buffer(body.size(), bytes, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
    return response;
  }

  // Called first with the header section alone, then with each piece of a body, then once more, for
  // the response.
  static MHD_Result on_request(void* context, MHD_Connection* connection, const char* url,
                               const char*, const char*, const char*, std::size_t* size,
                               void** state) {
    static char no_body;
    const std::string_view path = url;
    if (*state == nullptr) {
      *state = path == "/upload" ? static_cast<void*>(new std::uint64_t(0)) : &no_body;
      return MHD_YES;
    }
    auto& server = *static_cast<Server*>(context);
    if (path == "/hello") return MHD_queue_response(connection, 200, server.hello_);
    if (path == "/page") return MHD_queue_response(connection, 200, server.page_);
    if (path == "/file")
      return answer(connection, MHD_create_response_from_fd(kFileSize, dup(bench_file())));
    auto* received = static_cast<std::uint64_t*>(*state);
    if (*size > 0) {
      *received += std::exchange(*size, 0);
      return MHD_YES;
    }
    const std::string text = std::to_string(*received);
    delete received;
    return answer(connection,
                  MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()),
                                                  MHD_RESPMEM_MUST_COPY));
  }

  static MHD_Result answer(MHD_Connection* connection, MHD_Response* response) {
    const MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
  }

  MHD_Response* const hello_;
  MHD_Response* const page_;
  MHD_Daemon* daemon_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
