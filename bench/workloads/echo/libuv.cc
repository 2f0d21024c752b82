// One buffer for all reads; a write is tried at once, and only the rest is queued. An idle timeout
// is left alone, and looks at the last activity when it is due: libuv's timers are a heap, and
// restarting one on each message would cost more.
#include <uv.h>

#include "harness/server.h"

namespace {

class Server;

struct Session {
  uv_tcp_t handle;
  Server* server;
};

struct TimedSession : Session {
  uv_timer_t timer;
  std::uint64_t last_active;
  int open_handles = 2;
};

struct Write {
  uv_write_t request;
  std::string bytes;
};

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : tally_(tally),
        idle_ms_(std::uint64_t(options.number("idle_ms"))),
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
  template <class Handle>
  static uv_handle_t* handle_of(Handle& handle) {
    return reinterpret_cast<uv_handle_t*>(&handle);
  }
  static uv_stream_t* stream_of(uv_tcp_t& handle) {
    return reinterpret_cast<uv_stream_t*>(&handle);
  }

  static void on_accept(uv_stream_t* listener, int) {
    auto& server = *static_cast<Server*>(listener->loop->data);
    ++server.tally_.accepted;
    Session* session = server.idle_ms_ > 0 ? server.begin_timed() : new Session;
    session->server = &server;
    session->handle.data = session;
    uv_tcp_init(&server.loop_, &session->handle);
    if (uv_accept(listener, stream_of(session->handle)) != 0) bench_die("uv_accept");
    uv_tcp_nodelay(&session->handle, 1);
    uv_read_start(stream_of(session->handle), on_allocate, on_read);
  }

  Session* begin_timed() {
    auto* session = new TimedSession;
    session->last_active = uv_now(&loop_);
    session->timer.data = session;
    uv_timer_init(&loop_, &session->timer);
    uv_timer_start(&session->timer, on_timer, idle_ms_, 0);
    return session;
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
    if (server.idle_ms_ > 0)
      static_cast<TimedSession&>(session).last_active = uv_now(&server.loop_);
    uv_buf_t all = uv_buf_init(buffer->base, unsigned(size));
    const int tried = uv_try_write(handle, &all, 1);
    const std::size_t sent = tried < 0 ? 0 : std::size_t(tried);
    if (sent < std::size_t(size)) queue(handle, buffer->base + sent, std::size_t(size) - sent);
  }

  static void queue(uv_stream_t* handle, const char* bytes, std::size_t size) {
    auto* left = new Write{{}, std::string(bytes, size)};
    left->request.data = left;
    uv_buf_t buffer = uv_buf_init(left->bytes.data(), unsigned(size));
    uv_write(&left->request, handle, &buffer, 1,
             [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
  }

  static void on_timer(uv_timer_t* timer) {
    auto& session = *static_cast<TimedSession*>(static_cast<Session*>(timer->data));
    Server& server = *session.server;
    const std::uint64_t due = session.last_active + server.idle_ms_, now = uv_now(&server.loop_);
    if (due > now) {
      uv_timer_start(timer, on_timer, due - now, 0);
      return;
    }
    ++server.tally_.expired;
    server.close_session(session);
  }

  void close_session(Session& session) {
    ++tally_.closed;
    if (idle_ms_ == 0) {
      uv_close(handle_of(session.handle),
               [](uv_handle_t* handle) { delete static_cast<Session*>(handle->data); });
      return;
    }
    uv_close(handle_of(session.handle), on_part_closed);
    uv_close(handle_of(static_cast<TimedSession&>(session).timer), on_part_closed);
  }

  static void on_part_closed(uv_handle_t* handle) {
    auto* session = static_cast<TimedSession*>(static_cast<Session*>(handle->data));
    if (--session->open_handles == 0) delete session;
  }

  Tally& tally_;
  const std::uint64_t idle_ms_;
  const std::unique_ptr<char[]> buffer_;
  uv_loop_t loop_;
  uv_tcp_t listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
