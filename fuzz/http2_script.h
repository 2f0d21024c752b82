// Scripts for a session of HTTP/2: what the peer sends and what the owner calls, from the fuzzer's
// bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2/frame.h"
#include "http2_frames.h"
#include "input.h"

namespace spate::fuzz {

enum class Side : bool { server, client };

// A call of the owner between two inputs, or an input.
enum class Act : std::uint8_t {
  receive,
  respond,
  respond_without_body,
  inform,
  request,
  request_without_body,
  supply,
  finish,
  finish_with_trailers,
  reset,
  credit,
  ping,
  announce_end,
  refuse_streams,
};

struct Step {
  Act act = Act::receive;
  std::string bytes = {};
  std::int32_t id = 0;
  std::size_t size = 0;
};

// The owner's calls inside events.
struct Habits {
  bool responds = false;
  bool responds_with_body = false;
  bool credits = false;
  std::int32_t resets = 0;  // The stream whose body is refused.
};

struct Script {
  Side side = Side::server;
  Habits habits;
  std::vector<Step> steps;
  // Then errors may be found in another order: nghttp2 does not wait for the rest of a field.
  bool has_split_sections = false;
};

inline std::string head_of(std::string_view method, std::string_view path) {
  return coded(":method", method) + coded(":scheme", "http") + coded(":authority", "a") +
         coded(":path", path);
}

inline std::vector<std::string> heads_for(Side side) {
  if (side == Side::client)
    return {"\x88",
            "\x88",
            coded(":status", "103"),
            coded(":status", "204"),
            coded(":status", "304"),
            coded(":status", "101"),
            "\x8d"
            "\x40\x01x\x01y\xbe"};
  return {
      "\x82\x86\x84\x41\x01"
      "a",
      "\x83\x86\x84\x41\x01"
      "a",
      head_of("GET", "/"),
      head_of("POST", "/"),
      head_of("HEAD", "/"),
      head_of("OPTIONS", "*"),
      coded(":method", "CONNECT") + coded(":authority", "a:80"),
      head_of("CONNECT", "/") + coded(":protocol", "talk"),
      head_of("GET", "x")};
}

inline const std::vector<std::string>& fields() {
  static const std::vector<std::string> all = {coded("content-length", "5"),
                                               coded("content-length", "0"),
                                               coded("te", "trailers"),
                                               coded("priority", "u=0, i"),
                                               coded("cookie", "a=b"),
                                               coded("x", std::string(100, 'y')),
                                               coded("host", "b"),
                                               coded("connection", "x"),
                                               coded(":path", "/b"),
                                               coded("X", "y"),
                                               coded("x", " y"),
                                               "\x40\x01z\x01y",
                                               "\xbe",
                                               coded("content-length", "x"),
                                               coded("x", ""),
                                               coded("priority", "u=9")};
  return all;
}

inline Step step_of(Input& input, Http2FrameMaker& frames) {
  const std::size_t kind = input.below(40);
  Step step;
  if (kind < 13) {
    step.act = static_cast<Act>(kind + 1);
    step.id = static_cast<std::int32_t>(1 + 2 * input.below(8));
    step.size = input.below(256) * 10;
  } else if (kind < 36) {
    step.bytes = frames.next();
    if (kind == 35 && !step.bytes.empty()) step.bytes += frames.next();
  } else if (kind < 38) {
    step.bytes = frames.next();
    const std::size_t at = input.below(std::min<std::size_t>(step.bytes.size(), 16));
    if (at != 0 && at != 1) step.bytes[at] = static_cast<char>(input.byte());
  } else {
    step.bytes = input.text(30);
  }
  return step;
}

// Gives each step whole frames, one at a time, in two pieces. nghttp2 decides some things when it
// sends or while a frame arrives, so that its decisions depend on how many frames arrive at once.
inline void cut(Script& script) {
  std::vector<Step> steps;
  std::string rest;
  std::string section;  // The frames of an incomplete header section.
  bool has_preface = script.side == Side::client;
  for (Step& step : script.steps) {
    if (step.act != Act::receive) steps.push_back(step);
    rest += step.bytes;
    for (;;) {
      std::size_t size = has_preface ? http::kFrameHead : http::kHttp2Preface.size();
      http::FrameHead head;
      if (rest.size() >= size && has_preface) head = http::read_frame_head(rest.data());
      // A head that is invalid needs no payload.
      if (head.size <= http::kMostPayload) size += head.size;
      if (rest.size() < size) break;
      section += rest.substr(0, size);
      rest.erase(0, size);
      const bool is_incomplete =
          (head.type == http::FrameType::headers || head.type == http::FrameType::continuation) &&
          !head.has(http::kEndHeaders);
      if (std::exchange(has_preface, true) && is_incomplete) {
        script.has_split_sections = true;
        continue;
      }
      const std::size_t cut = rest.size() % (section.size() + 1);
      steps.push_back({.act = Act::receive, .bytes = std::exchange(section, {}), .size = cut});
    }
  }
  script.steps = std::move(steps);
}

inline Script script_of(Input& input) {
  Script script;
  const std::uint8_t first = input.byte();
  script.side = (first & 1) != 0 ? Side::client : Side::server;
  script.habits = {.responds = (first & 2) != 0,
                   .responds_with_body = (first & 4) != 0,
                   .credits = (first & 8) != 0,
                   .resets = (first & 16) != 0 ? 3 : 0};
  static const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);
  const bool is_greeted = (first & 0xe0) != 0;
  std::string greeting = script.side == Side::server ? std::string(http::kHttp2Preface) : "";
  if (is_greeted) greeting += kSettings;
  script.steps.push_back({.act = Act::receive, .bytes = greeting});
  if ((first & 0xc0) != 0)
    script.steps.push_back({.act = Act::receive, .bytes = std::string("\0\0\0\4\1\0\0\0\0", 9)});
  if (script.side == Side::client)
    for (int i = 0; i < 3; ++i)
      script.steps.push_back(
          {.act = i == 1 ? Act::request_without_body : Act::request, .size = input.below(4)});
  const std::vector<std::string> heads = heads_for(script.side);
  Http2FrameMaker frames(input, heads, fields());
  while (script.steps.size() < 40 && !input.empty()) script.steps.push_back(step_of(input, frames));
  cut(script);
  return script;
}

