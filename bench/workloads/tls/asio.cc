// Boost.Asio's ssl::stream: async_read_some into the connection's 64 KiB, async_write of the input
// or of the large reply. Neither locks nor the type-erased executor.
#include <utility>  // Boost 1.74 forgets it.

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/version.hpp>

#include "workloads/tls/openssl_server.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;

class Session {
 public:
  Session(Socket socket, asio::ssl::context& context, bool is_bulk, Tally& tally)
      : tally_(tally),
        is_bulk_(is_bulk),
        stream_(std::move(socket), context),
        buffer_(new char[kReadSize]) {
    stream_.next_layer().set_option(tcp::no_delay(true));
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [this](error_code error) { error ? end() : read(); });
  }

 private:
  void read() {
    stream_.async_read_some(
        asio::buffer(buffer_.get(), kReadSize),
        [this](error_code error, std::size_t size) { error ? end() : on_arrived(size); });
  }

  void on_arrived(std::size_t size) {
    tally_.bytes += size;
    if (!is_bulk_) return write(asio::buffer(buffer_.get(), size));
    due_ += asked_.take(size);
    next();
  }

  void next() {
    if (due_ == 0) return read();
    --due_;
    write(asio::buffer(bench_bulk()));
  }

  void write(asio::const_buffer bytes) {
    asio::async_write(stream_, bytes,
                      [this](error_code error, std::size_t) { error ? end() : next(); });
  }

  void end() {
    ++tally_.closed;
    delete this;
  }

  Tally& tally_;
  const bool is_bulk_;
  asio::ssl::stream<Socket> stream_;
  std::unique_ptr<char[]> buffer_;
  Asked asked_;
  std::size_t due_ = 0;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : kind_(options),
        tally_(tally),
        context_(bench_ssl_context(kind_)),
        io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE),
        acceptor_(io_, tcp::v4(), socket) {
    accept();
  }

  void run() { io_.run(); }
  static void version() { bench_version(BOOST_LIB_VERSION, nullptr); }

 private:
  void accept() {
    acceptor_.async_accept(io_, [this](error_code error, Socket socket) {
      if (error) bench_die("accept");
      ++tally_.accepted;
      new Session(std::move(socket), context_, kind_.is_bulk, tally_);
      accept();
    });
  }

  const TlsServerKind kind_;
  Tally& tally_;
  asio::ssl::context context_;
  asio::io_context io_;
  asio::basic_socket_acceptor<tcp, Executor> acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
