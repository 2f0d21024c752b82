// ExchangeState: the state behind an Exchange. It belongs to its wire and to the handle together.
// It returns to the pool when it has neither, and no callback of it is running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/list.h"
#include "core/user_code.h"
#include "http/codec/framing.h"
#include "http/server/exchange_additions.h"
#include "http/server/header_section.h"
#include "http/server/incoming_body.h"
#include "http/server/lifetime.h"
#include "http/server/matched_route.h"
#include "http/server/outgoing_response.h"
#include "http/server/response_coding.h"
#include "http/server/wire.h"
#include "spate/http/exchange.h"

namespace spate::http {

class Compressor;
class ExchangePool;
class OwnedHandler;
class ServerCore;
class Service;
struct Uncoded;

// Returns the error for the handler and the log of a refused request.
std::error_code error_of(const Refusal& refusal);

// The tags of the lists in which an exchange can be.
struct InProgress;
struct Due;

class ExchangeState : public Linked<ExchangeState, InProgress>, public Linked<ExchangeState, Due> {
 public:
  static ExchangeState* of(const Exchange& exchange) { return exchange.state_; }
  static const ExchangeState& of(const Request& request) { return request.state_; }

  ExchangeState(const ExchangeState&) = delete;
  ExchangeState& operator=(const ExchangeState&) = delete;

  Loop& loop() const;
  const Request& request() const { return request_; }

  // ---- its parts

  HeaderSection& header() { return header_; }
  const RequestView& view() const { return header_.view(); }
  const RequestTarget& target() const { return header_.target(); }
  IncomingBody& body() { return body_; }
  const IncomingBody& body() const { return body_; }
  OutgoingResponse& response() { return response_; }
  const OutgoingResponse& response() const { return response_; }
  MatchedRoute& route() { return route_; }
  const MatchedRoute& route() const { return route_; }

  // ---- the functions of Exchange

  bool is_open() const { return wire_ != nullptr && !response_.is_complete(); }
  bool respond(ServerResponseHead response, Bytes content);
  // Responds with the refusal's status, `fields`, and `text` with a newline as its body. on_refused
  // may change both. False if there was a response.
  bool respond_refusal(const Refusal& refusal, std::string_view text,
                       const Fields* fields = nullptr);
  bool respond_refusal(const Refusal& refusal) { return respond_refusal(refusal, refusal.reason); }
  // Returns why the request was refused; empty if it was not.
  std::string_view reason() const { return reason_; }
  bool respond(ServerResponseHead response, Buffer&& content);
  bool begin(ServerResponseHead response);
  bool write(Bytes bytes);
  bool write(Buffer&& buffer);
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size, ThreadPool& pool);
  bool end(const Fields& behind);
  bool inform(const ServerResponseHead& response);
  std::size_t queued() const;
  bool is_full() const;
  bool start(ExchangeHandler& handler);
  // Reads the body, unless it is known to be longer than `most`.
  bool start(std::unique_ptr<OwnedHandler> reader, std::size_t most);
  // Sets the handler without asking for the body.
  void own(std::unique_ptr<OwnedHandler> handler);
  void set_compression(Compression compression) { compression_ = compression; }
  void pause();
  void resume();
  bool set_deadline(Nanos timeout);
  // Responds 413 to a body of more than `most` bytes, when that is known. Returns false if it was.
  bool limit_body(std::uint64_t most);
  void give_up();
  Result<Stream> upgrade(std::string_view protocol, const Fields& fields);
  void leave();  // Called when the handle is destroyed.

  bool add_field(FieldName name, std::string_view value);
  // Adds all of `fields`, which have none of the server's own.
  bool add_fields(const Fields& fields);
  bool before_response(BeforeResponse function);
  bool on_end(OnExchangeEnd function);
  bool attach(AttributeNode* node);
  AttributeNode* find_attribute(const void* key) const {
    return additions_ == nullptr ? nullptr : additions_->find(key);
  }

  Address peer() const;
  // Returns the address of the client, behind trusted proxies.
  Address client() const;
  std::optional<TlsInfo> tls() const;

  // ---- called by the wire

  // Keeps the state from returning to the pool, on the stack of code that calls user code.
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

