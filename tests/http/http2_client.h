// A client of HTTP/2 for tests, by nghttp2: sends requests on any number of streams, step by step.
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/net/stream.h"

namespace spate::testing {

class Http2Client final : public StreamHandler {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  struct Answer {
    int status = 0;
    std::vector<int> informed;
    std::map<std::string, std::string> fields;
    std::string body;
    std::map<std::string, std::string> trailers;
    bool is_past_head = false;
    bool is_ended = false;   // In whole.
    bool is_closed = false;  // The stream.
    std::uint32_t code = 0;  // Why it was closed.

    // The unsent part of the request's body.
    std::string unsent;
    bool is_finished = true;
    Fields behind;
  };

  // Window updates are sent as bytes arrive, unless by_hand.
  enum class Windows : bool { as_they_come, by_hand };

  explicit Http2Client(Stream stream, Windows windows = Windows::as_they_come,
                       std::vector<nghttp2_settings_entry> settings = {})
      : stream_(std::move(stream)) {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, windows == Windows::by_hand);
    nghttp2_session_client_new2(&session_, calls, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    nghttp2_submit_settings(session_, 0, settings.data(), settings.size());
    stream_.set_half_open(true);
    stream_.start(*this);
    flush();
  }
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;
  ~Http2Client() { nghttp2_session_del(session_); }

  // Returns the stream. Without a body; negative if the server accepts no more.
  std::int32_t get(std::string path, Fields more = {}, std::string method = "GET") {
    return begin(request(std::move(method), std::move(path), std::move(more)), false);
  }
  std::int32_t post(std::string path, std::string body, Fields more = {}) {
    const std::int32_t id = open_post(std::move(path), std::move(more));
    if (id > 0) write(id, body, true);
    return id;
  }
  std::int32_t open_post(std::string path, Fields more = {}) {
    return begin(request("POST", std::move(path), std::move(more)), true);
  }
  std::int32_t begin(const Fields& head, bool has_body) {
    std::vector<nghttp2_nv> names = names_of(head);
    const nghttp2_data_provider provider = {.source = {}, .read_callback = read};
    const std::int32_t id = nghttp2_submit_request(session_, nullptr, names.data(), names.size(),
                                                   has_body ? &provider : nullptr, nullptr);
    if (id > 0) answers[id].is_finished = !has_body;
    flush();
    return id;
  }
  void write(std::int32_t id, std::string_view text, bool is_last, Fields behind = {}) {
    answers[id].unsent += text;
    answers[id].is_finished = is_last;
    answers[id].behind = std::move(behind);
    nghttp2_session_resume_data(session_, id);
    flush();
  }
  void reset(std::int32_t id) {
    nghttp2_submit_rst_stream(session_, 0, id, NGHTTP2_CANCEL);
    flush();
  }
  void credit(std::int32_t id, std::size_t size) {
    nghttp2_session_consume(session_, id, size);
    flush();
  }
  nghttp2_session* session() { return session_; }
  Stream& stream() { return stream_; }
  void flush() {
    const std::uint8_t* data = nullptr;
    while (!is_closed) {
      const ssize_t size = nghttp2_session_mem_send(session_, &data);
      if (size <= 0) return;
      stream_.write(
          std::string_view(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)));
    }
  }

  static Fields request(std::string method, std::string path, Fields more) {
    Fields head = {{":method", std::move(method)},
                   {":scheme", "http"},
                   {":authority", "a"},
                   {":path", std::move(path)}};
    head.insert(head.end(), more.begin(), more.end());
    return head;
  }

  std::size_t on_data(Bytes bytes) override {
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    EXPECT_GE(nghttp2_session_mem_recv(session_, data, bytes.size()), 0);
    flush();
    return bytes.size();
  }
  void on_end() override { is_ended = true; }
  void on_closed(std::error_code) override { is_closed = true; }

  std::map<std::int32_t, Answer> answers;
  std::vector<std::pair<std::int32_t, std::uint32_t>> goaways;  // The last stream, and why.
  int pings = 0;
  bool is_ended = false;
  bool is_closed = false;

 private:
  static Http2Client& self(void* context) { return *static_cast<Http2Client*>(context); }

  static std::vector<nghttp2_nv> names_of(const Fields& fields) {
    const auto bytes = [](const std::string& text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    std::vector<nghttp2_nv> names;
    for (const auto& [name, value] : fields)
      names.push_back({bytes(name), bytes(value), name.size(), value.size(), 0});
    return names;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* context) {
    Answer& answer = self(context).answers[frame->hd.stream_id];
    const std::string key(reinterpret_cast<const char*>(name), name_size);
    const std::string text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status") {
      const int status = std::stoi(text);
      status < 200 ? answer.informed.push_back(status) : void(answer.status = status);
    } else if (answer.status == 0) {
      return 0;
    } else if (answer.is_past_head) {
      answer.trailers[key] = text;
    } else {
      answer.fields[key] = text;
    }
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* context) {
    if (frame->hd.type == NGHTTP2_GOAWAY)
      self(context).goaways.emplace_back(frame->goaway.last_stream_id, frame->goaway.error_code);
    const bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (frame->hd.type == NGHTTP2_PING && !is_ack) ++self(context).pings;
    const bool is_message = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!is_message) return 0;
    Answer& answer = self(context).answers[frame->hd.stream_id];
    answer.is_past_head = answer.status != 0;
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) answer.is_ended = true;
    return 0;
  }

  static int on_chunk(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                      std::size_t size, void* context) {
    self(context).answers[id].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* context) {
    self(context).answers[id].is_closed = true;
    self(context).answers[id].code = code;
    return 0;
  }

  static ssize_t read(nghttp2_session* session, std::int32_t id, std::uint8_t* room,
                      std::size_t size, std::uint32_t* flags, nghttp2_data_source*, void* context) {
    Answer& answer = self(context).answers[id];
    const std::size_t count = answer.unsent.copy(reinterpret_cast<char*>(room), size);
    answer.unsent.erase(0, count);
    if (count == 0 && !answer.is_finished) return NGHTTP2_ERR_DEFERRED;
    if (answer.is_finished && answer.unsent.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      std::vector<nghttp2_nv> behind = names_of(answer.behind);
      if (!behind.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, behind.data(), behind.size());
      }
    }
    return static_cast<ssize_t>(count);
  }

  Stream stream_;
  nghttp2_session* session_ = nullptr;
};

}  // namespace spate::testing
