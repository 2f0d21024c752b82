// Http1Connection's way out: the heads of answers, and the framing of their bodies.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "http/codec/chunked.h"
#include "http/server/http1_connection.h"
#include "http/server/server_core.h"

namespace spate::http {

namespace {

// Enough for what the server says itself: the first line, Date, the framing, Connection.
constexpr std::size_t kMostOwn = 256;
// Longer heads are put together on the heap.
constexpr std::size_t kMostOnStack = 2048;

// Writes into room that is large enough.
class Text {
 public:
  explicit Text(char* room) : begin_(room), end_(room) {}
  Text& operator<<(std::string_view text) {
    end_ = std::ranges::copy(text, end_).out;  // Empty text may be nowhere: no memcpy().
    return *this;
  }
  Text& operator<<(std::uint64_t number) {
    end_ = std::to_chars(end_, end_ + 20, number).ptr;
    return *this;
  }
  Bytes bytes() const { return bytes_of(std::string_view(begin_, end_)); }

 private:
  char* begin_;
  char* end_;
};

void write_status(Text& text, Status status) {
  text << "HTTP/1.1 " << static_cast<std::uint64_t>(code_of(status)) << " " << reason_of(status)
       << "\r\n";
}

}  // namespace

std::size_t Http1Connection::head_size(const AnswerHead& answer) const {
  const std::size_t fields = answer.fields == nullptr ? 0 : answer.fields->lines().size();
  return kMostOwn + answer.content_type.size() + server_.options().server_name.size() + fields;
}

Bytes Http1Connection::write_head(ExchangeState& state, const AnswerHead& answer, char* room) {
  using Extent = ExchangeState::Extent;
  Text text(room);
  write_status(text, answer.status);
  text << "Date: " << server_.date() << "\r\n";
  if (state.extent == Extent::sized) text << "Content-Length: " << *answer.size << "\r\n";
  if (state.extent == Extent::chunked) text << "Transfer-Encoding: chunked\r\n";
  if (is_last(state)) {
    text << "Connection: close\r\n";
  } else if (state.view().version == Version::http_1_0) {
    text << "Connection: keep-alive\r\n";
  }
  if (!server_.options().server_name.empty())
    text << "Server: " << server_.options().server_name << "\r\n";
  if (!answer.content_type.empty()) text << "Content-Type: " << answer.content_type << "\r\n";
  if (answer.fields != nullptr) text << answer.fields->lines();
  text << "\r\n";
  return text.bytes();
}

// 204 has no length, and 304 that of what it does not send, which is not known here.
ExchangeState::Extent Http1Connection::extent_of(const ExchangeState& state,
                                                 const AnswerHead& answer) {
  using Extent = ExchangeState::Extent;
  if (answer.status == Status::no_content || answer.status == Status::not_modified)
    return Extent::nothing;
  if (answer.size) return Extent::sized;
  if (state.view().version == Version::http_1_1) return Extent::chunked;
  return Extent::until_end;
}

bool Http1Connection::send_head(ExchangeState& state, const AnswerHead& answer, Bytes body) {
  state.extent = extent_of(state, answer);
  if (state.extent == ExchangeState::Extent::until_end) set(kClosing);
  char on_stack[kMostOnStack];
  std::unique_ptr<char[]> on_heap;
  char* room = on_stack;
  if (const std::size_t size = head_size(answer); size > kMostOnStack) {
    on_heap.reset(new (std::nothrow) char[size]);
    room = on_heap.get();
    if (room == nullptr) return false;
  }
  const Bytes pieces[] = {write_head(state, answer, room), body};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Bytes body) {
  if (state.extent != ExchangeState::Extent::chunked) return stream_.write(body);
  const ChunkHeader header(body.size());
  const Bytes pieces[] = {bytes_of(header.text()), body, bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Buffer&& body) {
  if (state.extent != ExchangeState::Extent::chunked) return stream_.write(std::move(body));
  const ChunkHeader header(body.size());
  return stream_.write(header.text()) && stream_.write(std::move(body)) && stream_.write(kChunkEnd);
}

std::error_code Http1Connection::send_file(ExchangeState& state, int file, std::uint64_t offset,
                                           std::uint64_t size) {
  if (state.extent != ExchangeState::Extent::chunked || size == 0)
    return stream_.send_file(file, offset, size);
  const ChunkHeader header(size);
  if (!stream_.write(header.text())) return {EPIPE, std::system_category()};
  const std::error_code error = stream_.send_file(file, offset, size);
  if (!error) stream_.write(kChunkEnd);
  return error;
}

bool Http1Connection::send_end(ExchangeState& state, const Fields& trailers) {
  if (state.extent != ExchangeState::Extent::chunked) return true;
  if (trailers.empty()) return stream_.write(kLastChunk);
  const Bytes pieces[] = {bytes_of(kLastChunkHeader), bytes_of(trailers.lines()),
                          bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::inform(ExchangeState& state, const AnswerHead& answer) {
  if (state.view().version == Version::http_1_0) return true;
  char room[128];
  Text text(room);
  write_status(text, answer.status);
  const std::string_view fields = answer.fields == nullptr ? "" : answer.fields->lines();
  const Bytes pieces[] = {text.bytes(), bytes_of(fields), bytes_of(std::string_view("\r\n"))};
  return stream_.write(pieces);
}

Result<Stream> Http1Connection::upgrade(ExchangeState& state, std::string_view protocol,
                                        const Fields& fields) {
  const bool is_tunnel = state.view().method == Method::connect && protocol.empty();
  const bool is_asked = is_tunnel || state.view().fields.list(FieldId::upgrade).contains(protocol);
  if ((!state.framing.asks_upgrade && !is_tunnel) || !is_asked ||
      state.body != ExchangeState::Body::none)
    return std::unexpected(std::error_code(EPROTO, std::system_category()));
  char room[192];
  Text text(room);
  if (is_tunnel) {
    write_status(text, Status::ok);
  } else {
    if (protocol.size() > 64)
      return std::unexpected(std::error_code(EPROTO, std::system_category()));
    write_status(text, Status::switching_protocols);
    text << "Upgrade: " << protocol << "\r\nConnection: Upgrade\r\n";
  }
  const Bytes pieces[] = {text.bytes(), bytes_of(fields.lines()),
                          bytes_of(std::string_view("\r\n"))};
  if (!stream_.write(pieces))
    return std::unexpected(std::error_code(EPIPE, std::system_category()));
  return hand_over(state);
}

// As it was before it became ours.
Stream Http1Connection::hand_over(ExchangeState& state) {
  Stream stream = std::move(stream_);
  stream.set_idle_timeout(Nanos{0});
  stream.set_half_open(false);
  if (state.has_deadline) stream.set_deadline(Nanos{0});
  stream.resume();
  server_.note_end(state, {});
  state_ = nullptr;
  state.detach_unheard();
  go();
  return stream;
}

}  // namespace spate::http
