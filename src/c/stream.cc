#include "c/stream.h"

#include <cerrno>
#include <memory>
#include <new>

#include "c/sized.h"
#include "spate/net/connect.h"
#include "spate_net.h"

using namespace spate;

namespace {

using Owned = std::unique_ptr<spate_stream>;

// Passes the stream to the caller if `code` is 0.
int hand_over(Owned made, int code, spate_stream** stream) {
  if (code == 0) *stream = made.release();
  return code;
}

// The common part of both connect functions: `begin` calls the Stream's.
template <class Begin>
int connect_by(spate_stream** stream, spate_loop* loop, const spate_stream_callbacks* callbacks,
               void* data, const spate_connect_options* options, const Begin& begin) {
  *stream = nullptr;
  spate_connect_options known;
  if (const int code = c::copy_sized(options, known)) return code;
  Owned made(new (std::nothrow) spate_stream(*loop));
  if (made == nullptr) return -ENOMEM;
  if (const int code = made->set_callbacks(callbacks, data)) return code;
  ConnectOptions connecting;
  connecting.timeout = Nanos{known.timeout};
  if (known.local != nullptr) connecting.local = c::address_of(known.local);
  if (known.attempt_delay > 0) connecting.attempt_delay = Nanos{known.attempt_delay};
  const std::error_code error = begin(made->stream, *made, connecting);
  return hand_over(std::move(made), c::to_code(error), stream);
}

int out_of_memory_unless(const spate_stream* stream, bool done) {
  return done || !stream->stream.is_open() ? 0 : -ENOMEM;
}

}  // namespace

int spate_stream::set_callbacks(const spate_stream_callbacks* table, void* of_program) {
  spate_stream_callbacks known;
  if (table == nullptr) return -EINVAL;
  if (const int code = c::copy_sized(table, known)) return code;
  callbacks = table;
  data = of_program;
  return 0;
}

std::size_t spate_stream::on_data(Bytes bytes) {
  if (callbacks->on_data == nullptr) return bytes.size();
  return callbacks->on_data(this, bytes.data(), bytes.size());
}
void spate_stream::on_end() {
  if (callbacks->on_end != nullptr) callbacks->on_end(this);
}
void spate_stream::on_connected() {
  if (callbacks->on_connected != nullptr) callbacks->on_connected(this);
}
void spate_stream::on_drained() {
  if (callbacks->on_drained != nullptr) callbacks->on_drained(this);
}
void spate_stream::on_closed(std::error_code error) {
  if (callbacks->on_closed != nullptr) callbacks->on_closed(this, c::to_code(error));
}

int spate_stream_adopt(spate_stream** stream, spate_loop* loop, int fd) {
  *stream = nullptr;
  Owned made(new (std::nothrow) spate_stream(*loop));
  if (made == nullptr) return -ENOMEM;
  Result<Stream> adopted = Stream::adopt(loop->loop(), fd);
  if (!adopted) return c::to_code(adopted.error());
  made->stream = std::move(*adopted);
  return hand_over(std::move(made), 0, stream);
}

int spate_stream_pair(spate_stream** near, spate_stream** far, spate_loop* loop) {
  *near = *far = nullptr;
  Owned one(new (std::nothrow) spate_stream(*loop));
  Owned other(new (std::nothrow) spate_stream(*loop));
  if (one == nullptr || other == nullptr) return -ENOMEM;
  Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(loop->loop());
  if (!pair) return c::to_code(pair.error());
  one->stream = std::move(pair->first);
  other->stream = std::move(pair->second);
  *near = one.release();
  *far = other.release();
  return 0;
}

int spate_stream_connect(spate_stream** stream, spate_loop* loop, const char* host, uint16_t port,
                         const spate_stream_callbacks* callbacks, void* data,
                         const spate_connect_options* options) {
  *stream = nullptr;
  if (host == nullptr) return -EINVAL;
  return connect_by(stream, loop, callbacks, data, options,
                    [&](Stream& made, StreamHandler& handler, const ConnectOptions& connecting) {
                      return made.connect(loop->loop(), host, port, handler, connecting);
                    });
}

