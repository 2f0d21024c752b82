// A session of HTTP/2 beside nghttp2's: the same input and the same calls of the owner have the
// same events and the same frames as results. docs/design.md lists the differences that are chosen.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2/frame.h"
#include "http2/hpack_decoder.h"
#include "http2/session_engine.h"
#include "http2/testing/nghttp2_session.h"
#include "http2_script.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using http::Http2Code;
using http::Http2End;

constexpr http::Http2Options kOptions = {.max_streams = 4, .stream_window = 1024};
constexpr std::size_t kMaxHead = 1000;

std::string hex_of(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}
std::string text_of_number(std::int64_t number) { return std::to_string(number); }

// The frames that were sent, in a form that does not depend on how bodies are cut.
class Sent {
 public:
  explicit Sent(const Script& script)
      : has_preface_(script.side == Side::client), is_code_known_(!script.has_split_sections) {}

  void add(std::string_view bytes) {
    rest_ += bytes;
    if (has_preface_) {
      check(rest_.starts_with(http::kHttp2Preface));
      rest_.erase(0, http::kHttp2Preface.size());
      has_preface_ = false;
    }
    while (rest_.size() >= http::kFrameHead) {
      const http::FrameHead head = http::read_frame_head(rest_.data());
      if (rest_.size() < http::kFrameHead + head.size) return;
      take(head, std::string_view(rest_).substr(http::kFrameHead, head.size));
      rest_.erase(0, http::kFrameHead + head.size);
    }
  }
  void add_body(std::string_view head, std::size_t size) {
    check(rest_.empty());
    const http::FrameHead frame = http::read_frame_head(head.data());
    check(frame.type == http::FrameType::data && frame.size == size);
    data_[frame.stream] += size;
    if (frame.has(http::kEndStream)) streams_[frame.stream] += "end ";
  }
  bool has_failed() const { return has_failed_; }

  // A batch is sent between two inputs. A stream that is reset in it may have sent frames before or
  // not: nghttp2 drops them.
  void begin_batch() {
    before_ = streams_;
    reset_.clear();
  }
  void end_batch() {
    if (has_failed_) return;
    for (const auto& [id, reset] : reset_) streams_[id] = before_[id] + reset;
  }
  bool is_reset(std::int32_t id) const { return reset_.contains(id); }

  std::string text() const {
    std::string all = "connection: " + connection_ + "\n";
    for (const auto& [id, text] : streams_) all += text_of_number(id) + ": " + text + "\n";
    for (const auto& [id, size] : data_)
      if (size > 0) all += text_of_number(id) + " data: " + text_of_number(size) + "\n";
    return all;
  }

 private:
  void take(const http::FrameHead& head, std::string_view payload) {
    const auto number = [&](std::size_t at) {
      return text_of_number(http::read_31_bits(payload.data() + at)) + " ";
    };
    switch (head.type) {
      case http::FrameType::headers:
      case http::FrameType::continuation:
        block_ += payload;
        if (head.has(http::kEndHeaders)) take_block(head);
        break;
      case http::FrameType::rst_stream:
        reset_[head.stream] = "reset " + number(0);
        break;
      case http::FrameType::goaway:
        connection_ += "goaway " + number(0) + (is_code_known_ ? number(4) : "");
        has_failed_ |= http::read_number(payload.data() + 4, 4) != 0;
        break;
      case http::FrameType::window_update:
        break;  // Windows may be updated earlier or later.
      case http::FrameType::data:
        add_body({payload.data() - http::kFrameHead, http::kFrameHead}, head.size);
        break;
      default:
        connection_ += text_of_number(static_cast<int>(head.type)) + "/" +
                       text_of_number(head.flags) + "/" + hex_of(payload) + " ";
    }
  }
  void take_block(const http::FrameHead& head) {
    std::string& text = streams_[head.stream];
    std::string_view block = block_;
    http::HpackField field;
    http::HpackStep step;
    text += "headers(";
    decoder_.begin_block();
    while ((step = decoder_.next(block, field)) == http::HpackStep::field)
      text += std::string(field.name) + "=" + std::string(field.value) + ",";
    check(step == http::HpackStep::end);
    text += head.has(http::kEndStream) ? ") end " : ") ";
    block_.clear();
  }

  std::string rest_;
  std::string block_;
  http::HpackDecoder decoder_;
  bool has_preface_;
  bool is_code_known_;
  bool has_failed_ = false;
  std::string connection_;
  std::map<std::int32_t, std::string> streams_;
  std::map<std::int32_t, std::string> before_;
  std::map<std::int32_t, std::string> reset_;
  std::map<std::int32_t, std::size_t> data_;
};

class Owner final : public http::Http2Events {
 public:
  Owner(const http::Http2Engine& engine, const Script& script) : script_(script), sent_(script) {
    session_ = script.side == Side::server ? engine.make_server(*this, kMaxHead)
                                           : engine.make_client(*this, kMaxHead);
    check(session_ != nullptr);
  }

