// The codec's results for the bytes of a connection, in the words of vectors/README.md.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/request_check.h"

namespace spate::http {

// An accepted message, or its beginning.
struct Message {
  std::string line;  // "GET /path".
  std::string body{};
  std::string trailers{};
  bool is_whole = false;
};

// Reads as a connection of a server or a client does: used bytes are not offered again.
class Reader {
 public:
  Reader(bool reads_requests, Method asked) : reads_requests_(reads_requests), asked_(asked) {}

  // Returns the number of bytes used.
  std::size_t on_data(std::string_view bytes) {
    std::size_t used = 0;
    while (!is_over_ && used < bytes.size()) {
      const std::size_t step =
          is_in_body_ ? read_body(bytes.substr(used)) : read_head(bytes.substr(used));
      used += step;
      if (step == 0 && is_waiting_) break;
    }
    return used;
  }

  const std::vector<Message>& messages() const { return messages_; }
  // The client waits for 100 before it sends the body.
  bool awaits_continue() const {
    return is_in_body_ && framing_.expects_continue && messages_.back().body.empty();
  }

  // Everything received, in order. `left` bytes were unused at the end.
  std::string outcome(std::size_t left) {
    if (!is_over_ && (is_in_body_ || left > 0)) finish("more");
    return said_;
  }

 private:
  std::size_t read_head(std::string_view bytes) {
    is_waiting_ = true;
    return reads_requests_ ? read_request(bytes) : read_answer(bytes);
  }

  std::size_t read_request(std::string_view bytes) {
    RequestHead head;
    const Parsed parsed = parse_request(bytes_of(bytes), looked_at_, {}, head);
    if (!is_taken(parsed)) return 0;
    RequestTarget target;
    if (const Refusal refusal = check_request(head, target)) return refuse(refusal);
    if (const Refusal refusal = frame_request(head, framing_)) return refuse(refusal);
    begin(std::string(head.method_name) + " " + std::string(head.target));
    return head.size;
  }

  std::size_t read_answer(std::string_view bytes) {
    ResponseHead head;
    const Parsed parsed = parse_response(bytes_of(bytes), looked_at_, {}, head);
    if (!is_taken(parsed)) return 0;
    if (const Refusal refusal = frame_response(head, asked_, framing_)) return refuse(refusal);
    begin(std::to_string(code_of(head.status)));
    const bool is_last = framing_.becomes_tunnel || framing_.body == BodyKind::until_end;
    if (is_last) said_ += framing_.becomes_tunnel ? " tunnel" : " until-end";
    if (is_last) is_over_ = true;
    return head.size;
  }

  bool is_taken(const Parsed& parsed) {
    looked_at_ = parsed.looked_at;
    if (parsed.state == Parsed::State::broken) refuse(parsed.refusal);
    return parsed.state == Parsed::State::whole;
  }

  void begin(const std::string& words) {
    said_ += (said_.empty() ? "" : " ; ") + words;
    messages_.push_back({.line = words});
    looked_at_ = 0;
    body_.clear();
    left_ = framing_.size;
    decoder_ = {};
    is_in_body_ = framing_.body == BodyKind::sized || framing_.body == BodyKind::chunked;
    is_waiting_ = false;
    if (!is_in_body_) end_message();
  }

  std::size_t read_body(std::string_view bytes) {
    if (framing_.body == BodyKind::chunked) return read_chunks(bytes);
    const std::size_t count = std::min<std::size_t>(left_, bytes.size());
    take_body(bytes.substr(0, count));
    left_ -= count;
    if (left_ == 0) end_message();
    return count;
  }

  std::size_t read_chunks(std::string_view bytes) {
    Fields trailers;
    const auto step = decoder_.next(bytes_of(bytes), trailers);
    is_waiting_ = step.state == ChunkedDecoder::State::unfinished;
    if (step.state == ChunkedDecoder::State::broken) return refuse(step.refusal);
    take_body(text_of(step.data));
    decoder_.take(step.data.size());
    if (step.state == ChunkedDecoder::State::end) end_message(trailers);
    return step.used + step.data.size();
  }

  void take_body(std::string_view piece) {
    body_ += piece;
    messages_.back().body += piece;
  }

  void end_message(FieldsView trailers = {}) {
    say_body();
    Message& message = messages_.back();
    message.is_whole = true;
    for (const Field field : trailers)
      message.trailers += " [" + std::string(field.name) + ": " + std::string(field.value) + "]";
    said_ += message.trailers;
    is_in_body_ = false;
    const bool ends = !framing_.keeps_alive && framing_.body != BodyKind::until_end;
    if (ends && !framing_.becomes_tunnel) finish("close");
  }

  void say_body() {
    if (!body_.empty()) said_ += " \"" + body_ + "\"";
    body_.clear();
  }

  void finish(const std::string& word) {
    say_body();
    said_ += (said_.empty() ? "" : " ; ") + word;
    is_over_ = true;
  }

  std::size_t refuse(const Refusal& refusal) {
    int code = code_of(refusal.status);
    if (!reads_requests_) code = 502;
    finish(std::to_string(code));
    return 0;
  }

  const bool reads_requests_;
  const Method asked_;
  Framing framing_;
  ChunkedDecoder decoder_;
  std::uint64_t left_ = 0;
  std::size_t looked_at_ = 0;
  std::string body_;
  std::string said_;
  std::vector<Message> messages_;
  bool is_in_body_ = false;
  bool is_waiting_ = false;
  bool is_over_ = false;
};

}  // namespace spate::http
