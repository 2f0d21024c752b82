// As in muduo's chat examples: each message is sent to each connection in a separate call.
#include <muduo/base/Logging.h>
#include <muduo/net/EventLoop.h>
#include <muduo/net/InetAddress.h>
#include <muduo/net/TcpServer.h>

#include <set>

#include "workloads/fanout/server.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : size_(std::size_t(options.number("size", 64))),
        tally_(tally),
        server_(&loop_, muduo::net::InetAddress("127.0.0.1", bench_give_up(socket)), "") {
    server_.setConnectionCallback([this](const muduo::net::TcpConnectionPtr& connection) {
      if (!connection->connected()) {
        ++tally_.closed;
        connections_.erase(connection);
        return;
      }
      ++tally_.accepted;
      connection->setTcpNoDelay(true);
      connections_.insert(connection);
    });
    server_.setMessageCallback([this](const muduo::net::TcpConnectionPtr& connection,
                                      muduo::net::Buffer* buffer, muduo::Timestamp) {
      while (buffer->readableBytes() >= size_) {
        for (const muduo::net::TcpConnectionPtr& other : connections_)
          if (other != connection) other->send(buffer->peek(), int(size_));
        buffer->retrieve(size_);
        tally_.bytes += size_;
      }
    });
    server_.start();
  }

  void run() { loop_.loop(); }
  static void version() {
    muduo::Logger::setLogLevel(muduo::Logger::WARN);
    bench_version("as installed", nullptr);
  }

 private:
  const std::size_t size_;
  Tally& tally_;
  std::set<muduo::net::TcpConnectionPtr> connections_;
  muduo::net::EventLoop loop_;
  muduo::net::TcpServer server_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
