// Framing: splits a stream of bytes into messages. Three decoders, independent of sockets: fixed
// size, length prefix, delimiter.
//
// The decoders are values and keep no bytes. on_data() splits its input and does not use an
// incomplete message at the end, so that it is passed in again. One thread at a time.
//
//   std::size_t on_data(Bytes bytes) override {
//     return split(bytes, LengthField{}, [this](Bytes message) { handle(message); }).used;
//   }
//
// For long messages, pass Split::wanted to Stream::want(), so that their beginning is not scanned
// again with each arrival. Keep a Delimiter as a member: it continues its search.
//
//     const Split lines = split(bytes, line_, [this](Bytes line) { handle(line); });
//     stream().want(lines.wanted);
//     return lines.used;
//
// A length beyond the limit, or no delimiter within it, sets Split::broken: close the connection.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "spate/assert.h"
#include "spate/net/buffer.h"

namespace spate {

// The result of one decoding step: the message at the front, if it is complete.
struct Frame {
  enum class State : std::uint8_t {
    whole,       // `message`, which occupies `size` bytes with its framing.
    unfinished,  // At least `size` bytes are needed.
    broken,      // Invalid.
  };
  State state;
  std::size_t size;
  Bytes message;

  static Frame whole(Bytes message, std::size_t size) { return {State::whole, size, message}; }
  static Frame unfinished(std::size_t size) { return {State::unfinished, size, {}}; }
  static Frame broken() { return {State::broken, 0, {}}; }
};

// Messages of fixed size.
struct FixedSize {
  std::size_t size;  // At least 1.

  Frame next(Bytes bytes) const {
    SPATE_ASSERT(size > 0, "set FixedSize::size");
    if (bytes.size() < size) return Frame::unfinished(size);
    return Frame::whole(bytes.first(size), size);
  }
};

enum class ByteOrder : std::uint8_t { big, little };

// Messages with a length prefix, an unsigned integer.
struct LengthField {
  std::size_t width = 4;               // Bytes of the length: 1 ... 8.
  ByteOrder order = ByteOrder::big;    // Network order.
  std::size_t offset = 0;              // Header bytes before the length.
  std::size_t after = 0;               // Header bytes after the length.
  std::int64_t adjustment = 0;         // Added to the length: negative if it counts header bytes.
  std::size_t max = 16 * 1024 * 1024;  // Bytes after the header; a longer message is broken.
  bool keep_header = false;            // `message` includes the header.

  Frame next(Bytes bytes) const {
    SPATE_ASSERT(width >= 1 && width <= 8, "LengthField::width is 1 ... 8");
    const std::size_t header = offset + width + after;
    if (bytes.size() < offset + width) return Frame::unfinished(header);
    const std::optional<std::size_t> length = adjusted(read(bytes.subspan(offset, width)));
    if (!length) return Frame::broken();
    const std::size_t whole = header + *length;
    if (bytes.size() < whole) return Frame::unfinished(whole);
    const std::size_t from = keep_header ? 0 : header;
    return Frame::whole(bytes.subspan(from, whole - from), whole);
  }
  // Writes the length field for `size` bytes after the header into the first `width` bytes of
  // `target`. False if `size` does not fit, or exceeds `max`.
  bool write(std::size_t size, std::span<std::byte> target) const {
    SPATE_ASSERT(target.size() >= width, "`target` needs LengthField::width bytes");
    if (size > max || std::cmp_greater(size, INT64_MAX)) return false;
    const auto value = static_cast<std::uint64_t>(size) - static_cast<std::uint64_t>(adjustment);
    if (value > INT64_MAX || (width < 8 && value >> (8 * width) != 0)) return false;
    for (std::size_t i = 0; i < width; ++i)
      target[order == ByteOrder::big ? width - 1 - i : i] =
          static_cast<std::byte>(value >> (8 * i));
    return true;
  }

 private:
  std::uint64_t read(Bytes field) const {
    if (width == sizeof(std::uint32_t)) return read_word(field);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::byte byte = field[order == ByteOrder::big ? i : width - 1 - i];
      value = value << 8 | std::to_integer<std::uint64_t>(byte);
    }
    return value;
  }
  // The fast path: a length of four bytes is the most common.
  std::uint32_t read_word(Bytes field) const {
    std::uint32_t word;
    std::memcpy(&word, field.data(), sizeof(word));
    const bool is_native =
        (order == ByteOrder::little) == (std::endian::native == std::endian::little);
    return is_native ? word : __builtin_bswap32(word);
  }
  std::optional<std::size_t> adjusted(std::uint64_t length) const {
    if (length > INT64_MAX) return {};
    std::int64_t sum = 0;
    if (__builtin_add_overflow(static_cast<std::int64_t>(length), adjustment, &sum)) return {};
    if (sum < 0 || static_cast<std::uint64_t>(sum) > max) return {};
    return static_cast<std::size_t>(sum);
  }
};

// Messages that end with a delimiter. A non-const Delimiter remembers how many bytes it has
// searched. Use it for one stream only, and pass in the unused bytes again, followed by the next
// ones.
struct Delimiter {
  std::string_view delimiter = "\n";  // At least one byte; must outlive the decoder.
  std::size_t max = 64 * 1024;        // Bytes of a message; a longer one is broken.
  bool keep_delimiter = false;
  std::size_t searched = 0;  // Bytes of an unfinished message that were searched.

  Frame next(Bytes bytes) {
    const Frame frame = std::as_const(*this).next(bytes);
    searched = frame.state == Frame::State::unfinished ? bytes.size() : 0;
    return frame;
  }
  Frame next(Bytes bytes) const {
    SPATE_ASSERT(!delimiter.empty(), "set Delimiter::delimiter");
    const std::string_view text = text_of(bytes);
    const std::size_t within =
        max < SIZE_MAX - delimiter.size() ? max + delimiter.size() : SIZE_MAX;
    // The searched bytes may end with the beginning of a delimiter.
    const std::size_t from = searched < delimiter.size() ? 0 : searched - (delimiter.size() - 1);
    const std::size_t at = text.substr(0, within).find(delimiter, from);
    if (at != std::string_view::npos)
      return Frame::whole(bytes.first(at + (keep_delimiter ? delimiter.size() : 0)),
                          at + delimiter.size());
    return text.size() < within ? Frame::unfinished(text.size() + 1) : Frame::broken();
  }
};

// The result of split().
struct Split {
  std::size_t used = 0;    // For on_data() to return.
  std::size_t wanted = 0;  // For Stream::want(): the bytes needed for the next message, or 0.
  bool broken = false;
};

// Calls `on_message(Bytes)` for each whole message, in order. It may return a bool: false stops.
// The bytes are valid until it returns.
template <class Framing, class Function>
Split split(Bytes bytes, Framing&& framing, Function on_message) {
  Split split;
  for (;;) {
    const Frame frame = framing.next(bytes.subspan(split.used));
    if (frame.state != Frame::State::whole) {
      split.broken = frame.state == Frame::State::broken;
      split.wanted = frame.size;
      return split;
    }
    split.used += frame.size;
    if constexpr (std::is_same_v<decltype(on_message(frame.message)), bool>) {
      if (!on_message(frame.message)) return split;
    } else {
      on_message(frame.message);
    }
  }
}

}  // namespace spate
