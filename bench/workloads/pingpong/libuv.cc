// One buffer for all reads; a write is tried at once, and only what is left over is queued.
#include <uv.h>

#include <list>
#include <string>

#include "workloads/pingpong/pingpong.h"

namespace {

struct Side;

struct Connection {
  uv_tcp_t handle;
  Side* side;
};

struct Write {
  uv_write_t request;
  std::string bytes;
};

struct Side {
  Side(std::span<const int> sockets, Tally& the_tally) : tally(the_tally) {
    uv_loop_init(&loop);
    for (const int fd : sockets) {
      Connection& one = connections.emplace_back();
      one.side = this;
      uv_tcp_init(&loop, &one.handle);
      one.handle.data = &one;
      if (uv_tcp_open(&one.handle, fd) != 0) bench_die("uv_tcp_open");
      uv_read_start(stream(one), on_allocate, on_read);
    }
    uv_timer_init(&loop, &look);
    look.data = this;
    uv_timer_start(&look, on_look, 20, 20);
  }
  ~Side() {
    for (Connection& one : connections)
      uv_close(reinterpret_cast<uv_handle_t*>(&one.handle), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&look), nullptr);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
  }

  void send_to_all(std::span<const char> block) {
    for (Connection& one : connections) write(one, block.data(), block.size());
  }
  void run() { uv_run(&loop, UV_RUN_DEFAULT); }
  static void version() { bench_version(uv_version_string(), "libuv"); }

  static uv_stream_t* stream(Connection& one) {
    return reinterpret_cast<uv_stream_t*>(&one.handle);
  }
  static void write(Connection& one, const char* bytes, std::size_t size) {
    uv_buf_t buffer = uv_buf_init(const_cast<char*>(bytes), unsigned(size));
    const int tried = uv_try_write(stream(one), &buffer, 1);
    const std::size_t sent = tried < 0 ? 0 : std::size_t(tried);
    if (sent == size) return;
    auto* left = new Write{{}, std::string(bytes + sent, size - sent)};
    left->request.data = left;
    buffer = uv_buf_init(left->bytes.data(), unsigned(left->bytes.size()));
    uv_write(&left->request, stream(one), &buffer, 1,
             [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
  }
  static void on_allocate(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
    static thread_local char room[65536];
    *buffer = uv_buf_init(room, sizeof room);
  }
  static void on_read(uv_stream_t* handle, ssize_t size, const uv_buf_t* buffer) {
    auto& one = *static_cast<Connection*>(handle->data);
    if (size == 0) return;
    if (size < 0) {
      uv_read_stop(handle);
      return;
    }
    write(one, buffer->base, std::size_t(size));
    if (one.side->tally.add(std::size_t(size))) uv_stop(&one.side->loop);
  }
  static void on_look(uv_timer_t* timer) {
    auto& side = *static_cast<Side*>(timer->data);
    if (side.tally.over->load()) uv_stop(&side.loop);
  }

  Tally& tally;
  uv_loop_t loop;
  uv_timer_t look;
  std::list<Connection> connections;
};

}  // namespace

int main(int argc, char** argv) { return PingPong<Side>::main(argc, argv); }
