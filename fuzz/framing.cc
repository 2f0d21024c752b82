// Framing: the output does not depend on how the bytes are split, contains all input, and keeps to
// the limit.
#include "spate/net/framing.h"

#include <string>
#include <vector>

#include "input.h"

namespace spate::fuzz {
namespace {

struct Result {
  std::vector<std::string> messages;
  std::size_t used = 0;
  bool broken = false;
  bool operator==(const Result&) const = default;
};

template <class Framing>
void go_on(const Framing& framing, std::string_view bytes, Result& result) {
  const Split part = split(bytes_of(bytes.substr(result.used)), framing,
                           [&](Bytes message) { result.messages.emplace_back(text_of(message)); });
  result.used += part.used;
  result.broken = part.broken;
}

// `step` bytes more each time; a handler sees all that it has not used.
template <class Framing>
Result receive(const Framing& framing, std::string_view bytes, std::size_t step) {
  Result result;
  for (std::size_t there = step; !result.broken; there += step) {
    go_on(framing, bytes.substr(0, there), result);
    if (there >= bytes.size()) break;
  }
  return result;
}

template <class Framing>
void try_out(const Framing& framing, std::string_view bytes, std::size_t step, std::size_t max) {
  const Result whole = receive(framing, bytes, bytes.size() + 1);
  check(whole == receive(framing, bytes, 1));
  check(whole == receive(framing, bytes, step));
  check(whole.used <= bytes.size());
  for (const std::string& message : whole.messages) check(message.size() <= max);
  const Frame next = framing.next(bytes_of(bytes.substr(whole.used)));
  check((next.state == Frame::State::broken) == whole.broken);
  if (next.state == Frame::State::unfinished) check(next.size > bytes.size() - whole.used);
}

LengthField length_field(Input& input) {
  return {.width = 1 + input.below(8),
          .order = input.flag() ? ByteOrder::big : ByteOrder::little,
          .offset = input.below(6),
          .after = input.below(6),
          .adjustment = static_cast<std::int64_t>(
              (input.flag() ? input.number(8) : std::uint64_t{input.byte()}) - 64),
          .max = static_cast<std::size_t>(input.flag() ? input.number(8) : input.byte()),
          .keep_header = input.flag()};
}

// A header that was written is read as the same length.
void write(LengthField field, std::size_t size) {
  std::byte target[8];
  if (!field.write(size, target)) return;
  field.offset = field.after = 0;
  field.keep_header = false;
  const Frame frame = field.next(Bytes(target, field.width));
  if (size == 0) return check(frame.state == Frame::State::whole && frame.message.empty());
  check(frame.state == Frame::State::unfinished && frame.size == field.width + size);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  using namespace spate::fuzz;
  Input input(data, size);
  const std::size_t step = 1 + input.below(64);
  switch (input.byte() % 3) {
    case 0: {
      const FixedSize framing{1 + input.below(64)};
      try_out(framing, input.rest(), step, framing.size);
      break;
    }
    case 1: {
      const LengthField framing = length_field(input);
      const auto written = static_cast<std::size_t>(input.number(input.flag() ? 8 : 1));
      write(framing, written);
      const std::size_t header = framing.offset + framing.width + framing.after;
      const std::size_t max = framing.max + (framing.keep_header ? header : 0);
      try_out(framing, input.rest(), step, max < framing.max ? SIZE_MAX : max);
      break;
    }
    default: {
      const std::string delimiter(input.text(4));
      const Delimiter framing{
          .delimiter = delimiter.empty() ? "\n" : std::string_view(delimiter),
          .max = static_cast<std::size_t>(input.flag() ? input.number(8) : input.byte()),
          .keep_delimiter = input.flag()};
      const std::size_t kept = framing.keep_delimiter ? framing.delimiter.size() : 0;
      const std::size_t max = framing.max + kept;
      try_out(framing, input.rest(), step, max < framing.max ? SIZE_MAX : max);
    }
  }
  return 0;
}
