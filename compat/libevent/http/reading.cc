// Reading: how a connection parses its input.
#include <cinttypes>
#include <cstring>

#include "compat/libevent/http/client.h"
#include "compat/libevent/http/connection.h"
#include "compat/libevent/http/request.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr std::size_t kSizeLineMost = 64;
constexpr int kCodeContinue = 100;
constexpr int kCodeSwitchingProtocols = 101;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Bytes after the header section of such a request would be taken for the next one.
bool may_not_have_body(const evhttp_request& request) {
  return request.type == EVHTTP_REQ_HEAD || request.type == EVHTTP_REQ_TRACE;
}

// RFC 9110 §15.2: another response follows any other 1xx one.
bool is_interim(int code) {
  return code >= kCodeContinue && code < HTTP_OK && code != kCodeSwitchingProtocols;
}

// Parses the host and port that a proxy is asked to connect to, as a URI.
evhttp_uri* parse_authority(std::string_view target) {
  evhttp_uri* uri = nullptr;
  const std::size_t size = target.size() + 3;
  auto* text = static_cast<char*>(allocate(size));
  if (text == nullptr) return nullptr;
  text[0] = text[1] = '/';
  std::memcpy(text + 2, target.data(), target.size());
  text[size - 1] = 0;
  uri = evhttp_uri_parse_with_flags(text, 0);
  release(text);
  return uri;
}

bool is_for_web(const char* scheme) {
  return scheme != nullptr && (has_equal_text(scheme, "http") || has_equal_text(scheme, "https"));
}

}  // namespace

struct evhttp_connection::Line {
  std::string_view text;  // Until the input changes.
  std::size_t size;       // With its end.
};

void evhttp_connection::advance() {
  Progress progress = Progress::on;
  while (progress == Progress::on) {
    switch (state) {
      case State::first_line:
        progress = read_first_line();
        break;
      case State::headers:
        progress = read_headers();
        break;
      case State::body:
        progress = read_body();
        break;
      case State::trailer:
        progress = read_trailer();
        break;
      default:
        return;
    }
  }
}

