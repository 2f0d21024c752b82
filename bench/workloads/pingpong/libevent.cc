// bufferevents, as muduo's and evpp's comparisons have them: what is in the input buffer moves to
// the output buffer without a copy.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Side {
  Side(std::span<const int> sockets, Tally& the_tally) : tally(the_tally), base(event_base_new()) {
    for (const int fd : sockets) {
      bufferevent* connection = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
      bufferevent_setcb(connection, on_read, nullptr, nullptr, this);
      bufferevent_enable(connection, EV_READ | EV_WRITE);
      connections.push_back(connection);
    }
    timeval often = {0, 20000};
    look = event_new(base, -1, EV_PERSIST, on_look, this);
    event_add(look, &often);
  }
  ~Side() {
    for (bufferevent* connection : connections) bufferevent_free(connection);
    event_free(look);
    event_base_free(base);
  }

  void send_to_all(std::span<const char> block) {
    for (bufferevent* connection : connections)
      bufferevent_write(connection, block.data(), block.size());
  }
  void run() { event_base_dispatch(base); }
  static void version() { bench_version(event_get_version(), "libevent"); }

  static void on_read(bufferevent* connection, void* context) {
    auto& side = *static_cast<Side*>(context);
    evbuffer* input = bufferevent_get_input(connection);
    const std::size_t size = evbuffer_get_length(input);
    evbuffer_add_buffer(bufferevent_get_output(connection), input);
    if (side.tally.add(size)) event_base_loopbreak(side.base);
  }
  static void on_look(int, short, void* context) {
    auto& side = *static_cast<Side*>(context);
    if (side.tally.over->load()) event_base_loopbreak(side.base);
  }

  Tally& tally;
  event_base* base;
  event* look;
  std::vector<bufferevent*> connections;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