int spate_stream_connect_to(spate_stream** stream, spate_loop* loop, const spate_address* address,
                            const spate_stream_callbacks* callbacks, void* data,
                            const spate_connect_options* options) {
  *stream = nullptr;
  if (address == nullptr) return -EINVAL;
  return connect_by(stream, loop, callbacks, data, options,
                    [&](Stream& made, StreamHandler& handler, const ConnectOptions& connecting) {
                      return made.connect(loop->loop(), c::address_of(address), handler,
                                          connecting);
                    });
}

void spate_stream_destroy(spate_stream* stream) { delete stream; }

int spate_stream_start(spate_stream* stream, const spate_stream_callbacks* callbacks, void* data) {
  if (stream->is_empty) return -EBADF;
  if (const int code = stream->set_callbacks(callbacks, data)) return code;
  stream->stream.start(*stream);
  return 0;
}

void* spate_stream_data(const spate_stream* stream) { return stream->data; }
void spate_stream_set_data(spate_stream* stream, void* data) { stream->data = data; }
spate_loop* spate_stream_loop(const spate_stream* stream) { return &stream->loop; }

int spate_stream_write(spate_stream* stream, const void* bytes, size_t size) {
  Stream& to = stream->stream;
  if (!to.is_writable()) return -EPIPE;
  const bool fits = size <= stream->max_queued && to.queued() <= stream->max_queued - size;
  if (to.write(Bytes(static_cast<const std::byte*>(bytes), size))) return 0;
  return fits ? -ENOMEM : SPATE_E_QUEUE_FULL;
}

size_t spate_stream_queued(const spate_stream* stream) { return stream->stream.queued(); }
int spate_stream_is_full(const spate_stream* stream) { return stream->stream.is_full(); }
int spate_stream_is_open(const spate_stream* stream) { return stream->stream.is_open(); }

int spate_stream_set_limits(spate_stream* stream, const spate_queue_limits* limits) {
  if (limits == nullptr || limits->low > limits->high || limits->high > limits->max) return -EINVAL;
  QueueLimits set;
  set.low = limits->low;
  set.high = limits->high;
  set.max = limits->max;
  set.max_unread = limits->max_unread;
  if (!stream->stream.set_limits(set)) return out_of_memory_unless(stream, false);
  stream->max_queued = set.max;
  return 0;
}

void spate_stream_pause(spate_stream* stream) { stream->stream.pause(); }
void spate_stream_resume(spate_stream* stream) { stream->stream.resume(); }
int spate_stream_want(spate_stream* stream, size_t size) {
  return out_of_memory_unless(stream, stream->stream.want(size));
}

void spate_stream_end(spate_stream* stream) { stream->stream.end(); }
void spate_stream_close(spate_stream* stream) { stream->stream.close(); }
void spate_stream_abort(spate_stream* stream) { stream->stream.abort(); }
void spate_stream_set_half_open(spate_stream* stream, int half_open) {
  stream->stream.set_half_open(half_open != 0);
}

int spate_stream_set_deadline(spate_stream* stream, int64_t timeout) {
  return out_of_memory_unless(stream, stream->stream.set_deadline(Nanos{timeout}));
}
int spate_stream_set_idle_timeout(spate_stream* stream, int64_t timeout) {
  return out_of_memory_unless(stream, stream->stream.set_idle_timeout(Nanos{timeout}));
}
int spate_stream_set_read_timeout(spate_stream* stream, int64_t timeout) {
  return out_of_memory_unless(stream, stream->stream.set_read_timeout(Nanos{timeout}));
}
int spate_stream_set_write_timeout(spate_stream* stream, int64_t timeout) {
  return out_of_memory_unless(stream, stream->stream.set_write_timeout(Nanos{timeout}));
}

int spate_stream_fd(const spate_stream* stream) { return stream->stream.fd(); }
void spate_stream_local_address(const spate_stream* stream, spate_address* address) {
  c::store(stream->stream.local_address(), address);
}
void spate_stream_peer_address(const spate_stream* stream, spate_address* address) {
  c::store(stream->stream.peer_address(), address);
}
int spate_stream_release(spate_stream* stream) {
  const Result<int> fd = stream->stream.release();
  return fd ? *fd : c::to_code(fd.error());
}
