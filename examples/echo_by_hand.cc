// A TCP echo server and a client on bare descriptors, in one loop. echo.cc does it with Streams.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>

#include "spate/io.h"

using spate::Events;

namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }

  int fd() const { return fd_; }

 private:
  int fd_;
};

int open_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

class Server {
 public:
  explicit Server(spate::Loop& loop) : loop_(loop) {
    ::bind(listener_.fd(), generic(address_), sizeof(address_));
    socklen_t size = sizeof(address_);
    ::getsockname(listener_.fd(), generic(address_), &size);
    ::listen(listener_.fd(), SOMAXCONN);
    io_.start();
  }

  sockaddr_in& address() { return address_; }
  void stop_accepting() { io_.stop(); }

 private:
  class Session {
   public:
    Session(Server& server, int fd)
        : server_(server),
          socket_(fd),
          io_(server.loop_, fd, Events::read, spate::bind<&Session::on_ready>(this)) {
      io_.start();
    }

   private:
    void on_ready(spate::Io&, Events events) {
      if (any(events & Events::read)) {
        receive();
      } else {
        send();
      }
    }
    void receive() {
      char buffer[64 * 1024];
      const ssize_t size = ::recv(socket_.fd(), buffer, sizeof(buffer), 0);
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return server_.end(socket_.fd());
      unsent_.assign(buffer, static_cast<std::size_t>(size));
      send();
    }
    void send() {
      const ssize_t size = ::send(socket_.fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (size < 0 && errno != EAGAIN) return server_.end(socket_.fd());
      if (size > 0) unsent_.erase(0, static_cast<std::size_t>(size));
      io_.modify(unsent_.empty() ? Events::read : Events::write);
    }

    Server& server_;
    Socket socket_;
    spate::Io io_;
    std::string unsent_;
  };

  void on_connection() {
    const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) sessions_.try_emplace(fd, *this, fd);
  }
  void end(int fd) { sessions_.erase(fd); }

  spate::Loop& loop_;
  Socket listener_{open_socket()};
  sockaddr_in address_{.sin_family = AF_INET,
                       .sin_port = 0,
                       .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                       .sin_zero = {}};
  spate::Io io_{loop_, listener_.fd(), Events::read, spate::bind<&Server::on_connection>(this)};
  std::unordered_map<int, Session> sessions_;
};

class Client {
 public:
  Client(spate::Loop& loop, Server& server, std::string message)
      : server_(server),
        message_(std::move(message)),
        io_(loop, socket_.fd(), Events::read | Events::write,
            spate::bind<&Client::on_ready>(this)) {
    ::connect(socket_.fd(), generic(server.address()), sizeof(sockaddr_in));
    io_.start();
  }

  bool succeeded() const { return echo_ == message_; }

 private:
  void on_ready(spate::Io&, Events events) {
    if (any(events & Events::write)) send();
    if (any(events & Events::read)) receive();
  }
  void send() {
    const char* rest = message_.data() + sent_;
    const ssize_t size = ::send(socket_.fd(), rest, message_.size() - sent_, MSG_NOSIGNAL);
    if (size > 0) sent_ += static_cast<std::size_t>(size);
    if (sent_ < message_.size()) return;
    io_.modify(Events::read);
    ::shutdown(socket_.fd(), SHUT_WR);
  }
  void receive() {
    char buffer[64 * 1024];
    const ssize_t size = ::recv(socket_.fd(), buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size > 0) return void(echo_.append(buffer, static_cast<std::size_t>(size)));
    io_.stop();
    server_.stop_accepting();
  }

  Server& server_;
  std::string message_;
  std::string echo_;
  std::size_t sent_ = 0;
  Socket socket_{open_socket()};
  spate::Io io_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  Server server{*loop};
  Client client{*loop, server, std::string(1'000'000, '*')};
  loop->run();
  std::printf("%s\n", client.succeeded() ? "all came back" : "something was lost");
  return client.succeeded() ? 0 : 1;
}
