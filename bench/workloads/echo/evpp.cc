// Input goes to Send(), as in evpp's own throughput benchmark.
#include <evpp/buffer.h>
#include <evpp/event_loop.h>
#include <evpp/tcp_conn.h>
#include <evpp/tcp_server.h>

#include "harness/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally)
      : tally_(tally),
        server_(&loop_, "127.0.0.1:" + std::to_string(bench_give_up(socket)), "", 0) {
    server_.SetConnectionCallback([this](const evpp::TCPConnPtr& connection) {
      ++(connection->IsConnected() ? tally_.accepted : tally_.closed);
      if (connection->IsConnected()) connection->SetTCPNoDelay(true);
    });
    server_.SetMessageCallback([this](const evpp::TCPConnPtr& connection, evpp::Buffer* buffer) {
      tally_.bytes += buffer->length();
      connection->Send(buffer);
    });
    if (!server_.Init() || !server_.Start()) bench_die("evpp::TCPServer");
  }

  void run() { loop_.Run(); }
  static void version() { bench_version("as installed", nullptr); }

 private:
  Tally& tally_;
  evpp::EventLoop loop_;
  evpp::TCPServer server_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
