// async_read_some into a buffer of the connection's, then async_write of what came.
#include <asio.hpp>
#include <list>
#include <memory>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Side {
  struct Connection {
    Connection(Side& the_side, int fd)
        : side(the_side), socket(the_side.io, asio::ip::tcp::v4(), fd), buffer(new char[kRoom]) {}

    void read() {
      socket.async_read_some(asio::buffer(buffer.get(), kRoom),
                             [this](std::error_code error, std::size_t size) {
                               if (error) return;
                               write(size);
                               if (side.tally.add(size)) side.io.stop();
                             });
    }
    void write(std::size_t size) {
      asio::async_write(socket, asio::buffer(buffer.get(), size),
                        [this](std::error_code error, std::size_t) {
                          if (!error) read();
                        });
    }

    static constexpr std::size_t kRoom = 65536;
    Side& side;
    asio::ip::tcp::socket socket;
    std::unique_ptr<char[]> buffer;
  };

  Side(std::span<const int> sockets, Tally& the_tally) : tally(the_tally), io(1), look(io) {
    for (const int fd : sockets) connections.emplace_back(*this, fd).read();
    look_again();
  }

  void look_again() {
    look.expires_after(std::chrono::milliseconds(20));
    look.async_wait([this](std::error_code error) {
      if (error) return;
      if (tally.over->load()) return io.stop();
      look_again();
    });
  }
  // The first block goes out as one write beside the reads.
  void send_to_all(std::span<const char> block) {
    for (Connection& one : connections)
      asio::async_write(one.socket, asio::buffer(block.data(), block.size()),
                        [](std::error_code, std::size_t) {});
    io.poll();
  }
  void run() { io.run(); }
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

  Tally& tally;
  asio::io_context io;
  asio::steady_timer look;
  std::list<Connection> connections;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
