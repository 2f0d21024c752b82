// ClientConnection: one connection of a client's pool, HTTP/1 (ClientHttp1) or HTTP/2
// (ClientHttp2). It carries calls, and is watched while idle.
#pragma once

#include <cstdint>

#include "base/ref.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class CallState;
class Origin;

class ClientConnection : public StreamHandler, public Counted {
 public:
  ClientConnection(Origin& origin, Stream stream);
  virtual ~ClientConnection() { wake(); }

  // Starts reading. False when memory runs out.
  virtual bool start() = 0;
  // Sends the request of a call. False if the connection cannot be used any more; the call is then
  // unchanged.
  virtual bool carry(CallState& call) = 0;
  // True if it can take a call, or another one.
  virtual bool has_room() const = 0;
  virtual bool has_calls() const = 0;
  // Keeps it for a later call. False if it should not be kept.
  bool rest(Nanos idle_timeout);
  bool is_idle() const { return is_idle_; }
  Nanos idle_since() const { return idle_since_; }

  // Ends the connection: its origin has dropped it.
  enum class Ending : std::uint8_t { graceful, reset };
  virtual void leave(Ending ending) = 0;

 protected:
  // Ends the idle state, for a call or at the end.
  void wake();
  // Called when the Stream closed by itself: it does not keep the loop alive any more.
  void forget_stream();
  void drop(Ending ending);

  Origin* origin_;
  Stream stream_;
  Nanos kept_for_{kForever};  // The server's limit; zero: must not be used again.

 private:
  Nanos idle_since_{0};
  bool is_idle_ = false;
  bool is_unreferenced_ = false;  // By the loop: unref() was called for it.
};

}  // namespace spate::http
