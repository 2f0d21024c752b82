// The chunked transfer coding (RFC 9112 §7.1): an in-place decoder, and the framing for output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/codec/refusal.h"
#include "spate/http/fields.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Returns false for fields that a trailer section must not have (RFC 9110 §6.5.1): framing,
// routing, authentication, conditions, and the encoding of the content.
bool may_be_trailer(FieldId id);
// Returns whether a program may send these as trailers, in either protocol and direction.
bool may_be_trailers(const Fields& fields);

// Skips the framing and returns the data. Unused bytes after the data must be passed in again
// together with the bytes that follow. The trailer section is parsed when it is complete.
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
    std::size_t used = 0;  // Bytes at the front that are used up.
    Bytes data = {};       // With `data`: the bytes after them, all or some of which may be taken.
    Refusal refusal = {};  // With `broken`.
  };

  // Limits: framing beyond 16 bytes per chunk and twice its data; the bytes of the trailer section.
  static constexpr std::size_t kMostExcess = 16 * 1024;
  static constexpr std::size_t kMostTrailerBytes = 16 * 1024;

  // Blanks after a chunk's size. Several servers pad the size, and RFC 9112 §7.1.1 allows blanks
  // before an extension. Parsers disagree about such a line, so a server refuses it.
  enum class Blanks : std::uint8_t { refused, passed };

  ChunkedDecoder() = default;
  explicit ChunkedDecoder(Blanks blanks) : passes_blanks_(blanks == Blanks::passed) {}

  // Parses up to the next data. Adds fields of the trailer section to `trailers`, except those that
  // may_be_trailer() excludes. Content-Length and Transfer-Encoding there are refused.
  Step next(Bytes bytes, Fields& trailers);
  // Consumes the first `count` bytes of the data that the last step returned.
  void take(std::size_t count);

  // Returns the number of data bytes.
  std::uint64_t size() const { return size_; }

 private:
  enum class Place : std::uint8_t {
    size_begin,
    size,
    padding,
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
  Place behind_padding() const;
  Place in_extension(char c) const;
  void begin_data();
  Step fail(std::size_t used, Refusal refusal);
  Step next_trailers(Bytes bytes, std::size_t used, Fields& trailers);

  std::uint64_t left_ = 0;  // Bytes left of the chunk; its size, while that is being parsed.
  std::uint64_t size_ = 0;
  std::uint32_t excess_ = 0;
  std::uint32_t looked_at_ = 0;  // Scanned bytes of the trailer section.
  std::uint8_t digits_ = 0;
  bool passes_blanks_ = false;
  Place place_ = Place::size_begin;
};

// The header of a chunk of `size` bytes, at least 1. kChunkEnd follows the data.
class ChunkHeader {
 public:
  explicit ChunkHeader(std::uint64_t size);
  std::string_view text() const { return {text_ + begin_, sizeof(text_) - begin_}; }

 private:
  char text_[18];  // The size in at most 16 digits, and CR LF.
  std::size_t begin_;
};
inline constexpr std::string_view kChunkEnd = "\r\n";
// Ends the body. With trailers send kLastChunkHeader, Fields::lines() and kChunkEnd instead.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kLastChunkHeader = "0\r\n";

}  // namespace spate::http
