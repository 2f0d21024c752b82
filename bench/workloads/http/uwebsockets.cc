// uWebSockets, without TLS and compression. A file is sent from memory, in pieces as the client
// takes them, as in its documentation's file server: it has no sendfile.
#define UWS_NO_ZLIB
#include <sys/mman.h>

#include <string>
#include <string_view>

#include "uWebSockets/App.h"
#include "workloads/http/server.h"

namespace {

using Response = uWS::HttpResponse<false>;

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&) {
    const int port = bench_give_up(socket);
    app_.get("/hello", [](Response* response, uWS::HttpRequest*) { answer(response, kHello); });
    app_.get("/page",
             [](Response* response, uWS::HttpRequest*) { answer(response, bench_page()); });
    app_.get("/file", [this](Response* response, uWS::HttpRequest*) { send_file(response); });
    app_.post("/upload", [](Response* response, uWS::HttpRequest*) { count(response); });
    app_.listen("127.0.0.1", port, [](us_listen_socket_t* listener) {
      if (listener == nullptr) bench_die("uWebSockets: listen");
    });
  }

  void run() { app_.run(); }
  static void version() { bench_version("as installed", nullptr); }

 private:
  static void answer(Response* response, std::string_view body) {
    response->writeHeader("Content-Type", "text/plain; charset=utf-8");
    response->end(body);
  }

  void send_file(Response* response) {
    response->writeHeader("Content-Type", "text/plain; charset=utf-8");
    response->onAborted([] {});
    const auto [is_sent, is_done] = response->tryEnd(file_, file_.size());
    if (is_sent || is_done) return;
    response->onWritable([this, response](std::uintmax_t offset) {
      return response->tryEnd(file_.substr(offset), file_.size()).first;
    });
  }

  static void count(Response* response) {
    response->onAborted([] {});
    response->onData(
        [response, size = std::size_t{0}](std::string_view bytes, bool is_last) mutable {
          size += bytes.size();
          if (is_last) answer(response, std::to_string(size));
        });
  }

  static std::string_view mapped_file() {
    void* bytes = mmap(nullptr, kFileSize, PROT_READ, MAP_PRIVATE, bench_file(), 0);
    if (bytes == MAP_FAILED) bench_die("mmap");
    return {static_cast<const char*>(bytes), kFileSize};
  }

  uWS::App app_;
  const std::string_view file_ = mapped_file();
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
