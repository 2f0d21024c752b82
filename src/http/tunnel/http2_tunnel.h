// Http2Tunnel: what a stream of HTTP/2 carries once it was upgraded (RFC 8441, RFC 9113 §8.5), on
// either side: our end of a connection in memory, whose other end is the user's Stream. All that it
// does is to pass bytes on, ends, and that there is no room: users are called by their Stream.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>

#include "http/codec/http2_session.h"
#include "spate/net/buffer.h"
#include "spate/net/stream.h"
#include "spate/time.h"
#include "spate/timer.h"

namespace spate::http {

class Http2Tunnel final : public StreamHandler {
 public:
  // The stream of HTTP/2. None of these calls a user, or destroys the tunnel.
  class Way {
   public:
    // There is more for next_piece().
    virtual void send_tunneled() = 0;
    // The other side may send so many bytes more.
    virtual void credit(std::size_t size) = 0;
    // It is to be reset.
    virtual void cut_tunnel() = 0;

   protected:
    ~Way() = default;
  };

  // Something waits to be sent, or our side has ended: if nothing moves for `patience` then, it is
  // cut. Zero is for ever.
  Http2Tunnel(Way& way, Stream end, Nanos patience);
  Http2Tunnel(const Http2Tunnel&) = delete;
  Http2Tunnel& operator=(const Http2Tunnel&) = delete;
  // Unless the stream of HTTP/2 has ended on both sides, the user's sees a reset.
  ~Http2Tunnel();

  // ---- from the other side. False: there is nobody any more to take it.

  bool take(Bytes bytes);
  bool take(Buffer&& bytes);
  void take_end();
  void on_stream_closed(Http2Code code);

  // ---- what is to be sent, in the session; nobody is called

  Http2Piece next_piece(std::size_t most) const;
  void take(std::span<std::byte> target);
  // False when memory runs out.
  bool take(std::size_t size, Buffer& target);
  void on_end_sent() { is_end_sent_ = true; }

  // ---- StreamHandler: from the user

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

 private:
  bool took(std::size_t size);
  void on_piece_sent();
  bool is_waiting() const { return has_ended_ || !out_.empty(); }
  void note_progress();
  void expect_progress();
  void wait_for(Nanos time);
  void on_silence();

  Way& way_;
  Stream end_;
  Buffer out_;  // From the user.
  const Nanos patience_;
  Nanos last_progress_{0};
  Timer silence_;
  std::size_t owed_ = 0;      // Taken, and not credited yet: there is no room for more.
  bool has_ended_ = false;    // The user's side,
  bool is_end_sent_ = false;  // which was sent.
  bool has_other_ended_ = false;
  bool is_complete_ = false;
};

}  // namespace spate::http
