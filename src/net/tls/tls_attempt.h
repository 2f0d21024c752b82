// TlsAttempt: a handshake in progress, from accept_tls() or start_tls() to the callback.
//
// It owns the Stream, which has no handler meanwhile. Results are delivered by a separate event, so
// that user code is called from the loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fifo.h"
#include "base/list.h"
#include "core/loop_function.h"
#include "net/connect/connect_attempt.h"
#include "net/tls/tls_engine.h"
#include "spate/net/tls.h"
#include "spate/timer.h"

namespace spate {

class Connection;
class LoopTls;
class TlsTransport;

// Returns a transport's error with its description.
TlsFailure failure_of(long result);
TlsFailure failure_of(std::error_code error);

// Drops the description.
Result<Stream> plain_result(TlsResult<Stream> result);

// As start_tls(), with an additional limit on the time.
Connecting start_tls_within(Nanos most, Stream plain, const TlsContext& context,
                            std::string_view host, OnSecured callback);

// The tags of the lists in which an attempt can be.
struct InLine;
struct Unattended;

class TlsAttempt final : public ConnectAttempt,
                         public Linked<TlsAttempt, InLine>,
                         public Linked<TlsAttempt, Unattended>,
                         private StreamHandler {
 public:
  // The owner: a Connecting, or the attempt itself.
  enum class Keeper : std::uint8_t { handle, nobody };
  struct Plan {
    TlsContext context;
    TlsProvider::Side side;
    std::string_view host;
    Nanos timeout;
  };

  // Begins a handshake. nullptr if no callback is possible: memory ran out, or the Stream's loop
  // was destroyed.
  static TlsAttempt* begin(Stream plain, const Plan& plan, Keeper keeper, OnSecured callback);
  ~TlsAttempt() override;

  bool is_pending() const override { return static_cast<bool>(callback_); }

  // ---- called by LoopTls

  void step();
  // Called when it was added to the queue of handshakes, or removed from it.
  void on_queued(bool is_queued);

  // ---- called by TlsTransport

  void on_secured() { settle_later(); }
  void on_failed(TlsFailure why);
  void on_lost();  // The connection was closed for another reason.

 private:
  TlsAttempt(LoopTls& loop_state, Stream plain, const Plan& plan, Keeper keeper,
             OnSecured callback);

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

  LoopTls& loop_state_;
  Stream stream_;
  TlsContext context_;
  std::string host_;
  LoopFunction<void(TlsResult<Stream>)> callback_;
  const Keeper keeper_;
  Stage stage_ = Stage::waiting;
  TlsTransport* transport_ = nullptr;
  std::optional<TlsFailure> failure_;
  Timer due_;  // The deadline; afterwards, the delivery of the result.
};

}  // namespace spate
