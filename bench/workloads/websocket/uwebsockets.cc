// uWebSockets, without TLS and compression: each message is sent back where it is shown, or
// published to a topic that all have subscribed to.
#define UWS_NO_ZLIB
#include <string_view>

#include "harness/server.h"
#include "uWebSockets/App.h"

namespace {

struct Nothing {};
using Socket = uWS::WebSocket<false, true, Nothing>;

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&) {
    const int port = bench_give_up(socket);
    app_.ws<Nothing>("/echo", {.maxPayloadLength = kLargest,
                               .message = [](Socket* from, std::string_view message,
                                             uWS::OpCode kind) { from->send(message, kind); }});
    app_.ws<Nothing>("/tell",
                     {.maxPayloadLength = kLargest,
                      .open = [](Socket* opened) { opened->subscribe("all"); },
                      .message = [this](Socket*, std::string_view message,
                                        uWS::OpCode kind) { app_.publish("all", message, kind); }});
    app_.listen("127.0.0.1", port, [](us_listen_socket_t* listener) {
      if (listener == nullptr) bench_die("uWebSockets: listen");
    });
  }

  void run() { app_.run(); }
  static void version() { bench_version("as installed", nullptr); }

 private:
  static constexpr unsigned kLargest = 64 * 1024;

  uWS::App app_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