  // Begins to receive a header section.
  void attach(Wire& wire, Nanos now);
  // Called when the header section was checked. Returns the refusal of a body that is declared to
  // be too long.
  Refusal open(const Framing& framing, ServerCore& server);
  Exchange make_handle() {
    has_handle_ = true;
    return Exchange(this);
  }
  // Releases the handler that it owns.
  std::unique_ptr<OwnedHandler> take_owned();
  // Calls `function`, which calls user code, and returns true. If an exception leaves it, reports
  // that to the server, and returns false: the caller ends what the user code was called for.
  template <class Function>
  [[gnu::always_inline]] bool guard(Function&& function) {
    return guard_user(std::forward<Function>(function), [this] { report_exception(); });
  }
  // Called inside a catch block. Marks the exchange, so that its record has HttpError::exception.
  [[gnu::cold]] void report_exception() noexcept;
  // Called after an exception left the handler: responds 500, or resets an exchange whose response
  // has begun, and makes the handler's last call.
  [[gnu::cold]] void fail();
  // Calls the service. An exception ends the exchange.
  static void serve(Service& service, Exchange exchange);
  // Calls the handler, if there is one. False if the exchange is over afterwards.
  template <class Function>
  bool tell(Function function) {
    if (handler_ != nullptr && !guard([&] { function(*handler_); })) [[unlikely]]
      fail();
    return wire_ != nullptr;
  }
  // Returns true once, if the wire must send 100 (Continue) before the body arrives.
  bool invites_body() { return !response_.has_begun() && body_.invite(); }
  // Passes a part of the body to the handler, unless it is discarded. Returns false if the body is
  // too long.
  bool pass_on(Bytes piece);
  // Ends the body, and calls the handler unless it was discarded. False if the exchange is over
  // afterwards.
  bool end_body();
  // Returns a stand-in for the request of an upgraded connection, with its route and peer.
  void stand_in(std::string_view its_route, const Address& peer);
  // Called when the wire is not full any more: resumes compressing, or calls the handler.
  void on_room();
  // Compresses a part of the waiting bytes, while the wire has room.
  void compress_queued();
  // Detaches from the wire. Until forget_carrier(), the request still reports the peer while the
  // wire's carrier, which `carrier` watches, exists.
  void part(const Watch* carrier = nullptr);
  void forget_carrier() { parted_ = {}; }
  // Calls on_closed(), and forgets the handler.
  void report_closed(std::error_code error) {
    if (handler_ != nullptr || owned_ != nullptr) release_handler(error);
  }
  void drop_handler() {
    handler_ = nullptr;
    report_closed({});
  }
  // Returns the fields that were added to the response, or nullptr.
  const Fields* added_fields() const {
    return additions_ == nullptr ? nullptr : &additions_->fields;
  }
  // Returns whether functions will be called at the end.
  bool has_on_end() const { return additions_ != nullptr && !additions_->on_end.empty(); }
  // Removes these functions, and returns them.
  std::vector<OnExchangeEnd> take_on_end() {
    return additions_ == nullptr ? std::vector<OnExchangeEnd>() : std::move(additions_->on_end);
  }

  // Detaches from the wire without calling the handler.
  void detach_without_callback();
  Wire* wire() const { return wire_; }

  // Keeps the data for the log, and the state itself, until let_go_of_end(): for an exchange that
  // leaves its wire. False when memory runs out.
  bool keep_end(std::error_code error, Nanos now);
  void let_go_of_end();
  struct End {
    std::error_code error{};
    Nanos at{0};
    Address peer{};
    Address client{};
    std::optional<TlsInfo> tls{};
  };
  // Valid after keep_end().
  const End& end_kept() const { return *end_; }

  // Returns false, for a response that the program cannot send. It is logged if no other follows.
  bool note_refusal(int error);
  // Returns the error of the record of an exchange that ended with `error`.
  std::error_code logged_error(std::error_code error) const;

  // Returns the time since the first byte of the header section arrived, and after open() the time
  // since it was complete.
  Nanos age(Nanos now) const { return now - began_; }
  // Includes it in the server's number of exchanges.
  void mark_counted() { is_counted_ = true; }
  bool is_counted() const { return is_counted_; }

  // ---- the end

