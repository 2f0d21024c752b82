// Input goes to send(), as in muduo's own ping-pong.
#include <muduo/base/Logging.h>
#include <muduo/net/EventLoop.h>
#include <muduo/net/InetAddress.h>
#include <muduo/net/TcpServer.h>

#include "harness/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally)
      : tally_(tally),
        server_(&loop_, muduo::net::InetAddress("127.0.0.1", bench_give_up(socket)), "") {
    server_.setConnectionCallback([this](const muduo::net::TcpConnectionPtr& connection) {
      ++(connection->connected() ? tally_.accepted : tally_.closed);
      if (connection->connected()) connection->setTcpNoDelay(true);
    });
    server_.setMessageCallback([this](const muduo::net::TcpConnectionPtr& connection,
                                      muduo::net::Buffer* buffer, muduo::Timestamp) {
      tally_.bytes += buffer->readableBytes();
      connection->send(buffer);
    });
    server_.start();
  }

  void run() { loop_.loop(); }
  static void version() {
    muduo::Logger::setLogLevel(muduo::Logger::WARN);
    bench_version("as installed", nullptr);
  }

 private:
  Tally& tally_;
  muduo::net::EventLoop loop_;
  muduo::net::TcpServer server_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
