// Whole messages are answered in place, in evpp's buffer, and sent in one call.
#include <evpp/buffer.h>
#include <evpp/event_loop.h>
#include <evpp/tcp_conn.h>
#include <evpp/tcp_server.h>

#include "workloads/header_body/server.h"

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
      auto* bytes = const_cast<char*>(buffer->data());
      const std::size_t used = answer_whole(bytes, buffer->length());
      tally_.bytes += used;
      if (used == 0) return;
      connection->Send(bytes, used);
      buffer->Skip(used);
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
