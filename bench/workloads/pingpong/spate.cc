#include <spate/loop.h>
#include <spate/net/stream.h>
#include <spate/timer.h>

#include <list>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Echo final : spate::StreamHandler {
  Echo(spate::Loop& loop, int fd, Tally& the_tally)
      : tally(the_tally), stream(std::move(*spate::Stream::adopt(loop, fd))) {
    stream.start(*this);
  }
  std::size_t on_data(spate::Bytes bytes) override {
    stream.write(bytes);
    if (tally.add(bytes.size())) stream.loop().stop();
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

  Tally& tally;
  spate::Stream stream;
};

struct Side {
  Side(std::span<const int> sockets, Tally& the_tally)
      : tally(the_tally), loop(std::move(*spate::Loop::create())), look(*loop, [this] {
          if (tally.over->load()) loop->stop();
        }) {
    for (const int fd : sockets) echoes.emplace_back(*loop, fd, tally);
    look.start(std::chrono::milliseconds(20), std::chrono::milliseconds(20));
  }
  ~Side() {
    for (Echo& echo : echoes) echo.stream.abort();
  }

  void send_to_all(std::span<const char> block) {
    for (Echo& echo : echoes) echo.stream.write(std::string_view(block.data(), block.size()));
  }
  void run() { loop->run(); }
  static void version() { bench_version("0.1", nullptr); }

  Tally& tally;
  std::unique_ptr<spate::Loop> loop;
  spate::Timer look;
  std::list<Echo> echoes;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
