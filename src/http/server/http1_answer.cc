// Http1Connection's way out: the heads of answers, and the framing of their bodies.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "http/codec/chunked.h"
#include "http/codec/head_writer.h"
#include "http/codec/outgoing.h"
#include "http/codec/system_error.h"
#include "http/server/http1_connection.h"
#include "http/server/server_core.h"

namespace spate::http {

namespace {

// Longer heads are put together on the heap.
constexpr std::size_t kMostOnStack = 2048;
// A body of that size is sent in one piece with its head.
constexpr std::size_t kMostBeside = 512;

// A head in its room.
class Written {
 public:
  // `write` puts it together, perhaps twice. False: it is refused, or memory has run out.
  template <class Write>
  bool write(Write write_to) {
    HeadWriter writer(on_stack_);
    write_to(writer);
    text_ = writer.text();
    if (writer.is_whole() || writer.is_refused()) return writer.is_whole();
    on_heap_.reset(new (std::nothrow) char[writer.size()]);
    if (on_heap_ == nullptr) return false;
    HeadWriter again({on_heap_.get(), writer.size()});
    write_to(again);
    text_ = again.text();
    return again.is_whole();
  }
  Bytes bytes() const { return bytes_of(text_); }

 private:
  char on_stack_[kMostOnStack];
  std::unique_ptr<char[]> on_heap_;
  std::string_view text_;
};

}  // namespace

bool Http1Connection::send_head(ExchangeState& state, const AnswerHead& answer, Bytes body) {
  const RequestView& request = state.view();
  state.outgoing =
      frame_answer({request.method, request.version, !is_last(state)}, answer.status, answer.size);
  if (!state.outgoing.keeps_alive) set(kClosing);
  const bool is_beside = body.size() <= kMostBeside;
  Written head;
  const bool is_written = head.write([&](HeadWriter& writer) {
    server_.begin_head(writer, answer.status);
    writer.framing(state.outgoing);
    if (!answer.content_type.empty()) writer.field(FieldId::content_type, answer.content_type);
    if (answer.fields != nullptr) writer.fields(*answer.fields);
    writer.end();
    if (is_beside) writer.prepared(text_of(body));
  });
  if (!is_written) return false;
  if (is_beside) return stream_.write(head.bytes());
  const Bytes pieces[] = {head.bytes(), body};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Bytes body) {
  if (state.outgoing.body != BodyKind::chunked) return stream_.write(body);
  const ChunkHeader header(body.size());
  const Bytes pieces[] = {bytes_of(header.text()), body, bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Buffer&& body) {
  if (state.outgoing.body != BodyKind::chunked) return stream_.write(std::move(body));
  const ChunkHeader header(body.size());
  if (!stream_.write(header.text()) || !stream_.write(std::move(body))) return false;
  stream_.write(kChunkEnd);  // If that fails, the connection is lost with all that came before.
  return true;
}

std::error_code Http1Connection::send_file(ExchangeState& state, int file, std::uint64_t offset,
                                           std::uint64_t size) {
  if (state.outgoing.body != BodyKind::chunked || size == 0)
    return stream_.send_file(file, offset, size);
  const ChunkHeader header(size);
  if (!stream_.write(header.text())) return system_error(EPIPE);
  const std::error_code failure = stream_.send_file(file, offset, size);
  if (!failure) stream_.write(kChunkEnd);
  return failure;
}

bool Http1Connection::send_end(ExchangeState& state, const Fields& trailers) {
  if (state.outgoing.body != BodyKind::chunked) return true;
  if (trailers.empty()) return stream_.write(kLastChunk);
  const Bytes pieces[] = {bytes_of(kLastChunkHeader), bytes_of(trailers.lines()),
                          bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::inform(ExchangeState& state, const AnswerHead& answer) {
  if (state.view().version == Version::http_1_0) return true;
  Written head;
  return head.write([&](HeadWriter& writer) {
    writer.status_line(answer.status);
    if (answer.fields != nullptr) writer.fields(*answer.fields);
    writer.end();
  }) && stream_.write(head.bytes());
}

Result<Stream> Http1Connection::upgrade(ExchangeState& state, std::string_view protocol,
                                        const Fields& fields) {
  const RequestView& request = state.view();
  const Status status = protocol.empty() ? Status::ok : Status::switching_protocols;
  Written head;
  const bool is_written = head.write([&](HeadWriter& writer) {
    writer.status_line(status);
    writer.framing(frame_answer({request.method, request.version, true}, status, {}), protocol);
    writer.fields(fields);
    writer.end();
  });
  if (!is_written) return std::unexpected(system_error(EINVAL));
  if (!stream_.write(head.bytes())) return std::unexpected(system_error(EPIPE));
  return hand_over(state);
}

// As it was before it became ours.
Stream Http1Connection::hand_over(ExchangeState& state) {
  Stream stream = std::move(stream_);
  stream.stop();
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