  // Returns all that happened.
  std::string run() {
    flush();
    for (const Step& step : script_.steps) {
      take(step);
      flush();
      if (is_over()) break;
    }
    std::string all = log_;
    for (const auto& [id, stream] : streams_)
      all += text_of_number(id) + ": " + stream->log + (stream->is_ended ? "ended" : "") +
             " body " + text_of_number(static_cast<std::int64_t>(stream->received)) + "\n";
    all += is_refused_ ? "refused\n" : session_->is_over() ? "over\n" : "going on\n";
    all += sent_.text();
    if (sent_.has_failed()) return all;  // nghttp2 checks all settings of a frame before the first.
    return all + text_of_number(session_->max_streams()) + " " +
           text_of_number(static_cast<int>(session_->tunnels())) + "\n";
  }

  // ---- Http2Events

  http::Http2Stream* on_stream(std::int32_t id) override { return &make(id); }
  bool on_field(http::Http2Stream& which, std::string_view name, std::string_view value) override {
    Stream& stream = of(which);
    if (!stream.is_reset) stream.section += std::string(name) + "=" + std::string(value) + ",";
    return true;
  }
  bool on_head(http::Http2Stream& which, Http2End end) override {
    Stream& stream = of(which);
    if (stream.is_reset) return true;
    stream.log +=
        "head(" + std::exchange(stream.section, {}) + (end == Http2End::yes ? ") end " : ") ");
    if (script_.side == Side::client) return true;
    if (script_.habits.responds) respond(stream, Http2End::yes);
    if (script_.habits.responds_with_body) respond(stream, Http2End::no);
    return true;
  }
  bool on_body(http::Http2Stream& which, Bytes bytes) override {
    Stream& stream = of(which);
    if (stream.is_reset) return true;
    stream.arriving += bytes.size();
    if (script_.habits.credits) session_->credit(stream.id, bytes.size());
    if (script_.habits.resets == stream.id) reset(stream, Http2Code::cancel);
    return true;
  }
  bool on_body_end(http::Http2Stream& which) override {
    Stream& stream = of(which);
    if (!stream.is_reset)
      stream.log += "trailers(" + std::exchange(stream.section, {}) + ") body_end ";
    return true;
  }
  void on_last_stream() override {
    if (script_.side == Side::client) log_ += "last_stream ";
  }
  void on_settings() override { log_ += "settings "; }
  bool on_frame(http::Http2Frame kind) override {
    if (kind == http::Http2Frame::reset) log_ += "reset ";
    return true;
  }
  void on_violation(Broken broken) override {
    broken == Broken::stream ? void(++violations_) : void(log_ += "bad_connection ");
  }
  void on_stream_closed(http::Http2Stream& which, Http2Code code) override {
    Stream& stream = of(which);
    check(!stream.is_closed);
    stream.is_closed = true;
    stream.closing = "closed " + text_of_number(static_cast<int>(code)) + " ";
  }
  http::Http2Piece next_piece(http::Http2Stream& which, std::size_t most) override {
    Stream& stream = of(which);
    check(!stream.is_closed && most > 0);
    const std::size_t size = std::min(stream.left, most);
    const bool is_last = stream.is_final && size == stream.left;
    stream.is_awaited = size == 0 && !is_last;
    static constexpr http::Http2Field kTrailer = {"trailer", "value"};
    http::Http2Piece piece = {.size = size, .is_last = is_last};
    if (is_last && stream.has_trailers) piece.trailers = {&kTrailer, 1};
    return piece;
  }
  http::Http2Sent send_piece(http::Http2Stream& which, Bytes head, std::size_t size) override {
    Stream& stream = of(which);
    sent_.add_body(text_of_bytes(head), size);
    stream.left -= size;
    return ++pieces_ % 3 == 0 ? http::Http2Sent::enough : http::Http2Sent::yes;
  }
  void on_end_sent(http::Http2Stream& which) override { of(which).has_ended = true; }

 private:
  struct Stream : http::Http2Stream {
    std::int32_t id = 0;
    std::string section;
    std::string log;
    std::string closing;
    std::size_t received = 0;
    std::size_t arriving = 0;  // In this batch.
    std::size_t left = 0;
    bool is_final = false;
    bool has_trailers = false;
    bool is_awaited = false;
    bool has_responded = false;
    bool is_reset = false;
    bool is_closed = false;
    bool has_ended = false;  // In this batch,
    bool is_ended = false;   // or in an earlier one.
  };

