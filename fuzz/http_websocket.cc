// Frames of WebSocket: the result does not depend on how the bytes are split, nor, apart from the
// parts themselves, on whether messages are delivered in parts; written frames are parsed as the
// same.
#include <algorithm>
#include <memory>
#include <string>

#include "http/codec/websocket_reader.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using http::FrameHead;
using http::MessageKind;
using http::MessageView;
using http::WebSocketReader;
using http::WebSocketRole;
using http::WebSocketRules;
using State = WebSocketReader::State;

constexpr std::size_t kRoom = 200;

struct Seen {
  std::string log;
  bool is_over = false;
  bool operator==(const Seen&) const = default;
};

void note(Seen& seen, char what, std::string_view text) {
  seen.log.append(1, what).append(std::to_string(text.size())).append(":").append(text);
}

// Parts are put together.
void note_message(Seen& seen, std::string& parts, const WebSocketReader& reader) {
  parts.append(text_of(reader.payload()));
  if (!reader.is_last()) return;
  note(seen, reader.kind() == MessageKind::text ? 't' : 'b', parts);
  parts.clear();
}

Seen read(std::string_view text, const WebSocketRules& rules, std::size_t step) {
  WebSocketReader reader;
  http::MessageInflater inflater;
  Seen seen;
  std::string parts;
  std::string left;
  for (std::size_t at = 0; at < text.size() && !seen.is_over; at += step) {
    left.append(text.substr(at, step));
    const std::unique_ptr<std::byte[]> copy(new std::byte[left.size() + kRoom]);
    std::ranges::copy(bytes_of(left), copy.get());
    Bytes bytes(copy.get(), left.size());
    const WebSocketReader::Room room = {{copy.get() + left.size(), kRoom}, inflater};
    State state = reader.next(bytes, rules, room);
    for (; state == State::message || state == State::ping || state == State::pong;
         state = reader.next(bytes, rules, room)) {
      if (state == State::message) note_message(seen, parts, reader);
      if (state != State::message) note(seen, 'c', text_of(reader.payload()));
    }
    seen.is_over = state != State::unfinished;
    if (seen.is_over) note(seen, 'x', std::to_string(static_cast<int>(reader.code())));
    left = text_of(bytes);
    check(seen.is_over || left.size() < http::kMostFrameHead + http::kMostControl);
  }
  return seen;
}

void read_all_ways(Input& input) {
  const bool is_server = input.flag();
  WebSocketRules rules = {.role = is_server ? WebSocketRole::server : WebSocketRole::client,
                          .takes_compressed = input.flag(),
                          .max_message = input.below(2000)};
  const std::size_t step = 1 + input.below(40);
  const Seen whole = read(input.rest(), rules, input.rest().size() + 1);
  check(whole == read(input.rest(), rules, 1) && whole == read(input.rest(), rules, step));
  rules.view = MessageView::parts;
  const Seen parts = read(input.rest(), rules, step);
  check(whole.is_over || whole.log == parts.log);
}

void write(Input& input) {
  std::string bytes;
  Seen written;
  const bool is_masked = input.flag();
  const std::size_t step = 1 + input.below(40);
  while (!input.empty()) {
    const std::string_view payload = input.text(300);
    const http::Mask mask = {std::byte{input.byte()}, std::byte{2}, std::byte{3}, std::byte{4}};
    FrameHead head = {.opcode = http::Opcode::binary, .is_masked = is_masked, .mask = mask};
    head.size = payload.size();
    std::byte made[http::kMostFrameHead + 300];
    const std::size_t size = http::write_frame_head(head, made);
    http::apply_mask(is_masked ? mask : http::Mask{}, bytes_of(payload), made + size);
    bytes.append(text_of(Bytes(made, size + payload.size())));
    note(written, 'b', payload);
  }
  const auto role = is_masked ? WebSocketRole::server : WebSocketRole::client;
  check(read(bytes, {.role = role, .max_message = 300}, step) == written);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::Input input(data, size);
  input.flag() ? spate::fuzz::write(input) : spate::fuzz::read_all_ways(input);
  return 0;
}