// Whether a frame size is out of range and followed by another one: nghttp2 looks at the last only.
inline bool has_replaced_frame_size(std::string_view payload) {
  bool is_invalid = false;
  for (; payload.size() >= 6; payload.remove_prefix(6)) {
    if (http::read_number(payload.data(), 2) != 5) continue;
    if (is_invalid) return true;
    const std::uint32_t size = http::read_number(payload.data() + 2, 4);
    is_invalid = size < http::kMostPayload || size >= 1 << 24;
  }
  return false;
}

// Whether a frame has one of the differences that are chosen.
inline bool is_excepted(Side side, const http::FrameHead& head, std::string_view payload,
                        std::int32_t newest) {
  switch (head.type) {
    case http::FrameType::goaway:
      return side == Side::server && payload.size() >= 8 && http::read_31_bits(payload.data()) != 0;
    case http::FrameType::push_promise:
      return true;
    case http::FrameType::data:
    case http::FrameType::headers:  // Too short: several errors at once.
      return head.size < 6 && (head.has(http::kPadded) || head.has(http::kHasPriority));
    case http::FrameType::continuation:
      return head.size > http::kMostPayload;
    case http::FrameType::priority:
      return side == Side::client && payload.size() == 5 &&
             http::read_31_bits(payload.data()) == head.stream;
    case http::FrameType::settings:
      return has_replaced_frame_size(payload) ||
             // An overflow of a stream's window.
             (payload.size() >= 6 && http::read_number(payload.data(), 2) == 4 &&
              http::read_31_bits(payload.data() + 2) > 0x3fffffff);
    case http::FrameType::priority_update:
      return payload.size() >= 4 && (http::read_31_bits(payload.data()) == 0 ||
                                     http::read_31_bits(payload.data()) > newest);
    default:
      return false;
  }
}
inline bool is_excepted(const Script& script) {
  std::string all;
  for (const Step& step : script.steps) all += step.bytes;
  std::string_view rest = all;
  std::int32_t newest = 0;
  const bool is_refusing = std::ranges::count(script.steps, Act::refuse_streams, &Step::act) > 0;
  if (script.side == Side::server)
    rest.remove_prefix(std::min(rest.size(), http::kHttp2Preface.size()));
  while (rest.size() >= http::kFrameHead) {
    const http::FrameHead head = http::read_frame_head(rest.data());
    rest.remove_prefix(http::kFrameHead);
    const std::string_view payload = rest.substr(0, head.size);
    if (is_excepted(script.side, head, payload, newest)) return true;
    // Behind a GOAWAY, nghttp2's owner guesses which streams were closed by the client.
    if (head.type == http::FrameType::headers && is_refusing && head.stream < newest) return true;
    if (head.type == http::FrameType::headers) newest = std::max(newest, head.stream);
    rest.remove_prefix(payload.size());
  }
  return false;
}

}  // namespace spate::fuzz
