// Http2Wire: one stream of a connection of HTTP/2, and the exchange that it carries, or the tunnel
// that has come of it. It lives as long as the stream, which may be longer than the exchange: what
// was written is still sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <system_error>

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

// Those of an answer, until they are sent.
struct Http2Trailers {
  Fields fields;
  Http2Fields list;
};

class Http2Wire final : public Wire, public Http2Stream, Http2Tunnel::Way {
 public:
  Http2Wire(Http2Connection& connection, std::int32_t id, ExchangeState& state);
  Http2Wire(const Http2Wire&) = delete;
  Http2Wire& operator=(const Http2Wire&) = delete;
  // The exchange is over, and nobody is told.
  ~Http2Wire();
  // One a request: from what the thread keeps.
  static void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return take_memory(size);
  }
  static void operator delete(void* memory, std::size_t size) noexcept {
    give_memory(memory, size);
  }

  // In its connection's list.
  Http2Wire* next = nullptr;
  Http2Wire* previous = nullptr;

  ExchangeState* state() const { return state_; }

  // ---- what comes in; each may call user code. The connection may be gone afterwards.

  void take_head(const Refusal& refusal, Http2End end);
  void take_trailer(std::string_view name, std::string_view value);
  void take_body(Bytes bytes);
  void take_end();
  bool has_head() const { return has(kHasHead); }
  // The client sends no more on any stream.
  void take_client_end();
  bool has_to_hear_of_end() const {
    return (state_ != nullptr || tunnel_ != nullptr) && !has(kHasHeardEnd);
  }
  // Of its exchange, and what waits for it.
  void settle_now(ExchangeState& state);
  // The connection, or its time, is over.
  void lose(std::error_code error);

  // ---- what goes out, in the session; nobody is called

  Http2Piece next_piece(std::size_t most);
  // From what waits: Http2Frames::send_piece().
  void take(std::span<std::byte> target);
  bool take(std::size_t size, Buffer& target);
  void on_end_sent();
  void on_stream_closed(Http2Code code);
  // If nothing of what waits was sent for so long, it is reset.
  void check_progress(Nanos timeout, Nanos now);
  void note_progress(Nanos now) { last_progress_ = now; }

  // ---- what was noted meanwhile

  // The stream has closed. What was received in whole may still be read.
  bool is_gone() const { return has(kIsClosed) && (state_ == nullptr || !is_complete()); }
  bool has_news() const { return has(kIsDrained) || is_gone(); }
  void tell();
  bool is_complete() const { return has(kEndSent) && has(kClientEnded); }

  // ---- Wire

  ServerCore& server() const override;
  bool is_full() const override { return has(kIsFull); }
  std::size_t queued() const override { return static_cast<std::size_t>(out_.size()); }
  Address peer() const override;
  std::optional<TlsInfo> tls() const override;
  bool send_head(ExchangeState& state, const AnswerHead& head, Bytes body) override;
  bool send(ExchangeState& state, Bytes body) override;
  bool send(ExchangeState& state, Buffer&& body) override;
  std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                            std::uint64_t size) override;
  bool send_end(ExchangeState& state, const Fields& trailers) override;
  bool inform(ExchangeState& state, const AnswerHead& head) override;
  void read_body(ExchangeState& state) override;
  void pause(ExchangeState&) override {}  // What comes is kept, and not credited.
  bool set_deadline(Nanos timeout) override;
  void settle_later(ExchangeState& state) override;
  void settle(ExchangeState& state) override;
  void abort(ExchangeState& state) override;
  Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                         const Fields& fields) override;
  void on_tick(ExchangeState& state, Nanos now) override;

 private:
  enum Flag : std::uint16_t {
    kHasHead = 1 << 0,       // All of the request's.
    kClientEnded = 1 << 1,   // Of this stream.
    kShowing = 1 << 2,       // What was kept of the body: what comes meanwhile is behind it.
    kAskedBody = 1 << 3,     // "100 Continue" has been sent.
    kOutEnded = 1 << 4,      // Nothing is written any more.
    kEndSent = 1 << 5,       // That has been sent.
    kIsFull = 1 << 6,        //
    kIsDrained = 1 << 7,     // To be told.
    kIsClosed = 1 << 8,      // The stream is.
    kIsReset = 1 << 9,       // By us.
    kHasHeardEnd = 1 << 10,  // Of the client's.
    kIsAwaited = 1 << 11,    // The session has found nothing to send.
    kIsTooLong = 1 << 12,    // What the client says behind its body.
  };
  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint16_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint16_t>(flags_ & ~flags); }

  Http2Session& session() const;

  // ---- Http2Tunnel::Way

  void send_tunneled() override;
  void credit(std::size_t size) override;
  void cut_tunnel() override { reset(Http2Code::cancel, {}); }

  Refusal check(ExchangeState& state, Http2End end);
  bool show(ExchangeState& state, Bytes bytes);
  void show_kept(ExchangeState& state);
  void refuse(ExchangeState& state, const Refusal& refusal);
  void go_on(ExchangeState& state);
  void finish(ExchangeState& state, std::error_code error = {});
  bool is_writable() const { return !has(kIsReset | kIsClosed); }
  void reset(Http2Code code, std::error_code error);
  void let_go(ExchangeState& state, std::error_code error);
  void note_end(ExchangeState& state, std::error_code error);
  static Status status_of(const ExchangeState& state, const AnswerHead& answer);
  bool has_room(std::uint64_t size);
  void on_queued();
  void wake();
  void on_piece_sent();

  Http2Connection& connection_;
  ExchangeState* state_;
  Outbox out_;
  Buffer in_;  // Of the body, for who has not asked yet, or has paused.
  std::unique_ptr<Http2Trailers> trailers_;
  std::unique_ptr<Timer> deadline_;
  std::unique_ptr<Http2Tunnel> tunnel_;
  std::error_code error_;   // Why we have reset it.
  Nanos last_progress_{0};  // Of what we send.
  Http2TrailerSection section_;
  std::int32_t id_;
  std::uint16_t flags_ = 0;
};

}  // namespace spate::http
