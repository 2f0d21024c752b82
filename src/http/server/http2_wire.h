// Http2Wire: one stream of an HTTP/2 connection, with the exchange that it carries, or the tunnel
// of an upgrade. It exists as long as the stream, which may be longer than the exchange: queued
// output is still sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <system_error>

#include "base/list.h"
#include "core/kept_memory.h"
#include "http/codec/http2_fields.h"
#include "http/codec/http2_session.h"
#include "http/codec/http2_trailers.h"
#include "http/codec/refusal.h"
#include "http/server/outbox.h"
#include "http/server/wire.h"
#include "http/tunnel/http2_tunnel.h"
#include "spate/http/fields.h"
#include "spate/net/buffer.h"
#include "spate/timer.h"

namespace spate::http {

class Http2Connection;
class ServerCore;

// The trailers of a response, until they are sent.
struct Http2Trailers {
  Fields fields;
  Http2Fields list;
};

class Http2Wire final : public Wire,
                        public Http2Stream,
                        public Linked<Http2Wire>,
                        Http2Tunnel::Way {
 public:
  Http2Wire(Http2Connection& connection, std::int32_t id, ExchangeState& state);
  Http2Wire(const Http2Wire&) = delete;
  Http2Wire& operator=(const Http2Wire&) = delete;
  // Ends the exchange without calling its handler.
  ~Http2Wire();
  // One per request: allocated from the thread's cache.
  static void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return take_memory(size);
  }
  static void operator delete(void* memory, std::size_t size) noexcept {
    give_memory(memory, size);
  }

  Http2Wire* next_held = nullptr;  // The link of its connection's list of held requests.

  ExchangeState* state() const { return state_; }

  // ---- input; each function may call user code, which may destroy the connection

  void take_head(const Refusal& refusal, Http2End end);
  // Delays the request until take_held(). False if the exchange is over.
  bool hold(Http2End end);
  void take_held();
  void take_trailer(std::string_view name, std::string_view value);
  void take_body(Bytes bytes);
  void take_end();
  bool has_head() const { return has(kHasHead); }
  // Called at EOF of the connection.
  void take_client_end();
  bool must_report_end() const {
    return (state_ != nullptr || tunnel_ != nullptr || is_uploading()) && !has(kHasHeardEnd);
  }
  // Settles its exchange, and reports waiting events.
  void settle_now(ExchangeState& state);
  // Ends the stream with its connection, or at a timeout.
  void lose(std::error_code error);

  // ---- output, called by the session; they call no user code

  Http2Piece next_piece(std::size_t most);
  // Take bytes from the queue: Http2Frames::send_piece().
  void take(std::span<std::byte> target);
  bool take(std::size_t size, Buffer& target);
  void on_end_sent();
  void on_stream_closed(Http2Code code);
  // Resets the stream if none of its queued bytes was sent for `timeout`.
  void check_progress(Nanos timeout, Nanos now);
  void note_progress(Nanos now) { last_progress_ = now; }
  // Resets a stream whose response was sent a while ago, and whose body still arrives or waits for
  // its window.
  void check_upload(Nanos now);

  // ---- deferred events

  // Returns whether the stream has closed. A body that was received completely can still be read.
  bool is_gone() const { return has(kIsClosed) && (state_ == nullptr || !is_complete()); }
  bool has_news() const { return has(kIsDrained) || is_gone(); }
  void tell();
  bool is_complete() const { return has(kEndSent) && has(kClientEnded); }

  // ---- Wire

