// Receives with UV_UDP_RECVMMSG and sends with uv_udp_try_send: libuv sends only queued packets in
// batches, and queueing costs an allocation and a copy a packet.
#include <uv.h>

#include "harness/server.h"
#include "workloads/udp_send/train.h"

namespace {

constexpr std::size_t kRoom = 64 * 65536;  // recvmmsg takes 64 KiB of it for each packet.

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally) : tally_(tally), room_(new char[kRoom]) {
    uv_loop_init(&loop_);
    uv_udp_init_ex(&loop_, &handle_, AF_UNSPEC | UV_UDP_RECVMMSG);
    handle_.data = this;
    if (uv_udp_open(&handle_, socket) != 0) bench_die("uv_udp_open");
    uv_udp_recv_start(&handle_, on_allocate, on_packet);
  }

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
  static void version() { bench_version(uv_version_string(), "libuv"); }

 private:
  static void on_allocate(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    *buffer = uv_buf_init(static_cast<Server*>(handle->data)->room_.get(), kRoom);
  }

  static void on_packet(uv_udp_t* handle, ssize_t size, const uv_buf_t*, const sockaddr* peer,
                        unsigned) {
    if (size <= 0 || peer == nullptr) return;  // Nothing more, or the end of a batch.
    auto& server = *static_cast<Server*>(handle->data);
    server.tally_.bytes += std::size_t(size);
    for (std::size_t i = 0; i < kTrain; ++i) {
      const uv_buf_t packet = uv_buf_init(server.train_.bytes + i * kPacket, kPacket);
      if (uv_udp_try_send(handle, &packet, 1, peer) < 0) bench_die("a packet was not sent");
    }
  }

  Tally& tally_;
  const std::unique_ptr<char[]> room_;
  Train train_;
  uv_loop_t loop_;
  uv_udp_t handle_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
