// The chunked transfer coding (RFC 9112 §7.1): reading it where it lies, and its framing to be
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/codec/refusal.h"
#include "spate/http/fields.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Fields that a trailer section must not have (RFC 9110 §6.5.1): framing, routing, authentication,
// conditions, and what says how the content is to be read.
bool may_be_trailer(FieldId id);

// Passes over the framing and shows the data. What follows the data goes in again with more bytes
// behind it, until it is used: the trailer section is read when all of it is there.
//
//   for (;;) {
//     const auto step = decoder.next(bytes.subspan(used), trailers);
//     used += step.used;
//     if (step.state != ChunkedDecoder::State::data) break;
//     const std::size_t taken = handler.on_body(step.data);
//     decoder.take(taken);
//     used += taken;
//     if (taken < step.data.size()) break;
//   }
class ChunkedDecoder {
 public:
  enum class State : std::uint8_t { unfinished, data, end, broken };
  struct Step {
    State state;
    std::size_t used = 0;  // Bytes in front that are done with.
    Bytes data = {};       // Data: what follows them, to be taken in whole or in part.
    Refusal refusal = {};  // Broken.
  };

  // Framing beyond 16 bytes a chunk and twice its data; and the bytes and fields of the trailer
  // section.
  static constexpr std::size_t kMostExcess = 16 * 1024;
  static constexpr std::size_t kMostTrailerBytes = 16 * 1024;

  // Fields of the trailer section are added to `trailers`, but for those that may not be there.
  // Content-Length and Transfer-Encoding there are refused.
  Step next(Bytes bytes, Fields& trailers);
  // The first `count` bytes of the data that the last step has shown.
  void take(std::size_t count);

  // Of data, so far.
  std::uint64_t size() const { return size_; }

 private:
  enum class Place : std::uint8_t {
    size_begin,
    size,
    blank_before_extension,
    name_begin,
    name,
    blank_behind_name,
    value_begin,
    value,
    quoted,
    escaped,
    behind_quoted,
    size_line_feed,
    data,
    data_return,
    data_line_feed,
    trailers,
    end,
    broken,
  };

  Refusal pass(char c);
  bool add_digit(char c);
  static Place behind_size(char c);
  Place in_extension(char c) const;
  void begin_data();
  Step fail(std::size_t used, Refusal refusal);
  Step next_trailers(Bytes bytes, std::size_t used, Fields& trailers);

  std::uint64_t left_ = 0;  // Of the chunk; its size, while that is being read.
  std::uint64_t size_ = 0;
  std::uint32_t excess_ = 0;
  std::uint32_t looked_at_ = 0;  // Of the trailer section.
  std::uint8_t digits_ = 0;
  Place place_ = Place::size_begin;
};

// What goes in front of a chunk of `size` bytes, which is at least 1. Behind it goes kChunkEnd.
class ChunkHeader {
 public:
  explicit ChunkHeader(std::uint64_t size);
  std::string_view text() const { return {text_ + begin_, sizeof(text_) - begin_}; }

 private:
  char text_[18];  // The size in 16 digits at most, and CR LF.
  std::size_t begin_;
};
inline constexpr std::string_view kChunkEnd = "\r\n";
// Ends the body. With trailers: kLastChunkHeader, Fields::lines() and kChunkEnd.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kLastChunkHeader = "0\r\n";

}  // namespace spate::http
