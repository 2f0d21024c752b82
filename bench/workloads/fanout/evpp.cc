// Each message is sent to each connection in a separate call.
#include <evpp/buffer.h>
#include <evpp/event_loop.h>
#include <evpp/tcp_conn.h>
#include <evpp/tcp_server.h>

#include <set>

#include "workloads/fanout/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : size_(std::size_t(options.number("size", 64))),
        tally_(tally),
        server_(&loop_, "127.0.0.1:" + std::to_string(bench_give_up(socket)), "", 0) {
    server_.SetConnectionCallback([this](const evpp::TCPConnPtr& connection) {
      if (!connection->IsConnected()) {
        ++tally_.closed;
        connections_.erase(connection);
        return;
      }
      ++tally_.accepted;
      connection->SetTCPNoDelay(true);
      connections_.insert(connection);
    });
    server_.SetMessageCallback([this](const evpp::TCPConnPtr& connection, evpp::Buffer* buffer) {
      while (buffer->length() >= size_) {
        for (const evpp::TCPConnPtr& other : connections_)
          if (other != connection) other->Send(buffer->data(), size_);
        buffer->Skip(size_);
        tally_.bytes += size_;
      }
    });
    if (!server_.Init() || !server_.Start()) bench_die("evpp::TCPServer");
  }

  void run() { loop_.Run(); }
  static void version() { bench_version("as installed", nullptr); }

 private:
  const std::size_t size_;
  Tally& tally_;
  std::set<evpp::TCPConnPtr> connections_;
  evpp::EventLoop loop_;
  evpp::TCPServer server_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
