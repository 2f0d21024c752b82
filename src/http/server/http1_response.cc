// Http1Connection's output: header sections of responses, and the framing of their bodies.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "http/codec/chunked.h"
#include "http/codec/head_writer.h"
#include "http/codec/outgoing.h"
#include "http/codec/system_error.h"
#include "http/server/file_piece.h"
#include "http/server/http1_connection.h"
#include "http/server/server_core.h"
#include "spate/net/stream_use.h"

namespace spate::http {

namespace {

// Longer header sections are formatted on the heap.
constexpr std::size_t kMostOnStack = 2048;
// Bodies up to this size are copied to the end of the header section. Up to 4 KiB, sending a second
// piece costs the kernel more than the copy (docs/design.md).
constexpr std::size_t kMostBeside = 512;

// A formatted header section.
class Written {
 public:
  // Calls `write`, a second time if the buffer on the stack is too small. False if a field is
  // refused, or when memory runs out.
  template <class Write>
  bool write(Write write_to) {
    for (std::span<char> room = on_stack_;;) {
      HeadWriter writer(room);
      write_to(writer);
      text_ = writer.text();
      is_refused_ = writer.is_refused();
      if (writer.is_whole() || writer.is_refused() || on_heap_ != nullptr) return writer.is_whole();
      on_heap_.reset(new (std::nothrow) char[writer.size()]);
      if (on_heap_ == nullptr) return false;
      room = {on_heap_.get(), writer.size()};
    }
  }
  Bytes bytes() const { return bytes_of(text_); }
  bool is_refused() const { return is_refused_; }

 private:
  char on_stack_[kMostOnStack];
  std::unique_ptr<char[]> on_heap_;
  std::string_view text_;
  bool is_refused_ = false;
};

// HTTP/1.0 recipients ignore it (RFC 9110 §7.8, §15.5.22).
void write_upgrade(HeadWriter& writer, std::string_view protocol) {
  writer.field(FieldId::connection, "upgrade");
  writer.field(FieldId::upgrade, protocol);
}

bool is_chunked(const ExchangeState& state) {
  return state.response().framing().body == BodyKind::chunked;
}

}  // namespace

bool Http1Connection::send_head(ExchangeState& state, const ServerResponseHead& response,
                                Bytes body) {
  const RequestView& request = state.view();
  const bool may_persist = persists(state, response.status);
  state.response().frame({request.method, request.version, may_persist}, response.status,
                         response.size);
  const Outgoing& framing = state.response().framing();
  if (framing.body == BodyKind::none) body = {};
  const bool is_beside = body.size() <= kMostBeside;
  Written head;
  const bool is_written = head.write([&](HeadWriter& writer) {
    server_.begin_head(writer, response.status);
    writer.framing(framing);
    if (!response.upgrade.empty()) write_upgrade(writer, response.upgrade);
    if (!response.content_type.empty()) writer.field(FieldId::content_type, response.content_type);
    if (response.fields != nullptr) writer.fields(*response.fields);
    if (const Fields* added = state.added_fields()) writer.fields(*added);
    writer.end();
    if (is_beside) writer.prepared(text_of(body));
  });
  if (!is_written) return state.note_refusal(head.is_refused() ? EINVAL : ENOMEM);
  if (!framing.keeps_alive) set(kClosing);
  if (is_beside) return stream_.write(head.bytes());
  const Bytes pieces[] = {head.bytes(), body};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Bytes body) {
  if (!is_chunked(state)) return stream_.write(body);
  const ChunkHeader header(body.size());
  const Bytes pieces[] = {bytes_of(header.text()), body, bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::send(ExchangeState& state, Buffer&& body) {
  if (!is_chunked(state)) return stream_.write(std::move(body));
  const ChunkHeader header(body.size());
  if (!stream_.write(header.text())) return false;
  if (!stream_.write(std::move(body))) return cut(state), false;
  stream_.write(kChunkEnd);  // If this fails, the connection is lost anyway.
  return true;
}

// The size of a chunk was written, and its bytes cannot follow. The connection must end, or the
// client would take other bytes for them. Destroys this, unless the connection is already lost,
// which the loop reports.
void Http1Connection::cut(ExchangeState& state) {
  if (stream_.is_writable()) state.give_up();
}

std::error_code Http1Connection::send_file(ExchangeState& state, int file, std::uint64_t offset,
                                           std::uint64_t size, ThreadPool& pool) {
  if (!is_chunked(state) || size == 0) return stream_.send_file(file, offset, size, pool);
  if (!stream_.is_writable()) return system_error(EPIPE);
  if (const std::error_code unfit = check_piece(file, offset, size)) return unfit;
  const ChunkHeader header(size);
  if (!stream_.write(header.text())) return system_error(EPIPE);
  const std::error_code failure = stream_.send_file(file, offset, size, pool);
  failure ? cut(state) : static_cast<void>(stream_.write(kChunkEnd));
  return failure;
}

bool Http1Connection::send_end(ExchangeState& state, const Fields& trailers) {
  // Without a declared size, EOF marks the end of the response. finish() sends it by close(), which
  // need not wait for the client. But the request's body may still arrive.
  const bool is_until_end = state.response().framing().body == BodyKind::until_end;
  if (is_until_end && !state.body().is_over()) stream_.end();
  if (!is_chunked(state)) return true;
  if (trailers.empty()) return stream_.write(kLastChunk);
  const Bytes pieces[] = {bytes_of(kLastChunkHeader), bytes_of(trailers.lines()),
                          bytes_of(kChunkEnd)};
  return stream_.write(pieces);
}

bool Http1Connection::inform(ExchangeState& state, const ServerResponseHead& response) {
  if (state.view().version == Version::http_1_0) return true;
  Written head;
  return head.write([&](HeadWriter& writer) {
    writer.status_line(response.status);
    if (response.fields != nullptr) writer.fields(*response.fields);
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
    writer.framing(frame_outgoing({request.method, request.version, true}, status, {}), protocol);
    writer.fields(fields);
    if (const Fields* added = state.added_fields()) writer.fields(*added);
    writer.end();
  });
  if (!is_written) return std::unexpected(system_error(EINVAL));
  if (!stream_.write(head.bytes())) return std::unexpected(system_error(EPIPE));
  state.response().note_upgrade(status);
  return hand_over(state);
}

// Undoes the settings of HTTP before the Stream is handed over.
Stream Http1Connection::hand_over(ExchangeState& state) {
  drop_deadline();
  state_ = nullptr;
  server_.conclude_later(state, {});
  Stream stream = std::move(stream_);
  set_use(stream, StreamUse::general);
  stream.stop();
  stream.set_idle_timeout(Nanos{0});
  stream.set_half_open(false);
  stream.resume();
  go();
  return stream;
}

}  // namespace spate::http
