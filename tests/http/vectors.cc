// http_vectors (requests|answers) FILE: what the codec makes of each vector, however it is split.
// With --list: prints "name<TAB>bytes in hexadecimal<TAB>outcome" for differential.py.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/request_check.h"
#include "vector_file.h"

namespace {

using namespace spate;
using namespace spate::http;

// As a connection of a server or a client reads: what it has used it is not shown again.
class Reader {
 public:
  Reader(bool reads_requests, Method asked) : reads_requests_(reads_requests), asked_(asked) {}

  // Returns how much of the bytes was used.
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

  // All that came, in order. `left` bytes were not used at the end.
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
    body_ += bytes.substr(0, count);
    left_ -= count;
    if (left_ == 0) end_message();
    return count;
  }

  std::size_t read_chunks(std::string_view bytes) {
    Fields trailers;
    const auto step = decoder_.next(bytes_of(bytes), trailers);
    is_waiting_ = step.state == ChunkedDecoder::State::unfinished;
    if (step.state == ChunkedDecoder::State::broken) return refuse(step.refusal);
    body_ += text_of(step.data);
    decoder_.take(step.data.size());
    if (step.state == ChunkedDecoder::State::end) end_message(trailers);
    return step.used + step.data.size();
  }

  void end_message(FieldsView trailers = {}) {
    say_body();
    for (const Field field : trailers)
      said_ += " [" + std::string(field.name) + ": " + std::string(field.value) + "]";
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
  bool is_in_body_ = false;
  bool is_waiting_ = false;
  bool is_over_ = false;
};

// In pieces: the first of `first` bytes, the others of `step`.
std::string outcome_of(const Vector& vector, bool is_request, std::size_t first, std::size_t step) {
  Reader reader(is_request, method_of(vector.asked));
  const std::string_view bytes = vector.bytes;
  std::size_t used = 0;
  for (std::size_t there = std::min(first, bytes.size());;) {
    used += reader.on_data(bytes.substr(used, there - used));
    if (there == bytes.size()) break;
    there += std::min(step, bytes.size() - there);
  }
  return reader.outcome(bytes.size() - used);
}

std::string printable(std::string_view text) {
  std::string made;
  for (const char c : text.substr(0, 200)) {
    char hex[8];
    std::snprintf(hex, sizeof(hex), "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    made += c < ' ' ? std::string(hex) : std::string(1, c);
  }
  return made;
}

bool is_as_said(const Vector& vector, bool is_request, std::size_t first, std::size_t step) {
  const std::string outcome = outcome_of(vector, is_request, first, step);
  if (outcome == vector.outcome) return true;
  std::printf("%s, %zu bytes first, then %zu:\n  is   %s\n  said %s\n", vector.name.c_str(), first,
              step, printable(outcome).c_str(), printable(vector.outcome).c_str());
  return false;
}

bool holds(const Vector& vector, bool is_request) {
  const std::size_t size = vector.bytes.size();
  if (!is_as_said(vector, is_request, size, size)) return false;
  if (!is_as_said(vector, is_request, 1, 1)) return false;
  // Every place of a short one; of a long one as many as the time allows.
  const std::size_t stride = size < 2000 ? 1 : size / 200;
  for (std::size_t first = 1; first < size; first += stride)
    if (!is_as_said(vector, is_request, first, size)) return false;
  return true;
}

void print_for_others(const Vector& vector) {
  std::printf("%s\t", vector.name.c_str());
  for (const char c : vector.bytes)
    std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  std::printf("\t%s\n", printable(vector.outcome).c_str());
}

}  // namespace

int main(int count, char** arguments) {
  const bool lists = count == 4 && arguments[1] == std::string_view("--list");
  if (count != 3 && !lists) {
    std::fprintf(stderr, "http_vectors [--list] (requests|answers) FILE\n");
    return 2;
  }
  const bool is_request = arguments[count - 2] == std::string_view("requests");
  const auto vectors = read_vectors(arguments[count - 1]);
  int wrong = 0;
  for (const Vector& vector : vectors) {
    if (lists)
      print_for_others(vector);
    else
      wrong += !holds(vector, is_request);
  }
  if (!lists) std::printf("%zu vectors, %d wrong\n", vectors.size(), wrong);
  return wrong == 0 ? 0 : 1;
}
