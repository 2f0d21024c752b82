// Stream's face: each function hands over to its Connection.
#include "spate/net/stream.h"

#include <cerrno>

#include "net/connection.h"
#include "net/memory_end.h"
#include "net/net.h"
#include "spate/assert.h"
#include "sys/socket.h"

namespace spate {

namespace {

std::unexpected<std::error_code> failed(long error) {
  return std::unexpected(std::error_code(static_cast<int>(error), std::system_category()));
}

template <class T>
std::error_code set_tcp(int fd, int name, T value) {
  return sys::error_code(sys::set_option(fd, IPPROTO_TCP, name, value));
}

int seconds(Nanos time) { return static_cast<int>((time.count() + 999'999'999) / 1'000'000'000); }

}  // namespace

void close_descriptors(std::span<const int> descriptors) {
  for (const int fd : descriptors) sys::Descriptor closing(fd);
}

Stream::~Stream() {
  if (connection_ != nullptr) connection_->abandon();
}

Stream::Made Stream::adopt(Loop& loop, int fd) {
  Net* net = Net::of(loop);
  if (net == nullptr) return failed(ENOMEM);
  if (const long result = sys::set_nonblocking(fd); result < 0) return failed(-result);
  Transport& transport = sys::is_socket(fd) ? static_cast<Transport&>(net->sockets())
                                            : static_cast<Transport&>(net->files());
  Connection* connection = Connection::make(transport, fd);
  if (connection == nullptr) return failed(ENOMEM);
  return Stream(connection);
}

Stream::Pair Stream::socket_pair(Loop& loop) {
  int fds[2];
  if (const long result = sys::open_pair(fds); result < 0) return failed(-result);
  sys::Descriptor first_fd(fds[0]);
  sys::Descriptor second_fd(fds[1]);
  Made first = adopt(loop, fds[0]);
  if (!first) return std::unexpected(first.error());
  first_fd.release();
  Made second = adopt(loop, fds[1]);
  if (!second) return std::unexpected(second.error());
  second_fd.release();
  return Pair(std::in_place, std::move(*first), std::move(*second));
}

Stream::Pair Stream::memory_pair(Loop& loop) {
  Net* net = Net::of(loop);
  if (net == nullptr) return failed(ENOMEM);
  const auto [first, second] = MemoryEnd::make_pair(*net);
  if (first == nullptr) return failed(ENOMEM);
  return Pair(std::in_place, Stream(first), Stream(second));
}

void Stream::start(StreamHandler& handler) { connection_->start(handler); }
bool Stream::is_open() const { return connection_ != nullptr && connection_->is_open(); }
bool Stream::is_writable() const { return connection_ != nullptr && connection_->is_writable(); }

bool Stream::write(Bytes bytes) { return connection_ != nullptr && connection_->write(bytes); }
bool Stream::write(Buffer&& buffer) {
  return connection_ != nullptr && connection_->write(std::move(buffer));
}
std::error_code Stream::send_file(int file, std::uint64_t offset, std::uint64_t size) {
  if (connection_ == nullptr) return sys::error_code(-EPIPE);
  return connection_->send_file(file, offset, size);
}
std::error_code Stream::send_descriptors(Bytes bytes, std::span<const int> descriptors) {
  if (connection_ == nullptr) return sys::error_code(-EPIPE);
  return connection_->send_descriptors(bytes, descriptors);
}
void Stream::set_receive_descriptors(bool on) {
  if (connection_ != nullptr) connection_->set_receive_descriptors(on);
}
std::size_t Stream::queued() const { return connection_ == nullptr ? 0 : connection_->queued(); }
bool Stream::is_full() const { return connection_ != nullptr && connection_->is_full(); }

bool Stream::set_limits(const QueueLimits& limits) {
  SPATE_ASSERT(limits.low <= limits.high && limits.high <= limits.most);
  return connection_ != nullptr && connection_->set_limits(limits);
}

void Stream::pause() {
  if (connection_ != nullptr) connection_->pause();
}
void Stream::resume() {
  if (connection_ != nullptr) connection_->resume();
}
bool Stream::is_paused() const { return connection_ != nullptr && connection_->is_paused(); }

void Stream::end() {
  if (connection_ != nullptr) connection_->end();
}
void Stream::close() {
  if (connection_ != nullptr) connection_->close();
}
void Stream::abort() {
  if (connection_ != nullptr) connection_->abort();
}
void Stream::set_half_open(bool on) {
  if (connection_ != nullptr) connection_->set_half_open(on);
}

void Stream::set_idle_timeout(Nanos timeout) {
  if (connection_ != nullptr) connection_->set_idle_timeout(timeout);
}
bool Stream::set_read_timeout(Nanos timeout) {
  return connection_ != nullptr && connection_->set_read_timeout(timeout);
}
bool Stream::set_write_timeout(Nanos timeout) {
  return connection_ != nullptr && connection_->set_write_timeout(timeout);
}
bool Stream::set_deadline(Nanos timeout) {
  return connection_ != nullptr && connection_->set_deadline(timeout);
}

bool Stream::set_rate_limits(const RateLimits& limits) {
  return connection_ != nullptr && connection_->set_rate_limits(limits);
}
bool Stream::join(RateGroup* group) { return connection_ != nullptr && connection_->join(group); }

Loop& Stream::loop() const { return connection_->net().loop(); }
int Stream::fd() const { return connection_ == nullptr ? -1 : connection_->fd(); }

Address Stream::local_address() const {
  sys::SystemAddress system;
  if (sys::local_address(fd(), system) < 0) return {};
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

Address Stream::peer_address() const {
  sys::SystemAddress system;
  if (sys::peer_address(fd(), system) < 0) return {};
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

std::error_code Stream::set_no_delay(bool on) { return set_tcp(fd(), TCP_NODELAY, int{on}); }
std::error_code Stream::set_quick_ack(bool on) { return set_tcp(fd(), TCP_QUICKACK, int{on}); }

std::error_code Stream::set_user_timeout(Nanos timeout) {
  return set_tcp(fd(), TCP_USER_TIMEOUT,
                 static_cast<unsigned>((timeout.count() + 999'999) / 1'000'000));
}

std::error_code Stream::set_keep_alive(Nanos idle, Nanos interval, int count) {
  if (const std::error_code error = set_tcp(fd(), TCP_KEEPIDLE, seconds(idle))) return error;
  if (const std::error_code error = set_tcp(fd(), TCP_KEEPINTVL, seconds(interval))) return error;
  if (const std::error_code error = set_tcp(fd(), TCP_KEEPCNT, count)) return error;
  return sys::error_code(sys::set_option(fd(), SOL_SOCKET, SO_KEEPALIVE, 1));
}

std::error_code Stream::set_kernel_buffers(std::size_t send, std::size_t receive) {
  return sys::error_code(sys::set_kernel_buffers(fd(), send, receive));
}

std::expected<int, std::error_code> Stream::release() {
  if (!is_open()) return failed(EBADF);
  if (fd() < 0) return failed(EOPNOTSUPP);
  if (!connection_->may_be_released()) return failed(EBUSY);
  return connection_->release();
}

}  // namespace spate
