// ClientCore: the state behind a Client: its calls, and a connection pool for each route.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "http/client/call_state.h"
#include "http/client/origin.h"
#include "http/codec/head.h"
#include "spate/hooks.h"
#include "spate/http/client.h"
#include "spate/loop.h"
#include "spate/timer.h"

namespace spate::http {

class ClientCore final : public Counted {
 public:
  static Result<ClientCore*> create(Loop& loop, ClientOptions options);
  ClientCore(Loop& loop, ClientOptions options);
  ~ClientCore();

  // ---- the functions of Client

  Call start(std::string_view url, CallHandler* handler, OnResponse on_response,
             CallOptions options);
  void close_idle();
  ClientMetrics metrics() const;
  const std::string& last_failure() const { return last_failure_; }
  // Called by the destructor of the Client or of the loop.
  void close();
  bool is_closed() const { return is_closed_; }

  // ---- called by calls and connections

  Loop& loop() const { return loop_; }
  ClientOptions& options() { return options_; }
  const HeadLimits& head_limits() const { return head_limits_; }
  // Returns the URL to which those of calls are relative, if any.
  const Url* base() const { return base_ ? &*base_ : nullptr; }
  bool can_reach(const Url& url) const {
    return url.scheme() == "http" || (url.scheme() == "https" && options_.tls);
  }
  std::chrono::sys_seconds wall_second() const;
  void keep_cookies(const Url& url, const FieldsView& fields);
  void count_request(bool is_reused);
  // Returns the sequence number of the last call, which decides which of two events came first.
  std::uint64_t tickets() const { return tickets_; }

  // Ends the call without a callback.
  void leave(CallState& call);
  // These end by calling user code.
  void fail(CallState& call, std::error_code error);
  // Called when the response is complete and its connection was released.
  void complete(CallState& call);
  // Called when the connection leaves HTTP.
  void upgrade(CallState& call, Stream stream);
  // Repeats the call with HTTP/1.1, if that is possible: its connection does not support upgrades.
  void ask_by_http1(CallState& call);
  // Repeats a call that received nothing of a response.
  void repeat(CallState& call, CallState::Repeat why);
  // Sends a call again after its delay.
  void retry_now(CallState& call) { enter(call, Origin::Place::last); }
  // Takes a retry from the budget. False if it is spent.
  bool take_from_budget();
  // Returns a random time between zero and `most`.
  Nanos jitter(Nanos most);
  // Schedules CallState::settle(). False when memory runs out; it is then called together with the
  // next.
  bool settle_later(CallState& call);

  // ---- limits

  // Makes room for one more connection. False if the limits do not allow one now.
  bool make_room(Origin& origin);
  // Wakes origins that were refused a connection.
  void note_change();
  // True if an older call is waiting for a connection. `call` may be null.
  bool is_turn_of_another(const CallState* call) const;

 private:
  std::error_code prepare();
  void retry(CallState& call, std::error_code error);
  void link(CallState& call);
  void unlink(CallState& call);
  void enter(CallState& call, Origin::Place place);
  Origin& origin_of(const Route& route);
  std::size_t connections() const;
  Origin* with_oldest_idle() const;
  Origin* first_in_want() const;
  void serve_those_in_want();
  void forget_empty_origins();
  bool wake();
  void settle();

  Loop& loop_;
  ClientOptions options_;
  HeadLimits head_limits_;
  std::unordered_map<std::string, std::unique_ptr<Origin>> origins_;
  List<CallState, OfClient> calls_;
  std::size_t call_count_ = 0;
  std::uint64_t tickets_ = 0;
  std::uint64_t started_ = 0;  // Calls, in total.
  std::vector<Ref<CallState>> unsettled_;
  std::string last_failure_;
  ClientMetrics counts_;
  std::optional<Url> base_;
  std::uint64_t random_;
  Timer settle_;
  Cleanup end_of_loop_;
  bool is_in_want_ = false;  // An origin was refused a connection because of the total limit.
  bool has_changed_ = false;
  bool is_closed_ = false;
};

}  // namespace spate::http
