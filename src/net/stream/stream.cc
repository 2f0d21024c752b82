// Stream: each function forwards to its Connection.
#include "spate/net/stream.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "core/ownership.h"
#include "net/socket_address.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/memory_end.h"
#include "spate/assert.h"
#include "sys/socket.h"

namespace spate {

namespace {

std::unexpected<std::error_code> failed(long error) {
  return std::unexpected(std::error_code(static_cast<int>(error), std::system_category()));
}

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

// Returns a time in whole units, rounded up and clamped to an int.
int rounded_up(Nanos time, std::int64_t unit) {
  const std::int64_t units = time.count() / unit + (time.count() % unit > 0);
  return static_cast<int>(std::clamp<std::int64_t>(units, INT_MIN, INT_MAX));
}

[[maybe_unused]] bool may_use(const Connection& connection) {
  const LoopStreams& loop_state = connection.loop_state();
  return !loop_state.is_alive() || may_touch(loop_state.loop());
}

}  // namespace

void close_descriptors(std::span<const int> descriptors) {
  for (const int fd : descriptors) sys::Descriptor closing(fd);
}

Result<Stream> Stream::adopt(Loop& loop, int fd) {
  LoopStreams* loop_state = LoopStreams::of(loop);
  if (loop_state == nullptr) return failed(ENOMEM);
  if (const long result = sys::set_nonblocking(fd); result < 0) return failed(-result);
  Transport& transport = sys::is_socket(fd) ? static_cast<Transport&>(loop_state->sockets())
                                            : static_cast<Transport&>(loop_state->files());
  Connection* connection = Connection::make(transport, fd);
  if (connection == nullptr) return failed(ENOMEM);
  return Stream(connection);
}

Result<std::pair<Stream, Stream>> Stream::socket_pair(Loop& loop) {
  int fds[2];
  if (const long result = sys::open_pair(fds); result < 0) return failed(-result);
  sys::Descriptor first_fd(fds[0]);
  sys::Descriptor second_fd(fds[1]);
  Result<Stream> first = adopt(loop, fds[0]);
  if (!first) return std::unexpected(first.error());
  first_fd.release();
  Result<Stream> second = adopt(loop, fds[1]);
  if (!second) return std::unexpected(second.error());
  second_fd.release();
  return std::pair(std::move(*first), std::move(*second));
}

Result<std::pair<Stream, Stream>> Stream::memory_pair(Loop& loop) {
  LoopStreams* loop_state = LoopStreams::of(loop);
  if (loop_state == nullptr) return failed(ENOMEM);
  const auto [first, second] = MemoryEnd::make_pair(*loop_state);
  if (first == nullptr) return failed(ENOMEM);
  return std::pair(Stream(first), Stream(second));
}

// All calls of the owner use this function, which asserts the thread. An empty Stream behaves as a
// closed one.
Connection* Stream::connection() const {
  SPATE_ASSERT(connection_ == nullptr || may_use(*connection_), kWrongThread);
  return connection_;
}

void Stream::reset() {
  if (Connection* connection = std::exchange(connection_, nullptr)) {
    SPATE_ASSERT(may_use(*connection), kWrongThread);
    connection->abandon();
  }
}

void Stream::start(StreamHandler& handler) {
  SPATE_ASSERT(connection_ != nullptr, "this Stream is empty, or was moved away");
  connection()->start(handler);
}
std::error_code Stream::start(StreamHandler& handler, const StreamOptions& options) {
  if (!configure(options)) return sys::error_code(-ENOMEM);
  start(handler);
  return {};
}

std::error_code Stream::start(StreamCallbacks callbacks, const StreamOptions& options) {
  SPATE_ASSERT(connection_ != nullptr);
  if (!configure(options) || !connection()->start(std::move(callbacks)))
    return sys::error_code(-ENOMEM);
  return {};
}

bool Stream::configure(const StreamOptions& options) {
  const StreamOptions none;
  if (options.half_open) set_half_open(true);
  if (options.receive_descriptors) set_receive_descriptors(true);
  return (options.limits == none.limits || set_limits(options.limits)) &&
         (options.idle_timeout == Nanos{0} || set_idle_timeout(options.idle_timeout)) &&
         (options.read_timeout == Nanos{0} || set_read_timeout(options.read_timeout)) &&
         (options.write_timeout == Nanos{0} || set_write_timeout(options.write_timeout)) &&
         (options.deadline == Nanos{0} || set_deadline(options.deadline)) &&
         (options.rate_limits == none.rate_limits || set_rate_limits(options.rate_limits)) &&
         (options.rate_group == nullptr || join(options.rate_group));
}

bool Stream::is_connecting() const {
  return is_open() && !connection()->transport().is_connected();
}

bool Stream::is_open() const { return connection() != nullptr && connection()->is_open(); }
bool Stream::is_writable() const { return connection() != nullptr && connection()->is_writable(); }

bool Stream::write(Bytes bytes) { return connection() != nullptr && connection()->write(bytes); }
bool Stream::write(std::span<const Bytes> pieces) {
  return connection() != nullptr && connection()->write(pieces);
}
bool Stream::write(Buffer&& buffer) {
  return connection() != nullptr && connection()->write(std::move(buffer));
}
std::error_code Stream::send_file(int file, std::uint64_t offset, std::uint64_t size,
                                  ThreadPool& pool) {
  if (connection() == nullptr) return sys::error_code(-EPIPE);
  return connection()->send_file(file, offset, size, pool);
}
std::error_code Stream::send_descriptors(Bytes bytes, std::span<const int> descriptors) {
  if (connection() == nullptr) return sys::error_code(-EPIPE);
  return connection()->send_descriptors(bytes, descriptors);
}
void Stream::set_receive_descriptors(bool on) {
  if (connection() != nullptr) connection()->set_receive_descriptors(on);
}
std::size_t Stream::queued() const { return connection() == nullptr ? 0 : connection()->queued(); }
bool Stream::is_full() const { return connection() != nullptr && connection()->is_full(); }

bool Stream::set_limits(const QueueLimits& limits) {
  SPATE_ASSERT(limits.low <= limits.high && limits.high <= limits.max,
               "the marks are low <= high <= max");
  return connection() != nullptr && connection()->set_limits(limits);
}

void Stream::stop() {
  if (connection() != nullptr) connection()->forget_handler();
}
void Stream::pause() {
  if (connection() != nullptr) connection()->pause();
}
void Stream::resume() {
  if (connection() != nullptr) connection()->resume();
}
bool Stream::want(std::size_t size) { return connection() != nullptr && connection()->want(size); }
bool Stream::is_quiet() const { return connection() != nullptr && connection()->is_quiet(); }
Bytes Stream::unread() const { return connection() == nullptr ? Bytes() : connection()->unread(); }
bool Stream::is_paused() const { return connection() != nullptr && connection()->is_paused(); }

void Stream::end() {
  if (connection() != nullptr) connection()->end();
}
void Stream::close(Linger linger) {
  if (connection() != nullptr) connection()->close(linger);
}
void Stream::abort() {
  if (connection() != nullptr) connection()->abort();
}
void Stream::set_half_open(bool on) {
  if (connection() != nullptr) connection()->set_half_open(on);
}

bool Stream::set_idle_timeout(Nanos timeout) {
  return connection() != nullptr && connection()->set_idle_timeout(timeout);
}
bool Stream::set_read_timeout(Nanos timeout) {
  return connection() != nullptr && connection()->set_read_timeout(timeout);
}
bool Stream::set_write_timeout(Nanos timeout) {
  return connection() != nullptr && connection()->set_write_timeout(timeout);
}
bool Stream::set_deadline(Nanos timeout) {
  return connection() != nullptr && connection()->set_deadline(timeout);
}

bool Stream::set_rate_limits(const RateLimits& limits) {
  return connection() != nullptr && connection()->set_rate_limits(limits);
}
bool Stream::join(RateGroup* group) { return connection() != nullptr && connection()->join(group); }

Loop& Stream::loop() const {
  SPATE_ASSERT(connection_ != nullptr, "this Stream is empty, or was moved away");
  return connection()->loop_state().loop();
}
int Stream::fd() const { return connection() == nullptr ? -1 : connection()->fd(); }

Address Stream::local_address() const { return local_address_of(fd()); }
Address Stream::peer_address() const { return peer_address_of(fd()); }

// ---- options

// A closed Stream and one in memory have no socket.
std::error_code Stream::set_option(int level, int name, int value) {
  if (is_open() && fd() < 0) return sys::error_code(-ENOTSOCK);
  return sys::error_code(sys::set_option(fd(), level, name, value));
}

std::error_code Stream::set_no_delay(bool on) { return set_option(IPPROTO_TCP, TCP_NODELAY, on); }
std::error_code Stream::set_quick_ack(bool on) {
  return set_option(IPPROTO_TCP, sys::kQuickAck, on);
}

std::error_code Stream::set_user_timeout(Nanos timeout) {
  return set_option(IPPROTO_TCP, sys::kUserTimeout, rounded_up(timeout, kMillisecond));
}

std::error_code Stream::set_keep_alive(Nanos idle, Nanos interval, int count) {
  const std::pair<int, int> options[] = {{sys::kKeepIdle, rounded_up(idle, kSecond)},
                                         {sys::kKeepInterval, rounded_up(interval, kSecond)},
                                         {sys::kKeepCount, count}};
  for (const auto& [name, value] : options) {
    if (const std::error_code error = set_option(IPPROTO_TCP, name, value)) return error;
  }
  return set_option(SOL_SOCKET, SO_KEEPALIVE, 1);
}

std::error_code Stream::set_kernel_buffers(std::size_t send, std::size_t receive) {
  if (is_open() && fd() < 0) return sys::error_code(-ENOTSOCK);
  return sys::error_code(sys::set_kernel_buffers(fd(), send, receive));
}

Result<int> Stream::release() {
  if (!is_open()) return failed(EBADF);
  if (fd() < 0 || !connection()->transport().is_bare()) return failed(EOPNOTSUPP);
  return connection()->release();
}

}  // namespace spate
