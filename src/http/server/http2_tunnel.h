// Http2Tunnel: what a stream of HTTP/2 carries once its exchange was upgraded (RFC 8441, RFC 9113
// §8.5): our end of a connection in memory, whose other end is the user's Stream. All that it does
// is to pass bytes on, ends, and that there is no room: users are called by their Stream.
#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "spate/net/buffer.h"
#include "spate/net/stream.h"

namespace spate::http {

class Http2Wire;

class Http2Tunnel final : public StreamHandler {
 public:
  Http2Tunnel(Http2Wire& wire, Stream end);
  Http2Tunnel(const Http2Tunnel&) = delete;
  Http2Tunnel& operator=(const Http2Tunnel&) = delete;
  // Unless the stream of HTTP/2 has ended on both sides, the user's sees a reset.
  ~Http2Tunnel();

  // ---- from the client. False: there is nobody any more to take it.

  bool take(Bytes bytes);
  bool take(Buffer&& bytes);
  void take_end() { end_.end(); }

  // There is room in the stream of HTTP/2 again.
  void resume() { end_.resume(); }

  // ---- StreamHandler: from the user

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

 private:
  bool took(std::size_t size);

  Http2Wire& wire_;
  Stream end_;
  std::size_t owed_ = 0;  // Taken, and not credited yet: there is no room for more.
};

}  // namespace spate::http
