// As the seed's Asio program has it: async_read of the header, then of the body. With --buffered 1:
// async_read_some of the available bytes, and whole messages are answered in place. Either way a
// reply is written at once, and async_write sends the rest that the kernel does not take. Neither
// locks nor the type-erased executor.
#include <asio.hpp>

#include "workloads/header_body/server.h"

namespace {

using asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;

class Session {
 public:
  Session(Socket socket, bool buffered, Tally& tally)
      : socket_(std::move(socket)),
        buffered_(buffered),
        tally_(tally),
        buffer_(new char[kReadSize]) {
    socket_.non_blocking(true);
    socket_.set_option(tcp::no_delay(true));
    read();
  }

 private:
  void read() {
    if (buffered_)
      read_some();
    else
      read_header();
  }

  void read_header() {
    asio::async_read(socket_, asio::buffer(buffer_.get(), sizeof(Header)),
                     [this](std::error_code error, std::size_t) {
                       if (error) return end();
                       read_body(header_at(buffer_.get()).message_size());
                     });
  }

  void read_body(std::size_t whole) {
    if (whole > kReadSize) return end();
    asio::async_read(socket_, asio::buffer(buffer_.get() + sizeof(Header), whole - sizeof(Header)),
                     [this, whole](std::error_code error, std::size_t) {
                       if (error) return end();
                       answer(whole);
                     });
  }

  void read_some() {
    socket_.async_read_some(asio::buffer(buffer_.get() + kept_, kReadSize - kept_),
                            [this](std::error_code error, std::size_t size) {
                              if (error) return end();
                              kept_ += size;
                              answer(kept_);
                            });
  }

  void answer(std::size_t size) {
    const std::size_t used = answer_whole(buffer_.get(), size);
    tally_.bytes += used;
    std::error_code error;
    const std::size_t sent =
        used == 0 ? 0 : socket_.write_some(asio::buffer(buffer_.get(), used), error);
    if (sent == used) return next(used);
    asio::async_write(socket_, asio::buffer(buffer_.get() + sent, used - sent),
                      [this, used](std::error_code failed, std::size_t) {
                        if (failed) return end();
                        next(used);
                      });
  }

  // Unused bytes move to the front.
  void next(std::size_t used) {
    if (buffered_ && kept_ > used) memmove(buffer_.get(), buffer_.get() + used, kept_ - used);
    kept_ -= buffered_ ? used : 0;
    read();
  }

  void end() {
    ++tally_.closed;
    delete this;
  }

  Socket socket_;
  const bool buffered_;
  Tally& tally_;
  const std::unique_ptr<char[]> buffer_;
  std::size_t kept_ = 0;  // Bytes in the buffer, when it is buffered.
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : tally_(tally),
        buffered_(options.number("buffered") != 0),
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
      ++tally_.accepted;
      new Session(std::move(socket), buffered_, tally_);
      accept();
    });
  }

  Tally& tally_;
  const bool buffered_;
  asio::io_context io_;
  asio::basic_socket_acceptor<tcp, Executor> acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
