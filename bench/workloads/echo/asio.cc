// async_read_some into the connection's buffer. The bytes are written at once; async_write sends
// the rest that the kernel does not take. With --wait 1 a connection has no buffer: it waits until
// it is readable and reads into one that all share, which saves memory and costs a system call.
// Idle timeouts as Asio's examples have them: the timer looks at the last activity when it is due.
// Neither locks nor the type-erased executor.
#include <asio.hpp>

#include "harness/server.h"

namespace {

using asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

class Server;

class Session {
 public:
  Session(Server& server, Socket socket);
  virtual ~Session() = default;

  void begin();
  virtual void touch() {}
  virtual void stop_timer() {}
  virtual bool is_waiting() const { return false; }
  bool is_open() const { return open_; }
  void close();
  void settle();

 protected:
  Server& server_;

 private:
  void read();
  void wait();
  void on_arrived(const char* bytes, std::size_t size);
  void write_rest(const char* bytes, std::size_t size);
  void next();

  Socket socket_;
  bool open_ = true;
  bool busy_ = false;  // Something of Asio's holds on to us.
  std::unique_ptr<char[]> buffer_;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& the_tally)
      : tally(the_tally),
        idle(options.number("idle_ms")),
        waits(options.number("wait") != 0),
        shared_buffer(waits ? new char[kReadSize] : nullptr),
        io(ASIO_CONCURRENCY_HINT_UNSAFE),
        acceptor_(io, tcp::v4(), socket) {
    accept();
  }

  void run() { io.run(); }
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

  Tally& tally;
  const std::chrono::milliseconds idle;
  const bool waits;
  const std::unique_ptr<char[]> shared_buffer;
  asio::io_context io;

 private:
  void accept();

  asio::basic_socket_acceptor<tcp, Executor> acceptor_;
};

class TimedSession final : public Session {
 public:
  TimedSession(Server& server, Socket socket)
      : Session(server, std::move(socket)), timer_(server.io) {
    touch();
    wait_until(last_active_ + server.idle);
  }
  void touch() override { last_active_ = std::chrono::steady_clock::now(); }
  void stop_timer() override { timer_.cancel(); }
  bool is_waiting() const override { return waiting_; }

 private:
  void wait_until(std::chrono::steady_clock::time_point when) {
    waiting_ = true;
    timer_.expires_at(when);
    timer_.async_wait([this](std::error_code) { on_timer(); });
  }
  void on_timer() {
    waiting_ = false;
    if (!is_open()) return settle();
    const auto due = last_active_ + server_.idle;
    if (due > std::chrono::steady_clock::now()) return wait_until(due);
    ++server_.tally.expired;
    close();
    settle();
  }

  Timer timer_;
  std::chrono::steady_clock::time_point last_active_;
  bool waiting_ = false;
};

Session::Session(Server& server, Socket socket)
    : server_(server),
      socket_(std::move(socket)),
      buffer_(server.waits ? nullptr : new char[kReadSize]) {
  socket_.non_blocking(true);
  socket_.set_option(tcp::no_delay(true));
}

void Session::begin() {
  busy_ = true;
  if (server_.waits)
    wait();
  else
    read();
}

void Session::read() {
  socket_.async_read_some(asio::buffer(buffer_.get(), kReadSize),
                          [this](std::error_code error, std::size_t size) {
                            if (error) return busy_ = false, close(), settle();
                            on_arrived(buffer_.get(), size);
                          });
}

void Session::wait() {
  socket_.async_wait(Socket::wait_read, [this](std::error_code error) {
    std::size_t size = 0;
    if (!error)
      size = socket_.read_some(asio::buffer(server_.shared_buffer.get(), kReadSize), error);
    if (error == asio::error::would_block) return wait();
    if (error) return busy_ = false, close(), settle();
    on_arrived(server_.shared_buffer.get(), size);
  });
}

void Session::on_arrived(const char* bytes, std::size_t size) {
  server_.tally.bytes += size;
  if (server_.idle.count() > 0) touch();
  std::error_code error;
  const std::size_t sent = socket_.write_some(asio::buffer(bytes, size), error);
  if (sent == size) return next();
  write_rest(bytes + sent, size - sent);
}

// The next connection reads into the shared buffer, so the rest must be copied.
void Session::write_rest(const char* bytes, std::size_t size) {
  std::shared_ptr<std::string> copy;
  if (server_.waits) {
    copy = std::make_shared<std::string>(bytes, size);
    bytes = copy->data();
  }
  asio::async_write(socket_, asio::buffer(bytes, size),
                    [this, copy](std::error_code error, std::size_t) {
                      if (error) return busy_ = false, close(), settle();
                      next();
                    });
}

void Session::next() {
  if (server_.waits)
    wait();
  else
    read();
}

void Session::close() {
  if (!open_) return;
  open_ = false;
  ++server_.tally.closed;
  std::error_code ignored;
  socket_.close(ignored);
  stop_timer();
}

void Session::settle() {
  if (!open_ && !busy_ && !is_waiting()) delete this;
}

void Server::accept() {
  acceptor_.async_accept(io, [this](std::error_code error, Socket socket) {
    if (error) bench_die("accept");
    ++tally.accepted;
    Session* session = idle.count() > 0 ? new TimedSession(*this, std::move(socket))
                                        : new Session(*this, std::move(socket));
    session->begin();
    accept();
  });
}

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
