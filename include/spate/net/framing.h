// Framing: where messages end in a stream of bytes. Three decoders that know nothing of sockets:
// fixed size, a length in front, a delimiter behind.
//
// They are values, own nothing, and keep no bytes: what on_data() is given is split, and what is
// left of the last, unfinished message is simply not used, so that it comes again. All are for one
// thread at a time.
//
//   std::size_t on_data(Bytes bytes) override {
//     return split(bytes, LengthField{}, [this](Bytes message) { handle(message); }).used;
//   }
//
// Messages that take many arrivals are not looked at with each of them: the handler says how many
// bytes are to be there before it is called again, and keeps a Delimiter as a member, which goes on
// searching where it has come to.
//
//     const Split lines = split(bytes, line_, [this](Bytes line) { handle(line); });
//     stream().want(lines.wanted);
//     return lines.used;
//
// A peer that breaks the rules (a length beyond the limit, no delimiter within it) is reported by
// Split::broken: nothing after that can be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "spate/assert.h"
#include "spate/net/buffer.h"

namespace spate {

// What the front of a stream of bytes is.
struct Frame {
  enum class State : std::uint8_t {
    whole,       // `message` is there; `size` bytes are used up, the framing's own included.
    unfinished,  // At least `size` bytes are needed before it is worth looking again.
    broken,      // The bytes break the rules.
  };
  State state;
  std::size_t size;
  Bytes message;

  static Frame whole(Bytes message, std::size_t size) { return {State::whole, size, message}; }
  static Frame unfinished(std::size_t size) { return {State::unfinished, size, {}}; }
  static Frame broken() { return {State::broken, 0, {}}; }
};

// Messages of one size.
struct FixedSize {
  std::size_t size;  // At least 1.

  Frame next(Bytes bytes) const {
    SPATE_ASSERT(size > 0, "set FixedSize::size");
    if (bytes.size() < size) return Frame::unfinished(size);
    return Frame::whole(bytes.first(size), size);
  }
};

enum class ByteOrder : std::uint8_t { big, little };

// A length in front of each message, as an unsigned integer.
struct LengthField {
  std::size_t width = 4;               // Bytes of the length: 1 ... 8.
  ByteOrder order = ByteOrder::big;    // Network order.
  std::size_t offset = 0;              // Bytes of header before the length.
  std::size_t behind = 0;              // Bytes of header between the length and the rest.
  std::int64_t adjustment = 0;         // Added to the length: negative if it counts header bytes.
  std::size_t max = 16 * 1024 * 1024;  // Of what follows the header; more is broken.
  bool keep_header = false;            // The message shows the header, too.

  Frame next(Bytes bytes) const {
    SPATE_ASSERT(width >= 1 && width <= 8, "LengthField::width is 1 ... 8");
    const std::size_t header = offset + width + behind;
    if (bytes.size() < offset + width) return Frame::unfinished(header);
    const std::optional<std::size_t> length = adjusted(read(bytes.subspan(offset, width)));
    if (!length) return Frame::broken();
    const std::size_t whole = header + *length;
    if (bytes.size() < whole) return Frame::unfinished(whole);
    const std::size_t from = keep_header ? 0 : header;
    return Frame::whole(bytes.subspan(from, whole - from), whole);
  }
  // The length field for `size` bytes that follow the header, into `width` bytes at `target`. False
  // if it does not fit, or is more than allowed.
  bool write(std::size_t size, std::span<std::byte> target) const {
    SPATE_ASSERT(target.size() >= width, "give it room for LengthField::width bytes");
    if (size > max || size > INT64_MAX) return false;
    const auto value = static_cast<std::uint64_t>(size) - static_cast<std::uint64_t>(adjustment);
    if (value > INT64_MAX || (width < 8 && value >> (8 * width) != 0)) return false;
    for (std::size_t i = 0; i < width; ++i)
      target[order == ByteOrder::big ? width - 1 - i : i] =
          static_cast<std::byte>(value >> (8 * i));
    return true;
  }

 private:
  std::uint64_t read(Bytes field) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::byte byte = field[order == ByteOrder::big ? i : width - 1 - i];
      value = value << 8 | std::to_integer<std::uint64_t>(byte);
    }
    return value;
  }
  std::optional<std::size_t> adjusted(std::uint64_t length) const {
    if (length > INT64_MAX) return {};
    std::int64_t sum = 0;
    if (__builtin_add_overflow(static_cast<std::int64_t>(length), adjustment, &sum)) return {};
    if (sum < 0 || static_cast<std::uint64_t>(sum) > max) return {};
    return static_cast<std::size_t>(sum);
  }
};

// Something behind each message. One that is not const remembers how far it has searched, and is
// for one stream; give it what it has left, with what follows.
struct Delimiter {
  std::string_view delimiter = "\n";  // At least one byte; must outlive the decoder.
  std::size_t max = 64 * 1024;        // Of a message; more without a delimiter is broken.
  bool keep_delimiter = false;
  std::size_t searched = 0;  // Bytes of an unfinished message that next() has looked at.

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
    // The delimiter's beginning may have been the end of what was there.
    const std::size_t from = searched < delimiter.size() ? 0 : searched - (delimiter.size() - 1);
    const std::size_t at = text.substr(0, within).find(delimiter, from);
    if (at != std::string_view::npos)
      return Frame::whole(bytes.first(at + (keep_delimiter ? delimiter.size() : 0)),
                          at + delimiter.size());
    return text.size() < within ? Frame::unfinished(text.size() + 1) : Frame::broken();
  }
};

// What split() has come to.
struct Split {
  std::size_t used = 0;    // What on_data() is to return.
  std::size_t wanted = 0;  // What Stream::want() may be told, unless 0: so much makes a message,
                           // with what is left.
  bool broken = false;
};

// Calls `on_message(Bytes)` for each whole message, in order. If it returns a bool, false stops.
// A message's view ends with the call.
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
