// Server-sent events: parsing does not depend on how the bytes are split; written events are parsed
// as the same.
#include "spate/http/event_stream.h"

#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

using http::EventDecoder;
using State = EventDecoder::State;

struct Seen {
  std::string log;
  bool is_broken = false;
  std::string last_id;
  bool operator==(const Seen&) const = default;
};

void note(std::string& log, std::string_view text) {
  log.append(std::to_string(text.size())).append(":").append(text);
}

Seen read(std::string_view text, std::size_t step, std::size_t limit) {
  EventDecoder decoder(limit);
  Seen seen;
  for (std::size_t at = 0; at < text.size() && !seen.is_broken; at += step) {
    Bytes bytes = bytes_of(text.substr(at, step));
    State state = decoder.next(bytes);
    for (; state == State::event; state = decoder.next(bytes)) {
      check(decoder.data().size() <= limit);
      note(seen.log, decoder.type());
      note(seen.log, decoder.data());
      note(seen.log, decoder.last_id());
    }
    seen.is_broken = state == State::broken;
    check(seen.is_broken || bytes.empty());
  }
  seen.last_id = decoder.last_id();
  return seen;
}

bool has_line_end(std::string_view text) {
  return text.find_first_of("\r\n") != std::string_view::npos;
}

void write(Input& input) {
  Buffer target;
  std::string log;
  const std::size_t step = 1 + input.below(16);
  std::string last_id;
  while (!input.empty()) {
    const std::string_view type = input.text(8);
    const std::string_view id = input.text(8);
    const std::string_view data = input.text(16);
    if (data.find('\r') != std::string_view::npos) continue;
    const bool is_written = http::append_event({.data = data, .event = type, .id = id}, target);
    const bool is_bad = has_line_end(type) || has_line_end(id) || id.find('\0') != id.npos;
    check(is_written != is_bad && http::append_event_comment(type, target));
    if (is_bad) continue;
    note(log, type.empty() ? "message" : type);
    note(log, data);
    note(log, id);
  }
  const Seen seen = read(text_of(target.flat(target.size())), step, 10000);
  check(seen.log == log && !seen.is_broken);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  if (input.flag()) {
    write(input);
    return 0;
  }
  const std::size_t step = 1 + input.below(16);
  const std::size_t limit = input.below(256);
  const Seen whole = read(input.rest(), input.rest().size() + 1, limit);
  check(whole == read(input.rest(), 1, limit) && whole == read(input.rest(), step, limit));
  return 0;
}
