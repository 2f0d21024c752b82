// Reconnector: the state behind a Client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/abandonable.h"
#include "base/backoff.h"
#include "core/loop_function.h"
#include "net/stream/counted_transport.h"
#include "spate/net/client.h"
#include "spate/timer.h"

namespace spate {

class Reconnector final : private CountedTransport::Watcher, private Abandonable<Reconnector> {
 public:
  // An address, or a host by name.
  struct Target {
    Address address{};
    std::string host{};
    std::uint16_t port = 0;
  };

  static Result<Reconnector*> make(Loop& loop, Target target, OnConnected callback,
                                   const ClientOptions& options);
  // Called by the Client's destructor.
  void abandon();

  bool may_be_touched() const;
  void connect();
  void disconnect();
  void stop();

  Client::State state() const;
  std::uint64_t attempts() const { return attempts_; }
  std::uint64_t connections() const { return connections_; }
  std::uint32_t failures() const { return failures_; }
  std::error_code last_error() const { return last_failure_.code; }
  std::string_view last_failure() const { return last_failure_.text; }
  Nanos retry_in() const { return waiting_.remaining(); }

 private:
  friend class Abandonable<Reconnector>;

  Reconnector(LoopStreams& loop_state, Target target, OnConnected callback,
              const ClientOptions& options);
  ~Reconnector();

  void attempt();
  void on_result(Result<sys::Descriptor> socket);
  TlsResult<Stream> take(Result<sys::Descriptor> socket);
  void shake_hands(Stream plain);
  void settle(TlsResult<Stream> result);
  void on_left(Connection& connection) override;
  void fail();
  void wait();
  void wake_in(Nanos delay);
  Nanos delay();

  LoopStreams& loop_state_;
  Target target_;
  LoopFunction<void(Result<Stream>)> callback_;
  ClientOptions options_;
  CountedTransport* transport_;  // nullptr after abandon().
  Connecting connecting_;
  Timer waiting_;
  Connection* connection_ = nullptr;  // While it is open.
  Nanos connected_at_{0};             // Loop time.
  Nanos deadline_{0};                 // The attempt's deadline, in loop time.
  std::uint64_t attempts_ = 0;
  std::uint64_t connections_ = 0;
  Backoff backoff_;
  std::uint32_t failures_ = 0;
  TlsFailure last_failure_;
  bool wanted_ = false;
  bool is_connecting_ = false;
  bool is_closing_ = false;  // disconnect() has closed the connection.
};

}  // namespace spate
