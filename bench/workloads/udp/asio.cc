// Asio has no batches: waits until the socket is readable, then receives and sends until nothing is
// left. Neither locks nor the type-erased executor.
#include <asio.hpp>

#include "harness/server.h"

namespace {

using asio::ip::udp;
using Socket = asio::basic_datagram_socket<udp, asio::io_context::executor_type>;

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally)
      : tally_(tally), io_(ASIO_CONCURRENCY_HINT_UNSAFE), socket_(io_, udp::v4(), socket) {
    socket_.non_blocking(true);
    receive();
  }

  void run() { io_.run(); }
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

 private:
  // The first packet comes through the loop; those after it are read at once.
  void receive() {
    socket_.async_receive_from(
        asio::buffer(room_), peer_, [this](std::error_code error, std::size_t size) {
          while (!error) {
            echo(size);
            size = socket_.receive_from(asio::buffer(room_), peer_, 0, error);
          }
          receive();
        });
  }

  void echo(std::size_t size) {
    tally_.bytes += size;
    std::error_code ignored;
    socket_.send_to(asio::buffer(room_, size), peer_, 0, ignored);
  }

  Tally& tally_;
  asio::io_context io_;
  Socket socket_;
  udp::endpoint peer_;
  char room_[2048];
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
