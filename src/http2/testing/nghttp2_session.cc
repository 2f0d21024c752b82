#include "http2/testing/nghttp2_session.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "http2/testing/nghttp2_memory.h"

namespace spate::http {

namespace {

// The connection's window does not limit streams: each stream is limited by its own window.
constexpr std::int32_t kConnectionWindow = 16 * 1024 * 1024;
// Frames queued for a peer that does not read: far more than any well-behaved peer causes.
constexpr std::size_t kMostWaiting = 10'000;

int as_result(bool goes_on) { return goes_on ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE; }

std::string_view text_at(const std::uint8_t* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

bool is_last(const nghttp2_frame& frame) { return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0; }

// Codes with which only nghttp2 itself resets a stream.
bool is_violation(std::uint32_t code) {
  return code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR && code != NGHTTP2_CANCEL;
}

// Fields in the format of nghttp2, which copies the texts.
class Names {
 public:
  explicit Names(std::span<const Http2Field> fields) : size_(fields.size()) {
    if (size_ > near_.size()) far_.reset(new (std::nothrow) nghttp2_nv[size_]);
    if (data() == nullptr) return;
    std::ranges::transform(fields, data(), [](const Http2Field& field) {
      return nghttp2_nv{as_bytes(field.name), as_bytes(field.value), field.name.size(),
                        field.value.size(), NGHTTP2_NV_FLAG_NONE};
    });
  }
  // nullptr when memory ran out.
  nghttp2_nv* data() { return size_ > near_.size() ? far_.get() : near_.data(); }
  std::size_t size() const { return size_; }

 private:
  static std::uint8_t* as_bytes(std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }

  std::size_t size_;
  std::array<nghttp2_nv, 24> near_;
  std::unique_ptr<nghttp2_nv[]> far_;
};

}  // namespace

struct Nghttp2Session::Calls {
  static Nghttp2Session& self(void* context) { return *static_cast<Nghttp2Session*>(context); }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* context) {
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    self(context).opened_ = frame->hd.stream_id;
    Http2Stream* stream = self(context).events_.on_stream(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return self(context).set_stream(frame->hd.stream_id, stream);
  }

  // PRIORITY frames are counted here, because nghttp2 reports them nowhere else.
  static int on_begin_frame(nghttp2_session* session, const nghttp2_frame_hd* head, void* context) {
    const nghttp2_error_code fault = self(context).fault_of(*head);
    if (fault != NGHTTP2_NO_ERROR) return nghttp2_session_terminate_session(session, fault);
    return as_result(head->type != NGHTTP2_PRIORITY || self(context).count(Http2Frame::idle));
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* context) {
    Nghttp2Session& session = self(context);
    Http2Stream* stream = session.stream_of(frame->hd.stream_id);
    return as_result(
        stream == nullptr ||
        session.events_.on_field(*stream, text_at(name, name_size), text_at(value, value_size)));
  }

  static int on_data_chunk(nghttp2_session* session, std::uint8_t, std::int32_t id,
                           const std::uint8_t* data, std::size_t size, void* context) {
    // Updates the connection's window at once: a stream that is not read is held up by its own
    // window, and must not hold up others.
    if (nghttp2_session_consume_connection(session, size) != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
    self(context).has_data_ = true;
    Http2Stream* stream = self(context).stream_of(id);
    return as_result(stream == nullptr ||
                     self(context).events_.on_body(*stream, bytes_of(text_at(data, size))));
  }

  static int on_frame_recv(nghttp2_session*, const nghttp2_frame* frame, void* context) {
    Nghttp2Session& session = self(context);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        return as_result(session.take_headers(*frame) && session.count(Http2Frame::useful));
      case NGHTTP2_DATA: {
        const bool is_useful = std::exchange(session.has_data_, false) || is_last(*frame);
        return as_result(session.take_end(*frame) &&
                         session.count(is_useful ? Http2Frame::useful : Http2Frame::idle));
      }
      case NGHTTP2_RST_STREAM:
        return as_result(session.count(Http2Frame::reset));
      case NGHTTP2_GOAWAY:
        session.events_.on_last_stream();
        return as_result(session.count(Http2Frame::idle));
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) session.take_settings();
        return as_result(session.count(Http2Frame::idle));
      default:
        return as_result(session.count(Http2Frame::idle));
    }
  }

  static int on_frame_send(nghttp2_session*, const nghttp2_frame* frame, void* context) {
    Nghttp2Session& session = self(context);
    if (frame->hd.type == NGHTTP2_RST_STREAM)
      session.dropped_ = std::max(session.dropped_, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_RST_STREAM && is_violation(frame->rst_stream.error_code))
      session.events_.on_violation(Http2Events::Broken::stream);
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
      session.events_.on_violation(Http2Events::Broken::connection);
    const bool has_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    Http2Stream* stream =
        has_end && is_last(*frame) ? session.stream_of(frame->hd.stream_id) : nullptr;
    if (stream != nullptr) session.events_.on_end_sent(*stream);
    return 0;
  }

