// FrameWriter: queues frames, except DATA, in the format in which they are sent. If memory runs
// out, is_broken() is true from then on: nothing more may be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "base/array.h"
#include "http/codec/http2_session.h"
#include "http2/frame.h"
#include "http2/hpack_encoder.h"

namespace spate::http {

class FrameWriter {
 public:
  bool is_broken() const { return is_broken_; }
  bool empty() const { return queued_.empty(); }
  // The number of queued frames.
  std::size_t count() const { return count_; }
  // Takes all that is queued; valid until the next call.
  std::string_view take() {
    count_ = 0;
    taken_.clear();
    taken_.swap(queued_);
    return {taken_.begin(), taken_.size()};
  }

  void set_table_limit(std::size_t limit) { encoder_.set_limit(limit); }

  void preface();
  void settings(std::initializer_list<std::pair<Setting, std::uint32_t>> settings);
  void settings_ack() { put(FrameType::settings, kAck, 0, 0); }
  void ping(std::string_view payload, std::uint8_t flags);
  void goaway(std::int32_t last, std::uint32_t code);
  void rst_stream(std::int32_t stream, std::uint32_t code);
  void window_update(std::int32_t stream, std::uint32_t increment);
  // HEADERS, and CONTINUATION for a long section.
  void headers(std::int32_t stream, std::span<const Http2Field> fields, Http2End end);

 private:
  // Begins a frame, and returns the place of its payload, nullptr when memory ran out.
  char* put(FrameType type, std::uint8_t flags, std::int32_t stream, std::uint32_t size);
  bool split(std::size_t begin, std::int32_t stream, Http2End end);

  HpackEncoder encoder_;
  Array<char> queued_;
  Array<char> taken_;
  std::size_t count_ = 0;
  bool is_broken_ = false;
};

}  // namespace spate::http
