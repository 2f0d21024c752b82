// After Asio's chat server: a session has a queue of messages, and async_write has one of them at a
// time. A message that the kernel takes at once bypasses the queue, and is not copied. Neither
// locks nor the type-erased executor.
#include <asio.hpp>
#include <deque>

#include "workloads/fanout/server.h"

namespace {

using asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;

class Session;

struct Hub {
  const std::size_t size;
  Tally& tally;
  std::vector<Session*> sessions;
};

class Session {
 public:
  Session(Hub& hub, Socket socket)
      : hub_(hub), socket_(std::move(socket)), inbox_(hub.size), buffer_(new char[kReadSize]) {
    ++hub_.tally.accepted;
    hub_.sessions.push_back(this);
    socket_.non_blocking(true);
    socket_.set_option(tcp::no_delay(true));
    read();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(buffer_.get(), kReadSize),
                            [this](std::error_code error, std::size_t size) {
                              if (error) return close();
                              publish(size);
                              read();
                            });
  }

  void publish(std::size_t size) {
    hub_.tally.bytes += size;
    inbox_.take(buffer_.get(), size, [this](const char* bytes, std::size_t count) {
      for (Session* other : hub_.sessions)
        if (other != this) other->deliver(bytes, count);
    });
  }

  void deliver(const char* bytes, std::size_t size) {
    std::error_code error;
    const std::size_t sent =
        queue_.empty() ? socket_.write_some(asio::buffer(bytes, size), error) : 0;
    if (sent == size) return;
    queue_.emplace_back(bytes + sent, size - sent);
    if (queue_.size() == 1) write_next();
  }

  void write_next() {
    asio::async_write(socket_, asio::buffer(queue_.front()),
                      [this](std::error_code error, std::size_t) {
                        queue_.pop_front();
                        if (error) queue_.clear();
                        if (!queue_.empty()) return write_next();
                        settle();
                      });
  }

  void close() {
    ++hub_.tally.closed;
    std::erase(hub_.sessions, this);
    std::error_code ignored;
    socket_.close(ignored);
    settle();
  }

  // When it is closed and nothing of Asio's holds on to it.
  void settle() {
    if (!socket_.is_open() && queue_.empty()) delete this;
  }

  Hub& hub_;
  Socket socket_;
  Inbox inbox_;
  const std::unique_ptr<char[]> buffer_;
  std::deque<std::string> queue_;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : hub_{std::size_t(options.number("size", 64)), tally, {}},
        io_(ASIO_CONCURRENCY_HINT_UNSAFE),
        acceptor_(io_, tcp::v4(), socket) {
    accept();
  }

  void run() { io_.run(); }
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

 private:
  void accept() {
    acceptor_.async_accept(io_, [this](std::error_code error, Socket socket) {
      if (error) bench_die("accept");
      new Session(hub_, std::move(socket));
      accept();
    });
  }

  Hub hub_;
  asio::io_context io_;
  asio::basic_socket_acceptor<tcp, Executor> acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
