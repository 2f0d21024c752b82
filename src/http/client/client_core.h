// ClientCore: what a Client is the handle of: its calls, and a pool of connections for each route.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "http/client/call_state.h"
#include "http/client/origin.h"
#include "http/client/ref.h"
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

  // ---- what Client's functions do

  Call start(std::string_view url, CallHandler* handler, OnResponse on_response,
             CallOptions options);
  void close_idle();
  ClientMetrics metrics() const;
  // The Client is being destroyed, or the loop.
  void close();
  bool is_closed() const { return is_closed_; }

  // ---- what calls and connections use

  Loop& loop() const { return loop_; }
  ClientOptions& options() { return options_; }
  const HeadLimits& head_limits() const { return head_limits_; }
  bool can_reach(const Url& url) const {
    return url.scheme() == "http" || (url.scheme() == "https" && options_.tls);
  }
  std::chrono::sys_seconds wall_second() const;
  void keep_cookies(const Url& url, const FieldsView& fields);
  void count_request(bool is_reused);
  // Grows with every call that begins: says which of two events came first.
  std::uint64_t tickets() const { return tickets_; }

  // The call ends silently.
  void leave(CallState& call);
  // These call the user at their end.
  void fail(CallState& call, std::error_code error);
  // Its answer has come, and its connection is released.
  void complete(CallState& call);
  // Its connection goes on as something else.
  void upgrade(CallState& call, Stream stream);
  // Its connection has no upgrades: asks on one of HTTP/1.1, if there is a way to it.
  void ask_by_http1(CallState& call);
  // There was nothing of an answer.
  void repeat(CallState& call, CallState::Repeat why);
  // False when memory runs out: it is settled with the next.
  bool settle_later(CallState& call);

  // ---- limits

  // For one connection more: false if there is none now.
  bool make_room(Origin& origin);
  // There may be room for those that had none.
  void note_change();
  // Somebody waits for room who came before `call`, which may be nobody.
  bool is_turn_of_another(const CallState* call) const;

 private:
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
  CallState* calls_ = nullptr;
  std::size_t call_count_ = 0;
  std::uint64_t tickets_ = 0;
  std::vector<Ref<CallState>> unsettled_;
  ClientMetrics counts_;
  Timer settle_;
  Cleanup end_of_loop_;
  bool is_in_want_ = false;  // Somebody was refused a connection for the sake of the total.
  bool has_changed_ = false;
  bool is_closed_ = false;
};

}  // namespace spate::http