  // The next step of the wire, after something happened.
  enum class Step : std::uint8_t {
    wait,      // For the handler, or for bytes.
    end_body,  // Report the end of the body.
    // The response has ended, and no reader asked for the body, which may still arrive.
    discard_body,
    finish,  // The exchange is over.
  };
  // `is_received`: all bytes of the body were received and passed on.
  Step next_step(bool is_received) const;
  bool is_over() const { return response_.has_ended() && body_.is_over(); }
  // Returns whether another request may follow a response with `status` on an HTTP/1 connection:
  // the client allows that, and the end of this request can be found.
  bool allows_next(Status status) const;
  // Responds, unless there was a response. Returns whether the response has ended; otherwise it
  // cannot be completed.
  bool refuse(const Refusal& refusal);
  // Returns whether the body arrives more slowly than the options demand.
  bool is_body_slow(Nanos now) const;

 private:
  friend class ExchangeKeeper;
  friend class ExchangePool;

  explicit ExchangeState(ExchangePool& pool);
  ~ExchangeState();

  struct Parted {
    const Wire* wire = nullptr;
    const Watch* carrier = nullptr;
  };

  const Wire* visible_wire() const;
  // Responds 500, or resets the exchange if the response has begun; discards the body.
  void end_without_handler();
  bool may_begin(const ServerResponseHead& response);
  Status status_to_send(Status status) const;
  CodingChoice choose_coding(const ServerResponseHead& response) const;
  bool respond_as(CodingChoice choice, ServerResponseHead response, Bytes content);
  bool respond_plainly(const ServerResponseHead& response, Bytes content);
  bool respond_shaped(const Refusal& refusal, std::string_view text, const Fields* fields);
  bool begin_as(CodingChoice choice, ServerResponseHead response);
  bool begin_plainly(const ServerResponseHead& response);
  bool send_head(const ServerResponseHead& response, Bytes body);
  void on_begun(const ServerResponseHead& response);
  bool may_respond() const { return wire_ != nullptr && !response_.has_begun(); }
  ExchangeAdditions* additions();
  // Returns false if the added fields cannot be sent.
  bool call_before_response(Status status);
  bool respond_failure();
  bool compress(Bytes bytes, Buffer& coded);
  bool write_compressed(Bytes bytes);
  bool end_compression();
  bool send_coded(Buffer&& coded);
  bool has_uncoded() const;
  bool queue_uncoded(Bytes bytes);
  std::error_code queue_uncoded(int file, std::uint64_t offset, std::uint64_t size,
                                ThreadPool& pool);
  void on_uncoded();
  void on_loaded();
  bool compress_next();
  bool end_later(const Fields& behind);
  void end_compressed();
  void tell_drained();
  void drop_compressor() {
    if (compressor_ != nullptr) return_compressor();
  }
  void return_compressor();
  void end_response();
  bool takes(std::uint64_t size) const { return wire_ != nullptr && response_.takes(size); }
  void took(std::uint64_t size);
  void give_back_unless_used() {
    if (uses_ == 0 && wire_ == nullptr && !has_handle_ && keepers_ == 0) give_back();
  }
  void release_handler(std::error_code error);
  void give_back();
  void reset();

  ExchangePool& pool_;
  Wire* wire_ = nullptr;
  ExchangeHandler* handler_ = nullptr;
  std::unique_ptr<OwnedHandler> owned_;
  std::unique_ptr<ExchangeAdditions> additions_;
  Request request_{*this};

  HeaderSection header_;
  Nanos began_{0};  // A loop time.
  IncomingBody body_;
  OutgoingResponse response_;
  MatchedRoute route_;

  std::unique_ptr<Compressor> compressor_;  // For a compressed response that has begun.
  std::unique_ptr<Uncoded> uncoded_;        // Created for its first file.
  bool has_handle_ = false;
  bool has_thrown_ = false;  // An exception left the handler.
  bool is_counted_ = false;
  Compression compression_ = Compression::none;
  std::uint8_t keepers_ = 0;  // ExchangeKeepers.
  std::uint32_t uses_ = 0;
  int refused_with_ = 0;
  std::string_view reason_;
  Parted parted_;
  std::unique_ptr<End> end_;
};

// To visit all exchanges while any of them may be destroyed: move the list, and pop each.
using ExchangesInProgress = List<ExchangeState, InProgress>;
using DueExchanges = List<ExchangeState, Due>;

}  // namespace spate::http
