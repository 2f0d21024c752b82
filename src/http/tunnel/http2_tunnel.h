// Http2Tunnel: connects an upgraded HTTP/2 stream (RFC 8441, RFC 9113 §8.5), on either side, with a
// user's Stream. It holds the near end of a connection in memory; the user has the far end. It only
// forwards bytes, ends and back-pressure: user code is called by the Stream.
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
  // The HTTP/2 stream. Its functions call no user code, and do not destroy the tunnel.
  class Way {
   public:
    // Called when next_piece() has more to send.
    virtual void send_tunneled() = 0;
    // Updates the window: the peer may send this many more bytes.
    virtual void credit(std::size_t size) = 0;
    // Resets the stream.
    virtual void cut_tunnel() = 0;

   protected:
    ~Way() = default;
  };

  // The tunnel is reset if no byte moves for `patience` while output is queued or after our side
  // has ended. Zero is no timeout.
  Http2Tunnel(Way& way, Stream end, Nanos patience);
  Http2Tunnel(const Http2Tunnel&) = delete;
  Http2Tunnel& operator=(const Http2Tunnel&) = delete;
  // Resets the user's Stream unless both sides of the HTTP/2 stream have ended.
  ~Http2Tunnel();

  // ---- from the peer. False: the user's end is closed.

  bool take(Bytes bytes);
  bool take(Buffer&& bytes);
  void take_end();
  void on_stream_closed(Http2Code code);

  // ---- output, called by the session; calls no user code

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
  Buffer out_;  // Bytes from the user.
  const Nanos patience_;
  Nanos last_progress_{0};
  Timer silence_;
  std::size_t owed_ = 0;      // Received without a window update, because the user's Stream is
                              // full.
  bool has_ended_ = false;    // The user's side has ended,
  bool is_end_sent_ = false;  // and END_STREAM was sent.
  bool has_other_ended_ = false;
  bool is_complete_ = false;
};

}  // namespace spate::http
