// ExchangeState: what an Exchange is the handle of. It belongs to its wire and to the handle
// together, and goes back to the pool when it has neither, and no callback of it is running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/outgoing.h"
#include "http/codec/target.h"
#include "http/server/answer_coding.h"
#include "http/server/exchange_list.h"
#include "http/server/wire.h"
#include "spate/http/exchange.h"

namespace spate::http {

class BodyReader;
class Compressor;
class ExchangePool;
class ServerCore;

// What becomes of an exchange whose request is refused.
std::error_code error_of(const Refusal& refusal);

class ExchangeState {
 public:
  static ExchangeState* of(const Exchange& exchange) { return exchange.state_; }

  ExchangeState(const ExchangeState&) = delete;
  ExchangeState& operator=(const ExchangeState&) = delete;

  Loop& loop() const;
  const Request& request() const { return request_; }
  const RequestView& view() const { return *view_; }

  // ---- what Exchange's functions of the same name do

  bool is_open() const { return wire_ != nullptr && answer_ != Answer::ended; }
  bool respond(AnswerHead answer, Bytes content);
  void respond_refusal(const Refusal& refusal);
  bool respond(AnswerHead answer, Buffer&& content);
  bool begin(AnswerHead answer);
  bool write(Bytes bytes);
  bool write(Buffer&& buffer);
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size);
  bool end(const Fields& behind);
  bool inform(const AnswerHead& answer);
  std::size_t queued() const { return wire_ == nullptr ? 0 : wire_->queued(); }
  bool is_full() const { return wire_ != nullptr && wire_->is_full(); }
  bool start(ExchangeHandler& handler);
  bool start(std::unique_ptr<BodyReader> reader);
  void pause();
  void resume();
  bool set_deadline(Nanos timeout);
  void give_up();
  Result<Stream> upgrade(std::string_view protocol, const Fields& fields);
  void leave();  // The handle is being destroyed.

  Address peer() const { return wire_ == nullptr ? Address() : wire_->peer(); }

  std::optional<TlsInfo> tls() const { return wire_ == nullptr ? std::nullopt : wire_->tls(); }

  // ---- what a wire does with it

  // While one lives, the state does.
  class Use {
   public:
    explicit Use(ExchangeState& state) : state_(state) { ++state_.uses_; }
    ~Use() {
      --state_.uses_;
      state_.give_back_unless_used();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    ExchangeState& state_;
  };

  // A head is expected.
  void attach(Wire& wire, Nanos now);
  // The head is there, in `head`, and what it means.
  void open(const Framing& framing, Nanos now);
  Exchange make_handle() {
    has_handle_ = true;
    return Exchange(this);
  }
  // Its handler is a BodyReader, which goes with what is returned.
  std::unique_ptr<BodyReader> take_reader();
  // Copies the head: the bytes are going. False when memory runs out.
  bool keep_head();
  // Calls the handler, if there is one. False if the exchange is over afterwards.
  template <class Function>
  bool tell(Function function) {
    if (handler_ != nullptr) function(*handler_);
    return wire_ != nullptr;
  }
  // The wire has no more to do with it; its handler is told.
  void detach(std::error_code error);
  void detach_unheard();
  Wire* wire() const { return wire_; }

  RequestHead head;
  const char* head_text = nullptr;  // Where it lies.
  RequestTarget target;
  std::size_t looked_at = 0;  // Of an unfinished head.

  // The request's body.
  enum class Body : std::uint8_t {
    none,       // There is none.
    waiting,    // Nobody has asked for it.
    reading,    //
    discarded,  // Nobody has, and the answer has ended.
    ended,
  };
  Body body = Body::none;
  Framing framing{};
  ChunkedDecoder chunks{};      // If it is chunked.
  Fields trailers{};            //
  std::uint64_t body_left = 0;  // Else.
  std::uint64_t received = 0;
  std::uint64_t max_body = UINT64_MAX;
  bool has_deadline = false;

  // The answer.
  enum class Answer : std::uint8_t { none, begun, ended };
  Answer answer() const { return answer_; }
  Outgoing outgoing{};  // Once it has begun.
  Compression compression = Compression::none;
  Status status() const { return status_; }
  std::uint64_t sent() const { return sent_; }

  // More of the body is to come, and to be taken.
  bool is_reading() const { return body == Body::reading && !is_paused_; }
  void discard_body() {
    body = Body::discarded;
    is_paused_ = false;
  }
  bool is_counted = false;  // Among the server's exchanges.
  bool is_paused() const { return is_paused_; }
  // A body that is being read comes more slowly than that, in bytes a second, or not at all.
  bool is_body_slow(Nanos timeout, std::uint64_t min_rate, Nanos now) const;
  bool is_over() const {
    return answer_ == Answer::ended && (body == Body::none || body == Body::ended);
  }

  // In loop time.
  Nanos began{0};          // Its first byte, then: its head.
  Nanos reading_since{0};  // Without a pause.
  Nanos last_arrival{0};
  Nanos last_progress{0};             // Of what we send.
  std::uint64_t received_before = 0;  // At reading_since.
  std::uint64_t taken = 0;            // Of what we send, at last_progress.

  ExchangeLink link;

  // What a router has found in the path.
  struct Param {
    std::string_view name;  // The router's.
    std::size_t at;         // In the path.
    std::size_t size;
  };
  static constexpr std::size_t kMostParams = 8;
  std::string param(std::string_view name) const;
  Param params[kMostParams];
  std::size_t param_count = 0;

 private:
  friend class ExchangePool;
  friend class Request;

  explicit ExchangeState(ExchangePool& pool);
  ~ExchangeState();

  void begin_reading();
  bool may_begin(const AnswerHead& answer) const;
  CodingChoice choose_coding(const AnswerHead& answer) const;
  bool respond_as(CodingChoice choice, AnswerHead answer, Bytes content);
  bool respond_plainly(const AnswerHead& answer, Bytes content);
  bool begin_as(CodingChoice choice, AnswerHead answer);
  bool begin_plainly(const AnswerHead& answer);
  void on_begun(const AnswerHead& answer);
  bool compress(Bytes bytes);
  bool end_compression();
  bool send_compressed(Buffer&& coded);
  void drop_compressor();
  std::error_code compress_file(int file, std::uint64_t offset, std::uint64_t size);
  void end_answer();
  bool takes(std::uint64_t size) const;
  void took(std::uint64_t size);
  void give_back_unless_used();
  void reset();

  ExchangePool& pool_;
  Wire* wire_ = nullptr;
  ExchangeHandler* handler_ = nullptr;
  std::unique_ptr<BodyReader> reader_;
  Request request_{*this};

  const RequestView* view_ = &head;  // That, or the copy.
  HeadCopy<RequestView> kept_;

  std::unique_ptr<Compressor> compressor_;  // Of an answer that has begun.
  std::uint64_t left_ = 0;                  // Of one that is_sized_.
  std::uint64_t sent_ = 0;
  Status status_{};
  Answer answer_ = Answer::none;
  bool is_sized_ = false;
  bool drops_body_ = false;
  bool is_paused_ = false;
  bool has_handle_ = false;
  std::uint32_t uses_ = 0;
};

}  // namespace spate::http
