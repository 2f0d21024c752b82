// One buffer for all reads; a message is written to each subscriber at once if possible, and only
// the rest is queued.
#include <uv.h>

#include "workloads/fanout/server.h"

namespace {

class Server;

struct Session {
  uv_tcp_t handle;
  Server* server;
  Inbox inbox;
};

struct Write {
  uv_write_t request;
  std::string bytes;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : size_(std::size_t(options.number("size", 64))),
        tally_(tally),
        buffer_(new char[kReadSize]) {
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
  static uv_stream_t* stream_of(Session& session) {
    return reinterpret_cast<uv_stream_t*>(&session.handle);
  }

  static void on_accept(uv_stream_t* listener, int) {
    auto& server = *static_cast<Server*>(listener->loop->data);
    ++server.tally_.accepted;
    auto* session = new Session{{}, &server, Inbox(server.size_)};
    uv_tcp_init(&server.loop_, &session->handle);
    session->handle.data = session;
    if (uv_accept(listener, stream_of(*session)) != 0) bench_die("uv_accept");
    uv_tcp_nodelay(&session->handle, 1);
    uv_read_start(stream_of(*session), on_allocate, on_read);
    server.sessions_.push_back(session);
  }

  static void on_allocate(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    *buffer = uv_buf_init(static_cast<Server*>(handle->loop->data)->buffer_.get(), kReadSize);
  }

  static void on_read(uv_stream_t* handle, ssize_t size, const uv_buf_t* buffer) {
    if (size == 0) return;
    auto& session = *static_cast<Session*>(handle->data);
    Server& server = *session.server;
    if (size < 0) return server.close_session(session);
    server.tally_.bytes += std::size_t(size);
    session.inbox.take(buffer->base, std::size_t(size), [&](char const* bytes, std::size_t count) {
      for (Session* other : server.sessions_)
        if (other != &session) deliver(stream_of(*other), bytes, count);
    });
  }

  static void deliver(uv_stream_t* handle, const char* bytes, std::size_t size) {
    uv_buf_t all = uv_buf_init(const_cast<char*>(bytes), unsigned(size));
    const int tried = uv_try_write(handle, &all, 1);
    const std::size_t sent = tried < 0 ? 0 : std::size_t(tried);
    if (sent < size) queue(handle, bytes + sent, size - sent);
  }

  static void queue(uv_stream_t* handle, const char* bytes, std::size_t size) {
    auto* left = new Write{{}, std::string(bytes, size)};
    left->request.data = left;
    uv_buf_t buffer = uv_buf_init(left->bytes.data(), unsigned(size));
    uv_write(&left->request, handle, &buffer, 1,
             [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
  }

  void close_session(Session& session) {
    ++tally_.closed;
    std::erase(sessions_, &session);
    uv_close(reinterpret_cast<uv_handle_t*>(&session.handle),
             [](uv_handle_t* handle) { delete static_cast<Session*>(handle->data); });
  }

  const std::size_t size_;
  Tally& tally_;
  const std::unique_ptr<char[]> buffer_;
  uv_loop_t loop_;
  uv_tcp_t listener_;
  std::vector<Session*> sessions_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
