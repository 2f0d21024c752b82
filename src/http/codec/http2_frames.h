// Http2Frames: writes a session's frames to a Stream. Small frames are written as they are
// produced; from the first large one on they are collected into one write.
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
  // True if a write failed. Nothing more may be sent then: a gap would corrupt the connection.
  bool is_broken() const { return is_broken_; }

  // Sends all frames of the session, or until `stream` is full. Calls no functions except the
  // session's events.
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

  // Implements Http2Events::send_piece(). `body` has take(), into a span and into a Buffer.
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
  // Frames up to this size are written at once.
  static constexpr std::size_t kMostCopied = 2048;
  // Larger ones, and the frames between them, are collected up to this size.
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

  // Adds a few bytes between moved bodies. reserve() with the exact size gets a small block,
  // however large the batch is.
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
