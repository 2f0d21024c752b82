// Compression: any bytes are rejected or inflate to no more than the limit, however they are split;
// compressed data inflates to the original.
#include "spate/http/compression.h"

#include <algorithm>
#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

using http::Coding;
using http::Compressor;
using http::Decompressor;
using State = Decompressor::State;

struct Inflated {
  std::string text;
  std::error_code error;
  bool is_done = false;
  bool operator==(const Inflated&) const = default;
};

Inflated inflate(Decompressor& decompressor, std::string_view body, std::size_t step,
                 std::size_t most) {
  decompressor.reset();
  Buffer target;
  for (std::size_t at = 0; at < body.size() && !decompressor.error(); at += step) {
    Bytes bytes = bytes_of(body.substr(at, step));
    State state = State::full;
    while (state == State::full) {
      const std::size_t before = target.size();
      state = decompressor.next(bytes, target, most);
      check(target.size() - before <= most);
    }
  }
  return {std::string(text_of(target.flat(target.size()))), decompressor.error(),
          decompressor.is_done()};
}

void take_apart(Coding coding, Input& input) {
  const std::uint64_t limit = input.below(4096);
  auto decompressor = Decompressor::make(coding, limit);
  const std::size_t step = 1 + input.below(64);
  const Inflated whole = inflate(*decompressor, input.rest(), input.rest().size() + 1, SIZE_MAX);
  check(whole.text.size() <= limit);
  check(whole == inflate(*decompressor, input.rest(), step, 1 + step));
}

void go_around(Coding coding, Input& input) {
  auto compressor = Compressor::make(coding, 1 + static_cast<int>(input.below(9)));
  auto decompressor = Decompressor::make(coding, input.rest().size());
  Buffer target;
  std::string text;
  while (!input.empty()) {
    const std::string_view piece = input.text(64);
    text += piece;
    check(compressor->write(bytes_of(piece), target));
    if (input.flag()) check(compressor->flush(target));
  }
  check(compressor->end(target));
  const Inflated back =
      inflate(*decompressor, text_of(target.flat(target.size())), 1 + text.size() % 7, 100);
  check(back.is_done && back.text == text);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  const std::uint8_t choice = input.byte();
  const auto coding = (choice & 1) != 0 ? spate::http::Coding::gzip : spate::http::Coding::deflate;
  (choice & 2) != 0 ? go_around(coding, input) : take_apart(coding, input);
  return 0;
}
