// Http2Frames: the way of a session's frames to what carries them, a Stream. Small ones are written
// as they are made; from the first large one on they are sent together.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "http/codec/http2_session.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

class Http2Frames {
 public:
  // Something could not be sent, and nothing can be any more: a gap would be worse than an end.
  bool is_broken() const { return is_broken_; }

  // All that the session has, or until `stream` is full. Nobody is called but the session's events.
  template <class Stream>
  void send_all(Http2Session& session, Stream& stream) {
    while (!is_broken_ && !stream.is_full()) {
      const Bytes frame = session.next_frame();
      if (frame.empty()) break;
      send(frame, stream);
      if (batch_.size() >= kBatch) send_batch(stream);
    }
    send_batch(stream);
  }

  // Http2Events::send_piece(): `body` has take(), into a span and into a Buffer.
  template <class Stream, class Body>
  bool send_piece(Bytes head, std::size_t size, Body& body, Stream& stream) {
    if (size > kMostCopied) {
      if (!batch_.append(head) || !body.take(size, batch_)) is_broken_ = true;
      return !is_broken_;
    }
    std::array<std::byte, kMostCopied + 16> frame;
    std::ranges::copy(head, frame.begin());
    if (size > 0) body.take(std::span(frame).subspan(head.size(), size));
    return send(Bytes(frame).first(head.size() + size), stream);
  }

 private:
  // A frame up to that size is sent in one piece.
  static constexpr std::size_t kMostCopied = 2048;
  // Larger ones, and what is between them, are sent together up to that size.
  static constexpr std::size_t kBatch = 128 * 1024;

  template <class Stream>
  bool send(Bytes frame, Stream& stream) {
    const bool is_taken = batch_.empty() ? stream.write(frame) : batch_.append(frame);
    if (!is_taken) is_broken_ = true;
    return !is_broken_;
  }

  template <class Stream>
  void send_batch(Stream& stream) {
    if (!batch_.empty() && !stream.write(std::move(batch_))) is_broken_ = true;
    batch_.clear();
  }

  Buffer batch_;
  bool is_broken_ = false;
};

}  // namespace spate::http