  // A request that could not be sent: its stream gets no further events.
  static int on_frame_not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* context) {
    const bool is_request =
        frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    Http2Stream* stream = is_request ? self(context).stream_of(frame->hd.stream_id) : nullptr;
    if (stream == nullptr) return 0;
    self(context).set_stream(frame->hd.stream_id, nullptr);
    self(context).events_.on_stream_closed(*stream, Http2Code::refused_stream);
    return 0;
  }

  static int on_stream_close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* context) {
    Http2Stream* stream = self(context).stream_of(id);
    if (stream != nullptr)
      self(context).events_.on_stream_closed(*stream, static_cast<Http2Code>(code));
    self(context).last_id_ = 0;
    return 0;
  }

  static ssize_t read_piece(nghttp2_session* session, std::int32_t id, std::uint8_t*,
                            std::size_t most, std::uint32_t* flags, nghttp2_data_source*,
                            void* context) {
    Http2Stream* stream = self(context).stream_of(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const Http2Piece piece = self(context).events_.next_piece(*stream, most);
    if (piece.size == 0 && !piece.is_last) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (!piece.is_last) return static_cast<ssize_t>(piece.size);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    Names trailers(piece.trailers);
    if (trailers.size() != 0 && trailers.data() != nullptr) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      if (nghttp2_submit_trailer(session, id, trailers.data(), trailers.size()) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return static_cast<ssize_t>(piece.size);
  }

  static int send_piece(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* head,
                        std::size_t size, nghttp2_data_source*, void* context) {
    constexpr std::size_t kFrameHead = 9;
    Http2Stream* stream = self(context).stream_of(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    switch (self(context).events_.send_piece(*stream, bytes_of(text_at(head, kFrameHead)), size)) {
      case Http2Sent::yes:
        return 0;
      case Http2Sent::enough:
        return NGHTTP2_ERR_PAUSE;
      case Http2Sent::failed:
        break;
    }
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
};

void Nghttp2Session::set_callbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Calls::on_begin_headers);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Calls::on_begin_frame);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Calls::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Calls::on_data_chunk);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Calls::on_frame_recv);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Calls::on_frame_send);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Calls::on_frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Calls::on_stream_close);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Calls::send_piece);
}

bool Nghttp2Session::open_server(const nghttp2_session_callbacks& callbacks,
                                 const nghttp2_option& option,
                                 std::span<const nghttp2_settings_entry> settings) {
  return nghttp2_session_server_new3(&session_, &callbacks, this, &option, memory_of_nghttp2()) ==
             0 &&
         introduce(settings);
}

bool Nghttp2Session::open_client(const nghttp2_session_callbacks& callbacks,
                                 const nghttp2_option& option,
                                 std::span<const nghttp2_settings_entry> settings) {
  return nghttp2_session_client_new3(&session_, &callbacks, this, &option, memory_of_nghttp2()) ==
             0 &&
         introduce(settings);
}

bool Nghttp2Session::introduce(std::span<const nghttp2_settings_entry> settings) {
  return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
             0 &&
         nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) ==
             0;
}

void Nghttp2Session::take_settings() {
  has_settings_ = true;
  events_.on_settings();
}

bool Nghttp2Session::take_headers(const nghttp2_frame& frame) {
  Http2Stream* stream = stream_of(frame.hd.stream_id);
  if (stream == nullptr) return true;
  const bool is_server = nghttp2_session_check_server_session(session_) != 0;
  if (is_server && frame.headers.cat != NGHTTP2_HCAT_REQUEST) return take_end(frame);
  return events_.on_head(*stream, is_last(frame) ? Http2End::yes : Http2End::no);
}

bool Nghttp2Session::take_end(const nghttp2_frame& frame) {
  Http2Stream* stream = is_last(frame) ? stream_of(frame.hd.stream_id) : nullptr;
  return stream == nullptr || events_.on_body_end(*stream);
}

nghttp2_error_code Nghttp2Session::fault_of(const nghttp2_frame_hd& head) {
  const bool is_fault = head.type == NGHTTP2_PRIORITY  ? head.stream_id == 0
                        : head.type == NGHTTP2_HEADERS ? is_of_closed_stream(head.stream_id)
                                                       : false;
  return is_fault ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_NO_ERROR;
}

// Returns true only if the client itself closed or skipped the stream (RFC 9113 §5.1.1). If this
// side refused or reset it, the client may not know yet. nghttp2 does not report DATA for such a
// stream.
bool Nghttp2Session::is_of_closed_stream(std::int32_t id) {
  if (id > seen_) {
    if (seen_ != opened_) dropped_ = std::max(dropped_, seen_);
    seen_ = id;
  }
  return id > dropped_ && id <= opened_ && nghttp2_session_find_stream(session_, id) == nullptr;
}

