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
      if (frame.empty() && !is_batch_whole()) break;
      if (!frame.empty()) send(frame, stream);
      if (is_batch_whole()) send_batch(stream);
    }
    send_batch(stream);
  }

  // Http2Events::send_piece(): `body` has take(), into a span and into a Buffer.
  template <class Stream, class Body>
  Http2Sent send_piece(Bytes head, std::size_t size, Body& body, Stream& stream) {
    if (size > kMostCopied) {
      if (!add(head) || !body.take(size, batch_)) is_broken_ = true;
      return how_it_went();
    }
    std::array<std::byte, kMostCopied + 16> frame;
    std::ranges::copy(head, frame.begin());
    if (size > 0) body.take(std::span(frame).subspan(head.size(), size));
    send(Bytes(frame).first(head.size() + size), stream);
    return how_it_went();
  }

 private:
  // A frame up to that size is sent in one piece.
  static constexpr std::size_t kMostCopied = 2048;
  // Larger ones, and what is between them, are sent together up to that size.
  static constexpr std::size_t kBatch = 128 * 1024;

  bool is_batch_whole() const { return batch_.size() >= kBatch; }
  Http2Sent how_it_went() const {
    if (is_broken_) return Http2Sent::failed;
    return is_batch_whole() ? Http2Sent::enough : Http2Sent::yes;
  }

  template <class Stream>
  void send(Bytes frame, Stream& stream) {
    const bool is_taken = batch_.empty() ? stream.write(frame) : add(frame);
    if (!is_taken) is_broken_ = true;
  }

  // A few bytes between moved bodies: in a small block, however much the batch has already.
  bool add(Bytes frame) {
    const std::span<std::byte> room = batch_.reserve(frame.size());
    if (room.empty()) return false;
    std::ranges::copy(frame, room.begin());
    batch_.commit(frame.size());
    return true;
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