  static std::string_view text_of_bytes(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static Stream& of(http::Http2Stream& stream) { return static_cast<Stream&>(stream); }
  Stream& make(std::int32_t id) {
    auto stream = std::make_unique<Stream>();
    stream->id = id;
    Stream& made = *stream;
    all_.push_back(std::move(stream));
    streams_[id] = &made;
    return made;
  }
  bool is_over() const { return is_refused_ || sent_.has_failed() || session_->is_over(); }

  void flush() {
    if (is_refused_) return;
    int empty = 0;
    sent_.begin_batch();
    while (empty < 2) {
      const Bytes bytes = session_->next_frame();
      empty = bytes.empty() ? empty + 1 : 0;
      sent_.add(text_of_bytes(bytes));
    }
    sent_.end_batch();
    for (auto& [id, stream] : streams_) {
      if (std::exchange(stream->has_ended, false) && !sent_.is_reset(id)) stream->is_ended = true;
      // nghttp2 reports bytes beyond the window, too, which resets the stream.
      const std::size_t arrived = std::exchange(stream->arriving, 0);
      if (!sent_.is_reset(id)) stream->received += arrived;
      if (!sent_.has_failed()) stream->log += std::exchange(stream->closing, {});
    }
    for (; violations_ > 0; --violations_)
      if (!sent_.has_failed()) log_ += "bad_stream ";
  }

  void take(const Step& step) {
    if (step.act == Act::receive) {
      const std::string_view bytes = step.bytes;
      is_refused_ = !session_->receive(bytes_of(bytes.substr(0, step.size))) ||
                    !session_->receive(bytes_of(bytes.substr(step.size)));
      return;
    }
    if (step.act == Act::request || step.act == Act::request_without_body) return ask(step);
    if (step.act == Act::ping) return void(session_->ping());
    if (step.act == Act::announce_end && script_.side == Side::server)
      return session_->announce_end();
    if (step.act == Act::refuse_streams) return session_->refuse_streams(Http2Code::no_error);
    const auto found = streams_.find(step.id);
    if (found == streams_.end() || found->second->is_closed || found->second->is_reset) return;
    take(step, *found->second);
  }
  void take(const Step& step, Stream& stream) {
    switch (step.act) {
      case Act::respond:
        return respond(stream, Http2End::no);
      case Act::respond_without_body:
        return respond(stream, Http2End::yes);
      case Act::inform:
        return inform(stream);
      case Act::supply:
      case Act::finish:
      case Act::finish_with_trailers:
        return supply(stream, step);
      case Act::reset:
        return reset(stream, step.size % 2 == 0 ? Http2Code::cancel : Http2Code::no_error);
      case Act::credit:
        return session_->credit(stream.id, std::min(step.size, stream.received));
      default:
        return;
    }
  }
  bool may_respond(const Stream& stream) const {
    return script_.side == Side::server && !stream.has_responded && stream.log.starts_with("head(");
  }
  void respond(Stream& stream, Http2End end) {
    if (!may_respond(stream)) return;
    stream.has_responded = true;
    static constexpr http::Http2Field kHead[] = {{":status", "200"}, {"server", "x"}};
    check(session_->respond(stream.id, kHead, end));
  }
  void inform(Stream& stream) {
    if (!may_respond(stream)) return;
    static constexpr http::Http2Field kHead[] = {{":status", "103"}};
    check(session_->inform(stream.id, kHead));
  }
  void supply(Stream& stream, const Step& step) {
    if (stream.is_final || stream.is_ended) return;
    stream.left += step.size;
    stream.is_final = step.act != Act::supply;
    stream.has_trailers = step.act == Act::finish_with_trailers;
    if (std::exchange(stream.is_awaited, false)) session_->wake(stream.id);
  }
  void reset(Stream& stream, Http2Code code) {
    stream.is_reset = true;
    check(session_->reset(stream.id, code));
  }
  void ask(const Step& step) {
    const bool is_allowed = script_.side == Side::client && asked_ < session_->max_streams() &&
                            !log_.contains("last_stream") && ++asked_ > 0;
    if (!is_allowed) return;
    static constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "CONNECT"};
    const http::Http2Field head[] = {{":method", kMethods[step.size % std::size(kMethods)]},
                                     {":authority", "a"}};
    Stream& stream = make(0);
    streams_.erase(0);
    const bool has_body = step.act == Act::request;
    const std::int32_t id =
        session_->request(stream, head, has_body ? Http2End::no : Http2End::yes);
    log_ += "request " + text_of_number(id) + " ";
    if (id <= 0) return;
    stream.id = id;
    streams_[id] = &stream;
  }

  const Script& script_;
  std::unique_ptr<http::Http2Session> session_;
  std::vector<std::unique_ptr<Stream>> all_;
  std::map<std::int32_t, Stream*> streams_;
  Sent sent_;
  std::string log_;
  int violations_ = 0;
  std::uint32_t asked_ = 0;
  int pieces_ = 0;
  bool is_refused_ = false;
};

void compare(const Script& script) {
  static const http::SessionEngine ours(kOptions);
  static http::Nghttp2Engine theirs(kOptions);
  static const bool is_ready = theirs.prepare();
  check(is_ready);
  if (is_excepted(script)) return;
  const std::string mine = Owner(ours, script).run();
  const std::string other = Owner(theirs, script).run();
  if (mine == other) return;
  std::fprintf(stderr, "---- ours\n%s---- nghttp2\n%s", mine.c_str(), other.c_str());
  for (const Step& step : script.steps) {
    std::fprintf(stderr, "%d %d %zu ", static_cast<int>(step.act), step.id, step.size);
    std::fprintf(stderr, "%s\n", hex_of(step.bytes).c_str());
  }
  std::abort();
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::Input input(data, std::min<std::size_t>(size, 1024));
  spate::fuzz::compare(spate::fuzz::script_of(input));
  return 0;
}