bool Nghttp2Session::receive(Bytes bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t taken = nghttp2_session_mem_recv(session_, data, bytes.size());
  return taken >= 0 && nghttp2_session_get_outbound_queue_size(session_) <= kMostWaiting;
}

Bytes Nghttp2Session::next_frame() {
  const std::uint8_t* data = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_, &data);
  if (size < 0) is_broken_ = true;
  return size > 0 ? bytes_of(text_at(data, static_cast<std::size_t>(size))) : Bytes();
}

bool Nghttp2Session::is_over() const {
  return is_broken_ ||
         (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
}

bool Nghttp2Session::inform(std::int32_t id, std::span<const Http2Field> head) {
  Names names(head);
  return names.data() != nullptr &&
         nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, id, nullptr, names.data(),
                                names.size(), nullptr) == 0;
}

std::int32_t Nghttp2Session::request(Http2Stream& stream, std::span<const Http2Field> head,
                                     Http2End end) {
  Names names(head);
  if (names.data() == nullptr) return -1;
  last_id_ = 0;
  const nghttp2_data_provider body = {.source = {}, .read_callback = Calls::read_piece};
  return nghttp2_submit_request(session_, nullptr, names.data(), names.size(),
                                end == Http2End::yes ? nullptr : &body, &stream);
}

std::uint32_t Nghttp2Session::max_streams() const {
  return std::min(max_streams_, nghttp2_session_get_remote_settings(
                                    session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
}

Http2Tunnels Nghttp2Session::tunnels() const {
  if (!has_settings_) return Http2Tunnels::unknown;
  const bool are_taken =
      nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
  return are_taken ? Http2Tunnels::taken : Http2Tunnels::refused;
}

bool Nghttp2Session::respond(std::int32_t id, std::span<const Http2Field> head, Http2End end) {
  Names names(head);
  if (names.data() == nullptr) return false;
  const nghttp2_data_provider body = {.source = {}, .read_callback = Calls::read_piece};
  return nghttp2_submit_response(session_, id, names.data(), names.size(),
                                 end == Http2End::yes ? nullptr : &body) == 0;
}

// Has no effect if nghttp2 is not waiting for the body.
void Nghttp2Session::wake(std::int32_t id) { nghttp2_session_resume_data(session_, id); }

bool Nghttp2Session::reset(std::int32_t id, Http2Code code) {
  return nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id,
                                   static_cast<std::uint32_t>(code)) == 0;
}

void Nghttp2Session::credit(std::int32_t id, std::size_t size) {
  nghttp2_session_consume_stream(session_, id, size);
}

bool Nghttp2Session::ping() {
  return nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr) == 0;
}

void Nghttp2Session::announce_end() { nghttp2_submit_shutdown_notice(session_); }

void Nghttp2Session::refuse_streams(Http2Code code) {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_),
                        static_cast<std::uint32_t>(code), nullptr, 0);
}

// ---- the engine

Nghttp2Engine::~Nghttp2Engine() {
  nghttp2_session_callbacks_del(callbacks_);
  nghttp2_option_del(option_);
}

bool Nghttp2Engine::prepare() {
  if (nghttp2_session_callbacks_new(&callbacks_) != 0 || nghttp2_option_new(&option_) != 0)
    return false;
  Nghttp2Session::set_callbacks(callbacks_);
  nghttp2_option_set_no_auto_window_update(option_, 1);
  nghttp2_option_set_no_closed_streams(option_, 1);
  nghttp2_option_set_builtin_recv_extension_type(option_, NGHTTP2_PRIORITY_UPDATE);
  return true;
}

// NO_RFC7540_PRIORITIES makes nghttp2 send by urgency (RFC 9218).
std::unique_ptr<Http2Session> Nghttp2Engine::make_server(Http2Events& events,
                                                         std::size_t max_head) const {
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(max_head)},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  std::unique_ptr<Nghttp2Session> session(new (std::nothrow)
                                              Nghttp2Session(events, options_.max_streams));
  if (session == nullptr || !session->open_server(*callbacks_, *option_, settings)) return nullptr;
  return session;
}

std::unique_ptr<Http2Session> Nghttp2Engine::make_client(Http2Events& events,
                                                         std::size_t max_head) const {
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(max_head)},
  };
  std::unique_ptr<Nghttp2Session> session(new (std::nothrow)
                                              Nghttp2Session(events, options_.max_streams));
  if (session == nullptr || !session->open_client(*callbacks_, *option_, settings)) return nullptr;
  return session;
}

}  // namespace spate::http
