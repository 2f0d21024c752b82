// Appends the available bytes to the rest of the last message, in one buffer, and answers in place.
// A write is tried at once, and only the rest is queued.
#include <uv.h>

#include "workloads/header_body/server.h"

namespace {

class Server;

struct Session {
  uv_tcp_t handle;
  std::string rest;  // An incomplete message.
};

struct Write {
  uv_write_t request;
  std::string bytes;
};

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally& tally)
      : tally_(tally), buffer_(new char[kReadSize]) {
    uv_loop_init(&loop_);
    loop_.data = this;
    uv_tcp_init(&loop_, &listener_);
    uv_tcp_open(&listener_, socket);
    if (uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), 4096, on_accept) != 0)
      bench_die("uv_listen");
  }

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
  static void version() { bench_version(uv_version_string(), "libuv"); }

 private:
  static Server& server_of(uv_loop_t* loop) { return *static_cast<Server*>(loop->data); }

  static void on_accept(uv_stream_t* listener, int) {
    Server& server = server_of(listener->loop);
    ++server.tally_.accepted;
    auto* session = new Session;
    auto* stream = reinterpret_cast<uv_stream_t*>(&session->handle);
    session->handle.data = session;
    uv_tcp_init(&server.loop_, &session->handle);
    if (uv_accept(listener, stream) != 0) bench_die("uv_accept");
    uv_tcp_nodelay(&session->handle, 1);
    uv_read_start(stream, on_allocate, on_read);
  }

  static void on_allocate(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    const std::string& rest = static_cast<Session*>(handle->data)->rest;
    char* room = server_of(handle->loop).buffer_.get();
    memcpy(room, rest.data(), rest.size());
    *buffer = uv_buf_init(room + rest.size(), unsigned(kReadSize - rest.size()));
  }

  static void on_read(uv_stream_t* handle, ssize_t size, const uv_buf_t*) {
    if (size == 0) return;
    auto& session = *static_cast<Session*>(handle->data);
    Server& server = server_of(handle->loop);
    if (size < 0) {
      ++server.tally_.closed;
      return uv_close(reinterpret_cast<uv_handle_t*>(handle),
                      [](uv_handle_t* closed) { delete static_cast<Session*>(closed->data); });
    }
    char* bytes = server.buffer_.get();
    const std::size_t all = session.rest.size() + std::size_t(size);
    const std::size_t used = answer_whole(bytes, all);
    server.tally_.bytes += used;
    session.rest.assign(bytes + used, all - used);
    if (used > 0) write(handle, bytes, used);
  }

  static void write(uv_stream_t* handle, char* bytes, std::size_t size) {
    uv_buf_t buffer = uv_buf_init(bytes, unsigned(size));
    const int tried = uv_try_write(handle, &buffer, 1);
    const std::size_t sent = tried < 0 ? 0 : std::size_t(tried);
    if (sent == size) return;
    auto* left = new Write{{}, std::string(bytes + sent, size - sent)};
    left->request.data = left;
    buffer = uv_buf_init(left->bytes.data(), unsigned(left->bytes.size()));
    uv_write(&left->request, handle, &buffer, 1,
             [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
  }

  Tally& tally_;
  const std::unique_ptr<char[]> buffer_;
  uv_loop_t loop_;
  uv_tcp_t listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
