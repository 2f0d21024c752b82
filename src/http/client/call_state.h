// CallState: what a Call is the handle of: a request, the way it has come so far, and its answer.
// It belongs to the handle and to its client together; is over when it has no client any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "http/client/ref.h"
#include "http/client/request_body.h"
#include "http/client/route.h"
#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/http2_fields.h"
#include "http/codec/outgoing.h"
#include "spate/http/call.h"
#include "spate/http/compression.h"
#include "spate/http/url.h"
#include "spate/timer.h"

namespace spate::http {

// A head of HTTP/2, and what it refers to beside the call.
struct Http2Request {
  Http2Fields head;
  std::string target;
  std::string cookies;
};

class Carrier;
class ClientCore;
class HeadWriter;
class Origin;

// Who is to hear that a call has gone with its Client, of which a CallHandler is not told. It calls
// no user.
class ClientWitness {
 public:
  virtual void on_client_gone() = 0;

 protected:
  ~ClientWitness() = default;
};

class CallState final : public Counted {
 public:
  static CallState* of(const Call& call) { return call.state_; }

  // With a handler, or with `on_response`.
  CallState(ClientCore& core, CallOptions options, CallHandler* handler, OnResponse on_response);

  // ---- what Call's functions of the same name do

  bool is_open() const { return core_ != nullptr; }
  bool write(Bytes bytes);
  bool write(Buffer&& buffer);
  bool end(Fields trailers);
  bool is_full() const;
  void pause();
  void resume();
  void leave();  // The handle is being destroyed.

  // ---- the request

  // Sets it up, or says what is wrong with it.
  std::error_code prepare(std::string_view url);
  // False when memory runs out.
  bool start_deadline();
  const Url& url() const { return *url_; }
  const Route& route() const { return route_; }
  Method method() const { return options_.method; }
  // The head, as it is sent on a connection of its route. Its body begins anew.
  std::string begin();
  // The same for HTTP/2. False when memory runs out.
  bool begin(Http2Request& request);
  RequestBody& body() { return body_; }

  bool is_idempotent() const;
  bool was_sent() const { return was_sent_; }
  // Its connection has gone before anything of an answer has come: whether to try once more.
  bool may_repeat() const { return !has_repeated_ && is_idempotent() && body_.may_begin(); }
  // The server has not looked at it, and says so.
  bool may_ask_again() const { return refusals_ < kMostRefusals && body_.may_begin(); }
  // For another protocol, on the connection or, of HTTP/2, on a stream.
  bool asks_upgrade() const { return !options_.upgrade.empty(); }
  std::string_view upgrade() const { return options_.upgrade; }
  // By a connection of HTTP/1.1, whatever the server prefers.
  void ask_by_http1() { route_.is_http1 = true; }
  enum class Repeat : std::uint8_t { on_fresh, after_loss, after_refusal };
  void repeat(Repeat why);
  bool needs_fresh() const { return needs_fresh_; }

  // ---- with a carrier

  // One that cannot send it yet.
  void hold(Carrier& carrier) { carrier_ = &carrier; }
  // It has been sent.
  void attach(Carrier& carrier);
  void detach();
  Carrier* carrier() const { return carrier_; }
  // Sends more of the body, unless the server's 100 is waited for. False: it cannot be sent.
  bool send_body(Stream& stream);
  bool is_sent() const { return !awaits_continue_ && body_.is_sent(); }
  bool awaits_continue() const { return awaits_continue_; }
  void stop_waiting_for_continue();
  // Nothing is in the way of the body any more.
  void let_body_go();
  bool accepts_upgrade(const FieldsView& answered) const;
  void on_room();  // Of the carrier's.
  bool is_paused() const { return is_paused_; }

  // ---- the answer. After those that call the user, it may be over.

  // An answer before the answer. False for one that was not asked for, or one too many.
  bool take_informational(const ResponseView& head);
  void take_head(const ResponseView& head, const Framing& framing);
  // Returns how many bytes are used: all, unless it is paused.
  std::size_t show(Bytes bytes);
  // More can come of what was used: of a compressed body that is paused.
  bool has_more() const { return has_more_; }
  void show_more() { show({}); }
  bool is_showing() const { return is_showing_; }
  // What was shown is wrong, or too much.
  std::error_code failure() const { return failure_; }
  // The body has ended: false if it is not whole.
  bool check_end();

  bool is_redirecting() const { return next_.has_value(); }
  bool is_too_long_to_discard() const;
  // Becomes the call of where it is redirected.
  void redirect();

  // The last calls; before the very last it is over.
  void tell_end();
  void tell_closed(std::error_code error);
  void tell_upgraded(Stream stream);
  void settle();
  void forget_user();
  // Until the Call is destroyed.
  void set_witness(ClientWitness& witness) { witness_ = &witness; }
  void tell_witness() {
    if (witness_ != nullptr) witness_->on_client_gone();
  }

  Framing framing{};
  ChunkedDecoder chunks{};
  Fields trailers{};
  std::uint64_t body_left = 0;

  // ---- its client's

  ClientCore* core() const { return core_; }
  void set_over();
  Origin* waits_in = nullptr;
  std::uint64_t begun = 0;    // When: see ClientCore::tickets().
  std::uint64_t ticket = 0;   // Its place among all that wait.
  CallState* next = nullptr;  // Of those of its client.
  CallState* previous = nullptr;
  CallState* next_waiting = nullptr;
  CallState* previous_waiting = nullptr;
  std::error_code pending_error{};  // To be told by the loop.
  bool is_unsettled = false;

 private:
  void end_late();
  std::error_code check_options() const;
  std::string target() const;
  void choose_route();
  Result<Url> target_of(std::string_view location) const;
  void plan_redirect();
  bool drops_body(Status status) const;
  void plan_decoding();
  std::size_t inflate(Bytes bytes);
  void receive(Bytes bytes);
  void fail_later(std::error_code error);
  std::string cookies() const;
  void begin_body();
  // The fields of the Client's own.
  template <class Add>
  void add_own(std::string_view cookies, Add add) const;
  ConnectionOption connection_option() const;
  void write_head(HeadWriter& writer, std::string_view cookies) const;

  static constexpr int kMostRefusals = 5;

  ClientCore* core_;
  CallHandler* handler_;
  OnResponse on_response_;
  ClientWitness* witness_ = nullptr;
  CallOptions options_;
  std::optional<Url> url_;
  Route route_;
  RequestBody body_;
  Carrier* carrier_ = nullptr;

  std::optional<Response> response_;
  std::optional<Url> next_;  // Where it is redirected.
  std::optional<Decompressor> decompressor_;
  std::uint64_t most_;  // Bytes of the body.
  std::uint64_t shown_ = 0;
  std::error_code failure_;

  Timer deadline_;
  Timer continue_;
  unsigned redirects_ = 0;
  int refusals_ = 0;
  int informational_ = 0;  // Heads of 1xx so far.
  bool was_sent_ = false;
  bool has_repeated_ = false;
  bool needs_fresh_ = false;  // A connection.
  bool awaits_continue_ = false;
  bool is_paused_ = false;
  bool has_body_ = false;
  bool has_more_ = false;
  bool is_showing_ = false;
  bool wants_room_ = false;
  bool wants_upload_ = false;     // The handler is to be told so,
  bool was_upload_told_ = false;  // which is done once.
};

}  // namespace spate::http
