// An awaitable for each connection, which reads into its own buffer. The bytes are written at once;
// an awaited async_write sends the rest that the kernel does not take. Errors are values
// (redirect_error), as exceptions would cost more. No idle timeouts. Neither locks nor the
// type-erased executor.
#include <asio.hpp>

#include "harness/server.h"

namespace {

using asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
template <class T>
using Awaitable = asio::awaitable<T, Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait;

Awaitable<void> echo(Socket socket, Tally* tally) {
  const std::unique_ptr<char[]> buffer(new char[kReadSize]);
  std::error_code error;
  while (!error) {
    const std::size_t size = co_await socket.async_read_some(asio::buffer(buffer.get(), kReadSize),
                                                             asio::redirect_error(kAwait, error));
    if (error) break;
    tally->bytes += size;
    const std::size_t sent = socket.write_some(asio::buffer(buffer.get(), size), error);
    if (sent == size) continue;
    co_await asio::async_write(socket, asio::buffer(buffer.get() + sent, size - sent),
                               asio::redirect_error(kAwait, error));
  }
  ++tally->closed;
}

Awaitable<void> accept(Acceptor acceptor, Tally* tally) {
  const Executor executor = acceptor.get_executor();
  for (;;) {
    Socket socket = co_await acceptor.async_accept(kAwait);
    ++tally->accepted;
    socket.non_blocking(true);
    socket.set_option(tcp::no_delay(true));
    asio::co_spawn(executor, echo(std::move(socket), tally), asio::detached);
  }
}

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally) : io_(ASIO_CONCURRENCY_HINT_UNSAFE) {
    asio::co_spawn(io_, accept(Acceptor(io_, tcp::v4(), socket), &tally), asio::detached);
  }

  void run() { io_.run(); }
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

 private:
  asio::io_context io_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
