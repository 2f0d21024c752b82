// TlsAttempt: a handshake on its way, from accept_tls() or start_tls() to the callback.
//
// It has the Stream, which no handler hears meanwhile. What is to be told waits for an event of its
// own, so that user code is called from the loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/chain.h"
#include "net/connect/connect_attempt.h"
#include "net/secure/tls_engine.h"
#include "spate/net/tls.h"
#include "spate/timer.h"

namespace spate {

class Connection;
class TlsHub;
class TlsTransport;

// An error of a transport's, with its own words.
TlsFailure failure_of(long result);
TlsFailure failure_of(std::error_code error);

// Without the words.
Result<Stream> plain_result(TlsResult<Stream> result);

// start_tls() that takes no longer than `most`, either.
Connecting start_tls_within(Nanos most, Stream plain, const TlsContext& context,
                            std::string_view host, OnSecured callback);

class TlsAttempt final : public ConnectAttempt, public Linked<TlsAttempt>, private StreamHandler {
 public:
  // Who destroys it: a Connecting, or itself.
  enum class Keeper : std::uint8_t { handle, nobody };
  struct Plan {
    TlsContext context;
    TlsProvider::Side side;
    std::string_view host;
    Nanos timeout;
  };

  // nullptr: nothing can be told, as memory has run out or the Stream has no loop any more.
  static TlsAttempt* begin(Stream plain, const Plan& plan, Keeper keeper, OnSecured callback);
  ~TlsAttempt() override;

  bool is_pending() const override { return static_cast<bool>(callback_); }

  // ---- for TlsHub

  void step();
  // 1 + its place in the line, 0 for none.
  std::uint32_t place() const { return place_; }
  void set_place(std::uint32_t place);

  // ---- for TlsTransport

  void on_secured() { settle_later(); }
  void on_failed(TlsFailure why);
  void on_lost();  // The connection was closed for a reason of its own.

 private:
  TlsAttempt(TlsHub& hub, Stream plain, const Plan& plan, Keeper keeper, OnSecured callback);

  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code error) override;

  Connection& connection() const;
  void start(const Plan& plan);
  void put_over();
  void leave_transport();
  void settle_later();
  void on_due();
  void settle();

  enum class Stage : std::uint8_t { waiting, shaking, told, lost };

  TlsHub& hub_;
  Stream stream_;
  TlsContext context_;
  std::string host_;
  OnSecured callback_;
  const Keeper keeper_;
  Stage stage_ = Stage::waiting;
  std::uint32_t place_ = 0;
  TlsTransport* transport_ = nullptr;
  std::optional<TlsFailure> failure_;
  Timer due_;  // The deadline; then, that something is to be told.
};

}  // namespace spate
