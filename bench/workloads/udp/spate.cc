// The packets of one receive batch are sent back as a batch; with --batch 0, one send a packet.
#include <spate/net/datagram.h>

#include "harness/server.h"
#include "harness/spate_loop.h"

namespace {

class Server final : public spate::DatagramHandler {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : batch_(options.number("batch", 1) != 0),
        tally_(tally),
        loop_(bench_loop(options.argc, options.argv)),
        datagram_(std::move(*spate::Datagram::adopt(*loop_, socket))) {
    datagram_.start(*this);
  }

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

  void on_packets(std::span<const spate::Packet> packets) override {
    answers_.clear();
    for (const spate::Packet& packet : packets) {
      tally_.bytes += packet.bytes.size();
      if (batch_)
        answers_.push_back({packet.bytes, &packet.peer});
      else
        datagram_.send(packet.bytes, packet.peer);
    }
    if (batch_) datagram_.send(answers_);
  }

 private:
  const bool batch_;
  Tally& tally_;
  std::unique_ptr<spate::Loop> loop_;
  spate::Datagram datagram_;
  std::vector<spate::Outgoing> answers_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
