// A TCP echo server on bare descriptors, with Io. echo.cc does this with sessions.
//   echo_by_hand 7000          talk to it: nc localhost 7000
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string>
#include <unordered_map>

#include "spate/io.h"

using spate::Events;

namespace {

void set_flags(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

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

class Server {
 public:
  Server(spate::Loop& loop, int fd) : loop_(loop), listener_(fd) { io_.start(); }

 private:
  class Connection {
   public:
    Connection(Server& server, int fd)
        : server_(server),
          socket_(fd),
          io_(server.loop_, fd, Events::read, spate::bind<&Connection::on_ready>(this)) {
      io_.start();
    }

   private:
    void on_ready(spate::Io&, Events events) {
      const bool goes_on = any(events & Events::write) ? send() : receive();
      if (!goes_on) server_.connections_.erase(socket_.fd());
    }
    bool receive() {
      char buffer[64 * 1024];
      const ssize_t size = ::recv(socket_.fd(), buffer, sizeof(buffer), 0);
      if (size <= 0) return size < 0 && errno == EAGAIN;
      unsent_.assign(buffer, static_cast<std::size_t>(size));
      return send();
    }
    bool send() {
      const ssize_t size = ::send(socket_.fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (size < 0 && errno != EAGAIN) return false;
      if (size > 0) unsent_.erase(0, static_cast<std::size_t>(size));
      io_.modify(unsent_.empty() ? Events::read : Events::write);
      return true;
    }

    Server& server_;
    Socket socket_;
    spate::Io io_;
    std::string unsent_;
  };

  void on_connection() {
    const int fd = ::accept(listener_.fd(), nullptr, nullptr);
    if (fd < 0) return;
    set_flags(fd);
    connections_.try_emplace(fd, *this, fd);
  }

  spate::Loop& loop_;
  Socket listener_;
  spate::Io io_{loop_, listener_.fd(), Events::read, spate::bind<&Server::on_connection>(this)};
  std::unordered_map<int, Connection> connections_;
};

spate::Result<int> listen_at(int port) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM, 0);
  set_flags(fd);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, generic, size) < 0 || ::listen(fd, SOMAXCONN) < 0 ||
      ::getsockname(fd, generic, &size) < 0)
    return std::unexpected(std::error_code(errno, std::system_category()));
  std::cout << "[::]:" << ntohs(address.sin6_port) << std::endl;
  return fd;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: echo_by_hand PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const Server server(*loop, spate::must(listen_at(std::atoi(argv[1]))));
  loop->run();
}
