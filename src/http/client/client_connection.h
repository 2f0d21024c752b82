// ClientConnection: one connection of a client's pool, of HTTP/1 (ClientHttp1) or of HTTP/2
// (ClientHttp2): carries calls, and is watched while it has none.
#pragma once

#include <cstdint>

#include "http/client/ref.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class CallState;
class Origin;

class ClientConnection : public StreamHandler, public Counted {
 public:
  ClientConnection(Origin& origin, Stream stream);
  virtual ~ClientConnection() { wake(); }

  // False when memory runs out.
  virtual bool start() = 0;
  // False if the connection takes nothing any more; then the call is as it was.
  virtual bool carry(CallState& call) = 0;
  // It takes a call, or another.
  virtual bool has_room() const = 0;
  virtual bool has_calls() const = 0;
  // Is kept for another call. False if it is not worth it.
  bool rest(Nanos idle_timeout);
  bool is_idle() const { return is_idle_; }
  Nanos idle_since() const { return idle_since_; }

  // Its origin has no more to do with it.
  enum class Ending : std::uint8_t { graceful, reset };
  virtual void leave(Ending ending) = 0;

 protected:
  // A call comes, or the end.
  void wake();
  // The Stream has closed by itself, and the loop does not wait for it any more.
  void forget_stream();
  void drop(Ending ending);

  Origin* origin_;
  Stream stream_;
  Nanos kept_for_{kForever};  // By the server; zero: it is of no more use.

 private:
  Nanos idle_since_{0};
  bool is_idle_ = false;
  bool is_unreferenced_ = false;  // By the loop.
};

}  // namespace spate::http
