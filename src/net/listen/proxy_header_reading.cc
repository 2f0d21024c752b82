// read_proxy_header(). It reads only as many bytes as the header has at least, so that bytes after
// it stay in the socket: TLS begins there, and must get them from the kernel.
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "core/loop_function.h"
#include "core/user_code.h"
#include "net/connect/connect_attempt.h"
#include "spate/io.h"
#include "spate/net/proxy_protocol.h"
#include "spate/timer.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

class ProxyHeaderReading final : public ConnectAttempt {
 public:
  ProxyHeaderReading(Stream stream, OnProxyHeader callback)
      : stream_(std::move(stream)),
        callback_(stream_.loop(), std::move(callback)),
        io_(stream_.loop(), bind<&ProxyHeaderReading::on_readable>(this)),
        timeout_(stream_.loop(), bind<&ProxyHeaderReading::on_timeout>(this)) {}
  ~ProxyHeaderReading() override {
    io_.stop();
    stream_.abort();
  }

  // Returns false when memory runs out.
  bool begin(Nanos timeout) {
    if (!callback_.is_linked() || (timeout > Nanos{0} && !timeout_.start(timeout))) return false;
    if (stream_.fd() < 0) {
      error_ = sys::error_code(-ENOTSOCK);
      return timeout_.start(Nanos{0});
    }
    io_.set(stream_.fd(), Events::read);
    return io_.start();
  }
  bool is_pending() const override { return static_cast<bool>(callback_); }

 private:
  void on_readable() {
    ProxyHeader header = parse_proxy_header(bytes_of(received_));
    while (header.state == ProxyHeader::State::unfinished) {
      const std::size_t before = received_.size();
      received_.resize(header.size);
      const long count = sys::read(stream_.fd(), received_.data() + before, header.size - before);
      received_.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
      if (count == -EAGAIN || count == -EINTR) return;
      if (count <= 0) return settle(sys::error_code(count == 0 ? -ECONNRESET : count), {});
      header = parse_proxy_header(bytes_of(received_));
    }
    const bool is_whole = header.state == ProxyHeader::State::whole;
    settle(is_whole ? std::error_code() : sys::error_code(-EBADMSG), header);
  }
  void on_timeout() { settle(error_, {}); }

  // Must be the last action: the callback may destroy this.
  void settle(std::error_code error, const ProxyHeader& header) {
    io_.stop();
    timeout_.stop();
    const std::string received = std::move(received_);
    ProxyHeader passed = header;
    const Bytes all = bytes_of(received);
    if (!error) passed.extensions = all.last(header.extensions.size());
    if (error) stream_.abort();
    Result<Stream> result = std::move(stream_);
    if (error) result = std::unexpected(error);
    call_user("read_proxy_header()",
              [&] { callback_.call_last(std::move(result), std::move(passed)); });
  }

  Stream stream_;
  LoopFunction<void(Result<Stream>, ProxyHeader)> callback_;
  std::error_code error_ = Error::deadline;
  std::string received_;
  Io io_;
  Timer timeout_;
};

}  // namespace

Connecting read_proxy_header(Stream stream, Nanos timeout, OnProxyHeader callback) {
  if (!stream.is_open()) return {};
  std::unique_ptr<ProxyHeaderReading> reading(
      new (std::nothrow) ProxyHeaderReading(std::move(stream), std::move(callback)));
  if (reading == nullptr || !reading->begin(timeout)) return {};
  return Connecting(reading.release());
}

}  // namespace spate
