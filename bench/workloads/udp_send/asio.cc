// Asio has no batches: waits until the socket is readable, then receives and sends until nothing is
// left. Neither locks nor the type-erased executor.
#include <asio.hpp>

#include "harness/server.h"
#include "workloads/udp_send/train.h"

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
  // The first request comes through the loop; those after it are read at once.
  void receive() {
    socket_.async_receive_from(
        asio::buffer(room_), peer_, [this](std::error_code error, std::size_t size) {
          while (!error) {
            answer(size);
            size = socket_.receive_from(asio::buffer(room_), peer_, 0, error);
          }
          receive();
        });
  }

  void answer(std::size_t size) {
    tally_.bytes += size;
    for (std::size_t i = 0; i < kTrain; ++i) {
      std::error_code error;
      socket_.send_to(asio::buffer(train_.bytes + i * kPacket, kPacket), peer_, 0, error);
      if (error) bench_die("a packet was not sent");
    }
  }

  Tally& tally_;
  const Train train_;
  asio::io_context io_;
  Socket socket_;
  udp::endpoint peer_;
  char room_[2048];
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
