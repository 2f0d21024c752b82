// The chunked coding: the output does not depend on how the bytes arrived or on how many of them
// were used; its framing keeps to its limit; data written in chunks is read back unchanged.
#include "http/codec/chunked.h"

#include <algorithm>
#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

using namespace spate::http;
using State = ChunkedDecoder::State;

struct Result {
  std::string data;
  std::string trailers;
  State state = State::unfinished;
  const char* reason = nullptr;
  std::size_t used = 0;
  bool operator==(const Result&) const = default;
};

void go_on(ChunkedDecoder& decoder, Bytes bytes, std::size_t most, Fields& trailers,
           Result& result) {
  for (;;) {
    const auto step = decoder.next(bytes.subspan(result.used), trailers);
    result.state = step.state;
    result.reason = step.refusal.reason;
    result.used += step.used;
    if (step.state != State::data) return;
    check(!step.data.empty());
    const Bytes taken = step.data.first(std::min(step.data.size(), most));
    result.data += text_of(taken);
    decoder.take(taken.size());
    result.used += taken.size();
  }
}

Result decode(Bytes bytes, std::size_t step, std::size_t most) {
  ChunkedDecoder decoder;
  Fields trailers;
  Result result;
  for (std::size_t there = 0; result.state == State::unfinished && there < bytes.size();) {
    there += std::min(step, bytes.size() - there);
    go_on(decoder, bytes.first(there), most, trailers, result);
  }
  check(decoder.size() == result.data.size());
  result.trailers = trailers.lines();
  for (const Field field : trailers.view()) check(may_be_trailer(field.id));
  return result;
}

// 16 bytes a chunk are free, of which each has one byte of data at least.
void check_budget(const Result& result) {
  const std::size_t framing = result.used - result.data.size();
  const std::size_t most = 18 * (result.data.size() + 2) + ChunkedDecoder::kMostExcess +
                           ChunkedDecoder::kMostTrailerBytes + 64;
  check(framing <= most);
}

void try_out(Bytes bytes, std::size_t step, std::size_t most) {
  const Result whole = decode(bytes, SIZE_MAX, SIZE_MAX);
  check(whole == decode(bytes, 1, SIZE_MAX));
  check(whole == decode(bytes, step, most));
  check_budget(whole);
  if (whole.state == State::end) check(whole == decode(bytes.first(whole.used), step, 1));
}

void write_and_read(Input& input, std::size_t step) {
  std::string text;
  const std::string trailers = input.flag() ? "A: b\r\n" : "";
  std::string data;
  while (!input.empty()) {
    const std::string chunk(1 + input.below(300), static_cast<char>(input.byte()));
    data += chunk;
    text += std::string(ChunkHeader(chunk.size()).text()) + chunk + std::string(kChunkEnd);
  }
  text += std::string(kLastChunkHeader) + trailers + std::string(kChunkEnd);
  const Result result = decode(bytes_of(text), step, SIZE_MAX);
  check(result.state == State::end && result.used == text.size());
  check(result.data == data && result.trailers == trailers);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  using namespace spate::fuzz;
  Input input(data, size);
  const std::size_t step = 1 + input.below(64);
  const std::size_t most = 1 + input.below(16);
  if ((input.byte() & 1) != 0)
    write_and_read(input, step);
  else
    try_out(bytes_of(input.rest()), step, most);
  return 0;
}