  ServerCore& server() const override;
  bool is_full() const override { return has(kIsFull); }
  std::size_t queued() const override { return static_cast<std::size_t>(out_.size()); }
  Address peer() const override;
  bool is_local() const override;
  std::optional<TlsInfo> tls() const override;
  bool send_head(ExchangeState& state, const ServerResponseHead& head, Bytes body) override;
  bool send(ExchangeState& state, Bytes body) override;
  bool send(ExchangeState& state, Buffer&& body) override;
  std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                            std::uint64_t size, ThreadPool& pool) override;
  bool send_end(ExchangeState& state, const Fields& trailers) override;
  bool inform(ExchangeState& state, const ServerResponseHead& head) override;
  void read_body(ExchangeState& state) override;
  void pause(ExchangeState&) override {}  // Input is kept, and its window is not updated.
  bool set_deadline(Nanos timeout) override;
  void settle_later(ExchangeState& state) override;
  void settle(ExchangeState& state) override;
  void abort(ExchangeState& state) override;
  void lose(ExchangeState&, std::error_code error) override { lose(error); }
  Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                         const Fields& fields) override;
  void on_tick(ExchangeState& state, Nanos now) override;

 private:
  enum Flag : std::uint16_t {
    kHasHead = 1 << 0,      // The request's header section is complete.
    kClientEnded = 1 << 1,  // On this stream.
    kShowing = 1 << 2,      // Kept bytes are being passed to the handler: new ones must be
                            // appended after them.
    kOutEnded = 1 << 3,     // No more output follows.
    kEndSent = 1 << 4,      // END_STREAM was sent.
    kIsFull = 1 << 5,       //
    kIsDrained = 1 << 6,    // on_drained() is due.
    kIsClosed = 1 << 7,     // The stream has closed.
    kIsReset = 1 << 8,      // Reset by the server.
    kHasHeardEnd = 1 << 9,  // on_client_end() was called.
    kIsAwaited = 1 << 10,   // The session found nothing to send, and must be resumed.
    kIsTooLong = 1 << 11,   // The trailers are too long.
    kIsHeld = 1 << 12,      // The request is complete, and not started yet.
    kHasNoBody = 1 << 13,   // The held request has no body.
  };
  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint16_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint16_t>(flags_ & ~flags); }

  Http2Session& session() const;

  // ---- Http2Tunnel::Way

  void send_tunneled() override;
  void credit(std::size_t size) override;
  void cut_tunnel() override { reset(Http2Code::cancel, {}); }

  void start_request(ExchangeState& state, const Refusal& refusal, Http2End end);
  Refusal check(ExchangeState& state, Http2End end);
  void wake_client();
  bool announces_length(const ExchangeState& state) const;
  void credit_discarded();
  Refusal trailers_refusal() const;
  bool is_uploading() const {
    return state_ == nullptr && tunnel_ == nullptr && has(kEndSent) &&
           !has(kClientEnded | kIsReset | kIsClosed);
  }
  bool show(ExchangeState& state, Bytes bytes);
  void show_kept(ExchangeState& state);
  void refuse(ExchangeState& state, const Refusal& refusal);
  void go_on(ExchangeState& state);
  void keep(ExchangeState& state);
  void finish(ExchangeState& state, std::error_code error = {});
  bool is_writable() const { return !has(kIsReset | kIsClosed); }
  void reset(Http2Code code, std::error_code error);
  void let_go(ExchangeState& state, std::error_code error);
  void leave_exchange();
  bool has_room(std::uint64_t size);
  void on_queued();
  void wake();
  void on_piece_sent();

  Http2Connection& connection_;
  ExchangeState* state_;
  Outbox out_;
  Buffer in_;  // Bytes of the body that were not asked for yet, or arrived during a pause.
  std::unique_ptr<Http2Trailers> trailers_;
  std::unique_ptr<Timer> deadline_;
  std::unique_ptr<Http2Tunnel> tunnel_;
  std::error_code error_;      // The reason of a reset by the server.
  Nanos last_progress_{0};     // When the client last took bytes of the output.
  std::size_t discarded_ = 0;  // Bytes of an upload after its response, not credited yet.
  Http2TrailerSection section_;
  std::int32_t id_;
  std::uint16_t flags_ = 0;
};

}  // namespace spate::http
