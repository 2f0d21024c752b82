// The requests of one receive batch are answered by one send(): a batch of trains, or of packets.
#include <spate/net/datagram.h>

#include "harness/server.h"
#include "harness/spate_loop.h"
#include "workloads/udp_send/train.h"

namespace {

class Server final : public spate::DatagramHandler {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : segments_(options.number("segments", 1) != 0),
        tally_(tally),
        loop_(bench_loop(options.argc, options.argv)),
        datagram_(std::move(*spate::Datagram::adopt(*loop_, socket))) {
    datagram_.start(*this);
  }

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

  void on_packets(std::span<const spate::Packet> packets) override {
    packets_.clear();
    for (const spate::Packet& packet : packets) {
      tally_.bytes += packet.bytes.size();
      add_train(packet.peer);
    }
    if (datagram_.send(packets_) != packets_.size()) bench_die("a packet was not sent");
  }

 private:
  void add_train(const spate::Address& peer) {
    const spate::Bytes bytes = spate::bytes_of({train_.bytes, sizeof train_.bytes});
    if (segments_) return packets_.push_back({.bytes = bytes, .peer = &peer, .segment = kPacket});
    for (std::size_t at = 0; at < bytes.size(); at += kPacket)
      packets_.push_back({.bytes = bytes.subspan(at, kPacket), .peer = &peer});
  }

  const bool segments_;
  Tally& tally_;
  const Train train_;
  std::unique_ptr<spate::Loop> loop_;
  spate::Datagram datagram_;
  std::vector<spate::Outgoing> packets_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
