// Forms: parsing a multipart body does not depend on how the bytes are split, and a form built from
// any names and data is parsed as these.
#include "spate/http/form.h"

#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

using http::MultipartBuilder;
using http::MultipartDecoder;
using Event = MultipartDecoder::Event;

struct Read {
  std::string log;
  bool is_done = false;
  std::error_code error;
  bool operator==(const Read&) const = default;
};

// Lengths in front keep the log of one sequence apart from that of another.
void note(std::string& log, char kind, std::string_view text) {
  log.append({kind}).append(std::to_string(text.size())).append(":").append(text);
}

void take_piece(MultipartDecoder& decoder, Bytes bytes, Read& read, std::string& data) {
  for (;;) {
    switch (decoder.next(bytes)) {
      case Event::unfinished:
        return check(bytes.empty());
      case Event::broken:
        return;
      case Event::part:
        data.clear();
        note(read.log, 'p', decoder.name());
        note(read.log, 'f', decoder.filename().value_or("-"));
        note(read.log, 't', decoder.content_type());
        break;
      case Event::data:
        check(!decoder.data().empty());
        data.append(text_of(decoder.data()));
        break;
      case Event::part_end:
        note(read.log, 'd', data);
        break;
      case Event::end:
        read.log += 'e';
    }
  }
}

Read read(std::string_view body, std::size_t step, const http::MultipartLimits& limits) {
  auto decoder = MultipartDecoder::make("multipart/form-data; boundary=xx", limits);
  Read read;
  std::string data;
  for (std::size_t at = 0; at < body.size(); at += step)
    take_piece(*decoder, bytes_of(body.substr(at, step)), read, data);
  read.is_done = decoder->is_done();
  read.error = decoder->error();
  check(!(read.is_done && read.error));
  return read;
}

void try_out(std::string_view body, std::size_t step, const http::MultipartLimits& limits) {
  const Read whole = read(body, body.size() + 1, limits);
  check(whole == read(body, 1, limits) && whole == read(body, step, limits));
}

bool has_escape(std::string_view text) { return text.find('%') != std::string_view::npos; }

void build(Input& input) {
  Buffer body;
  MultipartBuilder form(body, "xx");
  std::string log;
  const std::size_t step = 1 + input.below(16);
  while (!input.empty()) {
    const std::string_view name = input.text(8);
    const std::string_view value = input.text(16);
    if (has_escape(name) || !form.add(name, value)) continue;
    note(log, 'p', name);
    note(log, 'f', "-");
    note(log, 't', "text/plain");
    note(log, 'd', value);
  }
  check(form.end());
  const Read again = read(text_of(body.flat(body.size())), step, {});
  check(again.is_done && again.log == log + 'e');
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  switch (input.byte() % 3) {
    case 0:
      build(input);
      break;
    case 1: {
      const std::size_t step = 1 + input.below(32);
      const std::size_t parts = input.below(4);
      try_out(input.rest(), step, {.parts = parts, .part_head = 1 + input.below(200)});
      break;
    }
    default:
      if (const auto decoder = spate::http::MultipartDecoder::make(input.rest()))
        check(!decoder->is_done());
  }
  return 0;
}
