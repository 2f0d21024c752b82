// A Stream for each connection; FixedSize finds the messages, and each is written to all others.
// That they leave together, and are copied once for all, is the Streams' doing.
#include <spate/net/framing.h>
#include <spate/net/listener.h>
#include <spate/net/stream.h>

#include "harness/spate_loop.h"
#include "workloads/fanout/server.h"

namespace {

class Session;

struct Hub {
  const std::size_t size;
  Tally& tally;
  std::vector<Session*> sessions;

  void publish(const Session& from, spate::Bytes message);
};

class Session final : public spate::StreamHandler {
 public:
  Session(Hub& hub, spate::Stream stream) : hub_(hub), stream_(std::move(stream)) {
    ++hub_.tally.accepted;
    hub_.sessions.push_back(this);
    stream_.start(*this);
  }

  void write(spate::Bytes message) { stream_.write(message); }

  std::size_t on_data(spate::Bytes bytes) override {
    const std::size_t used =
        split(bytes, spate::FixedSize{hub_.size}, [this](spate::Bytes message) {
          hub_.publish(*this, message);
        }).used;
    hub_.tally.bytes += used;
    return used;
  }
  void on_closed(std::error_code) override {
    ++hub_.tally.closed;
    std::erase(hub_.sessions, this);
    delete this;
  }

 private:
  Hub& hub_;
  spate::Stream stream_;
};

void Hub::publish(const Session& from, spate::Bytes message) {
  for (Session* session : sessions)
    if (session != &from) session->write(message);
}

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        hub_{std::size_t(options.number("size", 64)), tally, {}},
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [this](spate::Stream stream, const spate::Address&) {
              new Session(hub_, std::move(stream));
            }))) {}

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  Hub hub_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
