// CallState: the state behind a Call: a request, its progress, and its response. It belongs to the
// handle and to its client together. It is over once it has no client any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/list.h"
#include "base/ref.h"
#include "http/client/request_body.h"
#include "http/client/route.h"
#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/http2_fields.h"
#include "http/codec/outgoing.h"
#include "spate/active.h"
#include "spate/http/call.h"
#include "spate/http/compression.h"
#include "spate/http/retry.h"
#include "spate/http/url.h"
#include "spate/timer.h"

namespace spate::http {

// The fields that only the Client sends.
inline constexpr std::uint64_t kOwnFields = kFramingFields | bit_of(FieldId::expect);

// An HTTP/2 header section, and the texts that it refers to besides those of the call.
struct Http2Request {
  Http2Fields head;
  std::string target;
  std::string cookies;
};

class Carrier;
class ClientCore;
class HeadWriter;
class Origin;

// An observer of the Client's destruction during a call, which a CallHandler does not report. It
// calls no user code.
class ClientWitness {
 public:
  virtual void on_client_gone() = 0;

 protected:
  ~ClientWitness() = default;
};

// The tags of the lists in which a call can be.
struct OfClient;
struct Waiting;

class CallState final : public Counted,
                        public Linked<CallState, OfClient>,
                        public Linked<CallState, Waiting> {
 public:
  static CallState* of(const Call& call) { return call.state_; }

  // Exactly one of `handler` and `on_response` is set.
  CallState(ClientCore& core, CallOptions options, CallHandler* handler, OnResponse on_response);

  // ---- the functions of Call

  bool is_open() const { return core_ != nullptr; }
  bool write(Bytes bytes);
  bool write(Buffer&& buffer);
  bool end(Fields trailers);
  bool is_full() const;
  void pause();
  void resume();
  void leave();  // Called when the handle is destroyed.

  // ---- the request

  // Prepares the request. Returns an error for invalid options.
  std::error_code prepare(std::string_view url);
  // Starts the timer. False when memory runs out.
  bool start_deadline();
  const Url& url() const { return *url_; }
  const Route& route() const { return route_; }
  Method method() const { return options_.method; }
  // Returns the header section for a connection of its route, and rewinds the body.
  std::string begin();
  // As above, for HTTP/2. False when memory runs out.
  bool begin(Http2Request& request);
  RequestBody& body() { return body_; }

  bool is_idempotent() const;
  bool was_sent() const { return was_sent_; }
  // Returns whether to retry after the connection was lost before any byte of a response.
  bool may_repeat() const { return !has_repeated_ && is_idempotent() && body_.may_begin(); }
  // Returns whether to retry after the server refused the stream without processing it.
  bool may_ask_again() const { return refusals_ < kMostRefusals && body_.may_begin(); }
  // Requests another protocol, on the connection or, with HTTP/2, on a stream.
  bool asks_upgrade() const { return !options_.upgrade.empty(); }
  std::string_view upgrade() const { return options_.upgrade; }
  // Forces an HTTP/1.1 connection, whatever the server prefers.
  void ask_by_http1() { route_.is_http1 = true; }
  enum class Repeat : std::uint8_t { on_fresh, after_loss, after_refusal };
  void repeat(Repeat why);
  bool needs_fresh() const { return needs_fresh_; }

  // ---- with a carrier

  // Assigns a carrier that cannot send the request yet.
  void hold(Carrier& carrier) { carrier_ = &carrier; }
  // Assigns a carrier that has sent the request.
  void attach(Carrier& carrier);
  void detach();
  Carrier* carrier() const { return carrier_; }
  // Sends more of the body, unless it waits for the server's 100. False if it cannot be sent.
  bool send_body(Stream& stream);
  bool is_sent() const { return !awaits_continue_ && body_.is_sent(); }
  bool awaits_continue() const { return awaits_continue_; }
  void stop_waiting_for_continue();
  // Ends the wait for 100: the body may be sent.
  void let_body_go();
  bool accepts_upgrade(const FieldsView& fields) const;
  void on_room();  // The carrier has room.
  bool is_paused() const { return is_paused_; }

  // ---- the response. Functions that call user code may end the call.

  // Handles an interim response. False for an unexpected one, or one too many.
  bool take_informational(const ResponseView& head);
  void take_head(const ResponseView& head, const Framing& framing);
  // Passes bytes of the body on. Returns how many are used: all, unless the call is paused.
  std::size_t show(Bytes bytes);
  // True if bytes that were used can produce more output: a compressed body that is paused.
  bool has_more() const { return has_more_; }
  void show_more() { show({}); }
  bool is_showing() const { return is_showing_; }
  // Returns the error of the body: invalid, or too long.
  std::error_code failure() const { return failure_; }
  // Called at the end of the body. False if it is incomplete.
  bool check_end();

  // Returns whether another request follows, and the response is not shown.
  bool is_redirecting() const { return next_.has_value() || will_retry_; }
  bool is_too_long_to_discard() const;
  // Turns into the call of the redirect's target.
  void redirect();

  // ---- retries (call_retry.cc)

  // Returns whether the response that was received makes the call be retried.
  bool will_retry() const { return will_retry_; }
  // Returns whether the call is retried after `error`, and takes the retry from the budget.
  bool plan_retry(std::error_code error);
  // Returns whether another server may get the request of this call, which ended with `error`.
  bool may_ask_another(std::error_code error) const;
  // Starts the delay. The call must have no carrier and not wait for one.
  Retry begin_retry(std::error_code error);

  // Called before the call ends at its deadline.
  void note_late();
  // Sets the text of a failure that has a better one than the message of its error.
  void explain_failure(std::string text) { last_failure_ = std::move(text); }
  // Sets the message as the text, unless there is one.
  void note_failure(std::error_code error) {
    if (last_failure_.empty()) last_failure_ = error.message();
  }
  const std::string& last_failure() const { return last_failure_; }
  // Make the last calls. The call is over before the very last.
  void report_end();
  void report_closed(std::error_code error);
  void report_upgraded(Stream stream);
  // Calls on_upload() if it is due: by the loop, or before a response that arrives earlier.
  void report_upload();
  void settle();
  void forget_user();
  // Valid until the Call is destroyed.
  void set_witness(ClientWitness& witness) { witness_ = &witness; }
  void report_to_witness() {
    if (witness_ != nullptr) witness_->on_client_gone();
  }

  Framing framing{};
  ChunkedDecoder chunks{};
  Fields trailers{};
  std::uint64_t body_left = 0;

  // ---- for the client

  ClientCore* core() const { return core_; }
  void set_over();
  Origin* waits_in = nullptr;
  std::uint64_t begun = 0;    // The sequence number at its begin: see ClientCore::tickets().
  std::uint64_t ticket = 0;   // Its sequence number among all waiting calls.
  std::error_code pending_error{};  // Reported by the loop.
  bool is_unsettled = false;

 private:
  std::error_code locate(std::string_view text);
  std::error_code add_fields();
  std::string_view method_text() const;
  void forget_response();
  bool is_repeatable() const;
  bool may_retry() const;
  std::optional<Nanos> retry_after() const;
  void plan_retry();
  bool plan_retry(Nanos least);
  void watch_progress();
  void note_progress();
  std::uint64_t sent_bytes() const;
  bool waits_for_user() const;
  void on_wait_over();
  static void describe(const Node& node, ActiveInfo& info);
  void end_late();
  std::error_code check_options() const;
  bool has_two_ways() const;
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
  // Adds the Client's own fields.
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
  std::optional<Url> next_;  // The target of a redirect.
  std::optional<Decompressor> decompressor_;
  std::uint64_t most_;  // Limit of the body, in bytes.
  std::uint64_t shown_ = 0;
  std::error_code failure_;
  std::string last_failure_;

  Timer deadline_;
  Timer continue_;
  Timer wait_;  // The idle limit; without a carrier, the delay of a retry.
  Nanos retry_delay_{0};
  std::uint64_t last_sent_bytes_ = 0;
  unsigned attempt_ = 1;
  unsigned redirects_ = 0;
  int refusals_ = 0;
  int informational_ = 0;  // Number of 1xx responses.
  bool was_sent_ = false;
  bool has_repeated_ = false;
  bool needs_fresh_ = false;  // It needs a connection that was not used before.
  bool awaits_continue_ = false;
  bool is_paused_ = false;
  bool has_body_ = false;
  bool has_more_ = false;
  bool was_seen_ = false;    // The user has seen a part of the response.
  bool will_retry_ = false;  // After the response that is being received.
  bool is_showing_ = false;
  bool wants_room_ = false;
  bool wants_upload_ = false;     // on_upload() is due,
  bool was_upload_reported_ = false;  // and was called; once per call.
};

}  // namespace spate::http