// From the loop: its other events for the connection, more input or EOF, come first.
void evhttp_connection::advance_soon() {
  if (evbuffer_get_length(input()) == 0) return;
  bufferevent_trigger(bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

// ---- lines

bool evhttp_connection::find_line(Line& line) {
  evbuffer_iovec first;
  if (evbuffer_peek(input(), 1, nullptr, &first, 1) == 0) return false;
  const auto* bytes = static_cast<const char*>(first.iov_base);
  const auto* end = static_cast<const char*>(std::memchr(bytes, '\n', first.iov_len));
  if (end == nullptr) return find_split_line(line);
  const auto size = static_cast<std::size_t>(end - bytes);
  line = {{bytes, size > 0 && end[-1] == '\r' ? size - 1 : size}, size + 1};
  return true;
}

// A line that does not end within the first piece of memory.
bool evhttp_connection::find_split_line(Line& line) {
  std::size_t end_size = 0;
  const evbuffer_ptr end = evbuffer_search_eol(input(), nullptr, &end_size, EVBUFFER_EOL_CRLF);
  if (end.pos < 0) return false;
  const auto size = static_cast<std::size_t>(end.pos);
  const unsigned char* bytes = evbuffer_pullup(input(), end.pos + 1);
  if (bytes == nullptr) return false;
  line = {{reinterpret_cast<const char*>(bytes), size}, size + end_size};
  return true;
}

void evhttp_connection::drop(const Line& line) { evbuffer_drain(input(), line.size); }

// Counts the size of the header section and the trailer.
bool evhttp_connection::count_line(const Line& line) {
  request()->headers_size += line.text.size();
  return request()->headers_size <= most_headers;
}

// Without a whole line.
evhttp_connection::Progress evhttp_connection::too_long() {
  if (evbuffer_get_length(input()) + request()->headers_size <= most_headers) {
    return Progress::waits;
  }
  fail(state == State::trailer ? EVREQ_HTTP_DATA_TOO_LONG : EVREQ_HTTP_INVALID_HEADER);
  return Progress::waits;
}

// ---- the head

bool evhttp_connection::parse_target(std::string_view target) {
  evhttp_request& req = *request();
  req.uri = duplicate(target);
  if (req.uri == nullptr) return false;
  req.uri_elems = req.type == EVHTTP_REQ_CONNECT
                      ? parse_authority(target)
                      : evhttp_uri_parse_with_flags(req.uri, EVHTTP_URI_NONCONFORMANT);
  if (req.uri_elems == nullptr) return false;
  const char* host = evhttp_uri_get_host(req.uri_elems);
  const bool is_absolute = host != nullptr && is_for_web(evhttp_uri_get_scheme(req.uri_elems));
  if (is_absolute && !knows_host(*server, host)) req.flags |= EVHTTP_PROXY_REQUEST;
  return true;
}

bool evhttp_connection::parse_request(std::string_view line) {
  const auto parsed = parse_request_line(line);
  if (!parsed) return false;
  evhttp_request& req = *request();
  req.type = static_cast<evhttp_cmd_type>(method_of(parsed->method));
  req.major = static_cast<char>(parsed->version.major);
  req.minor = static_cast<char>(parsed->version.minor);
  return parse_target(parsed->target);
}

bool evhttp_connection::parse_status(std::string_view line) {
  const auto parsed = parse_status_line(line);
  if (!parsed) return false;
  evhttp_request& answered = *request();
  answered.major = static_cast<char>(parsed->version.major);
  answered.minor = static_cast<char>(parsed->version.minor);
  answered.response_code = parsed->code;
  release(answered.response_code_line);
  answered.response_code_line = duplicate(parsed->reason);
  return answered.response_code_line != nullptr;
}

evhttp_connection::Progress evhttp_connection::read_first_line() {
  Line line;
  if (!find_line(line)) return too_long();
  const bool fits = count_line(line);
  if (!fits || !(is_server() ? parse_request(line.text) : parse_status(line.text))) {
    fail(EVREQ_HTTP_INVALID_HEADER);
    return Progress::waits;
  }
  drop(line);
  state = State::headers;
  return Progress::on;
}

evhttp_connection::Progress evhttp_connection::read_headers() {
  Line line;
  while (find_line(line)) {
    if (line.text.empty()) {
      drop(line);
      return is_server() ? headers_end() : answer_headers_end();
    }
    if (!count_line(line) || !add_header_line(*request()->input_headers, line.text)) {
      fail(EVREQ_HTTP_INVALID_HEADER);
      return Progress::waits;
    }
    drop(line);
  }
  return too_long();
}

// ---- from the head to the body

evhttp_connection::Progress evhttp_connection::headers_end() {
  evhttp_request& req = *request();
  if (req.type == 0) return message_ends();  // Rejects it, and closes.
  const auto framing = request_framing_of(*req.input_headers);
  const bool has_body = framing && (framing->is_chunked || framing->length > 0);
  if (!framing || (has_body && may_not_have_body(req))) {
    fail(EVREQ_HTTP_INVALID_HEADER);
    return Progress::waits;
  }
  if (has_body) return begin_body(*framing);
  req.ntoread = may_not_have_body(req) ? 0 : framing->length;
  return message_ends();
}

// The final response follows. Some servers send 100 to a program that has not requested it. Only
// 100 requests the body.
evhttp_connection::Progress evhttp_connection::interim_response_ends() {
  evhttp_request& req = *request();
  const bool is_continue = req.response_code == kCodeContinue;
  evhttp_clear_headers(req.input_headers);
  req.headers_size = 0;
  if (!is_continue || evbuffer_get_length(req.output_buffer) == 0) {
    state = State::first_line;
    return Progress::on;
  }
  state = State::writing;
  evbuffer_add_buffer(output(), req.output_buffer);
  write(
      [](evhttp_connection* connection, void*) {
        connection->begin_reading();
        connection->advance_soon();
      },
      nullptr);
  return Progress::waits;
}

evhttp_connection::Progress evhttp_connection::answer_headers_end() {
  evhttp_request& answered = *request();
  const auto framing = framing_of(*answered.input_headers);
  answered.chunked = framing && framing->is_chunked;
  if (answered.header_cb != nullptr) {
    const Deferral deferral(answered);
    const int result = answered.header_cb(&answered, answered.cb_arg);
    if (is_freed || deferral.was_freed()) return Progress::waits;
    if (result < 0) {
      fail(EVREQ_HTTP_EOF);
      return Progress::waits;
    }
  }
  if (is_interim(answered.response_code)) return interim_response_ends();
  if (!may_have_body(answered, answered.response_code)) return message_ends();
  if (framing && (framing->is_chunked || framing->length != 0)) return begin_body(*framing);
  if (framing) return message_ends();
  fail(EVREQ_HTTP_INVALID_HEADER);
  return Progress::waits;
}

evhttp_connection::Progress evhttp_connection::begin_body(Framing framing) {
  evhttp_request& read = *request();
  read.chunked = framing.is_chunked;
  read.ntoread = framing.length;
  const char* expected = expectation();
  if (expected != nullptr && !has_equal_text(expected, "100-continue")) {
    read.response_code = HTTP_EXPECTATIONFAILED;
    fail(EVREQ_HTTP_INVALID_HEADER);
    return Progress::waits;
  }
  const bool is_long =
      is_server() && read.ntoread > 0 && static_cast<std::uint64_t>(read.ntoread) > most_body;
  discards = is_long && (flags & EVHTTP_CON_LINGERING_CLOSE) != 0;
  if (is_long && !discards) {
    fail(EVREQ_HTTP_DATA_TOO_LONG);
    return Progress::waits;
  }
  if (expected != nullptr && !discards) ask_for_body();
  awaits_chunk_end = false;
  state = State::body;
  return Progress::on;
}

// Returns the expectation in a client's request; null if it has none.
const char* evhttp_connection::expectation() const {
  const evhttp_request& req = *request();
  const bool may_wait = is_server() && Version{req.major, req.minor}.is_at_least_1_1();
  return may_wait ? evhttp_find_header(req.input_headers, "Expect") : nullptr;
}

void evhttp_connection::ask_for_body() {
  if (evbuffer_get_length(input()) != 0) return;
  bufferevent_enable(bev, EV_WRITE);  // A filter moves only output that is added later.
  evbuffer_add(output(), kContinue.data(), kContinue.size());
}

// ---- the body

// Returns false if the connection cannot continue.
bool evhttp_connection::report_chunk() {
  evhttp_request& read = *request();
  if (read.chunk_cb == nullptr || evbuffer_get_length(read.input_buffer) == 0) return true;
  const Deferral deferral(read);
  read.chunk_cb(&read, read.cb_arg);
  if (is_freed || deferral.was_freed()) return false;
  evbuffer_drain(read.input_buffer, evbuffer_get_length(read.input_buffer));
  return true;
}

// Moves a part of the body to the request. If it fails, the message ends: the rest of the body must
// not be read as the next one.
bool evhttp_connection::move_body(std::size_t count) {
  const std::size_t left = evbuffer_get_length(input()) - count;
  evbuffer_remove_buffer(input(), request()->input_buffer, count);
  if (evbuffer_get_length(input()) == left) return true;
  fail(EVREQ_HTTP_BUFFER_ERROR);
  return false;
}

evhttp_connection::Progress evhttp_connection::read_body() {
  evhttp_request& read = *request();
  if (read.chunked != 0) return read_chunks();
  const std::size_t there = evbuffer_get_length(input());
  const bool is_open = read.ntoread < 0;
  const bool is_rest = !is_open && there >= static_cast<std::uint64_t>(read.ntoread);
  const std::size_t count = is_rest ? static_cast<std::size_t>(read.ntoread) : there;
  if (discards) {
    evbuffer_drain(input(), count);
    read.ntoread -= static_cast<std::int64_t>(count);
    if (!is_rest) return Progress::waits;
    fail(EVREQ_HTTP_DATA_TOO_LONG);
    return Progress::waits;
  }
  const bool takes = is_open || is_rest || read.chunk_cb != nullptr;
  const std::size_t taken = takes ? count : 0;
  const std::uint64_t left = is_open ? 0 : static_cast<std::uint64_t>(read.ntoread) - taken;
  if (read.body_size + taken > most_body || left > most_body) {
    fail(EVREQ_HTTP_DATA_TOO_LONG);
    return Progress::waits;
  }
  if (!takes) return Progress::waits;
  read.body_size += count;
  if (!is_open) read.ntoread -= static_cast<std::int64_t>(count);
  return read_some(count);
}

// Reads a body that is not chunked.
evhttp_connection::Progress evhttp_connection::read_some(std::size_t count) {
  evhttp_request& read = *request();
  if (!move_body(count) || !report_chunk()) return Progress::waits;
  return read.ntoread == 0 ? message_ends() : Progress::waits;
}

evhttp_connection::Progress evhttp_connection::read_chunks() {
  evhttp_request& read = *request();
  if (read.ntoread >= 0) {
    const auto size = static_cast<std::size_t>(read.ntoread);
    if (evbuffer_get_length(input()) < size) return Progress::waits;
    if (!move_body(size)) return Progress::waits;
    read.ntoread = -1;
    awaits_chunk_end = true;
    return report_chunk() ? Progress::on : Progress::waits;
  }
  Line line;
  if (!find_line(line)) {
    if (evbuffer_get_length(input()) > kSizeLineMost) fail(EVREQ_HTTP_DATA_TOO_LONG);
    return Progress::waits;
  }
  if (awaits_chunk_end && line.text.empty()) {
    awaits_chunk_end = false;
    drop(line);
    return Progress::on;
  }
  const auto size = awaits_chunk_end ? std::nullopt : parse_chunk_size(line.text);
  if (!size || static_cast<std::uint64_t>(*size) > most_body - read.body_size) {
    fail(EVREQ_HTTP_DATA_TOO_LONG);
    return Progress::waits;
  }
  drop(line);
  read.ntoread = *size;
  read.body_size += static_cast<std::size_t>(*size);
  has_trailer = false;
  if (*size == 0) state = State::trailer;
  return Progress::on;
}

// Its fields are dropped. A malformed one could hide the next request, so it is an error.
evhttp_connection::Progress evhttp_connection::read_trailer() {
  Line line;
  while (find_line(line)) {
    if (line.text.empty()) {
      drop(line);
      return message_ends();
    }
    const auto field = parse_field_line(line.text);
    if (!count_line(line) || !field || (field->goes_on && !has_trailer)) {
      fail(EVREQ_HTTP_DATA_TOO_LONG);
      return Progress::waits;
    }
    has_trailer = true;
    drop(line);
  }
  return too_long();
}

evhttp_connection::Progress evhttp_connection::message_ends() {
  if (!is_server()) {
    finish_answer(*this);
  } else {
    serve(*this);
  }
  return Progress::waits;
}
