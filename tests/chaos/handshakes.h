// Handshakes: the two Ends of a connection change to TLS together (STARTTLS), and continue as two
// others, each when its handshake has finished.
#pragma once

#include <memory>
#include <vector>

#include "chaos/party.h"
#include "chaos/program.h"
#include "spate/net/connect.h"
#include "spate/net/tls.h"

namespace spate::chaos {

class End;
class World;

// Makes the certificates that all programs share.
void prepare_certificates();

class Handshakes {
 public:
  explicit Handshakes(World& world);
  ~Handshakes();

  // Starts a handshake between `end` and its peer. Does nothing unless both are Ends that may be
  // handed on.
  void begin(End& end, const Step& step);
  // Cancels one; or changes the contexts.
  void act(const Step& step);

  // True if a handshake runs over a transport with its own timing.
  bool has_slow() const;
  // Nothing moves any more: every handshake must have its result.
  void check_settled() const;
  void close();

 private:
  struct Side;
  struct Pair;

  void begin(Pair& pair, Side& side, std::unique_ptr<Stream> plain, bool is_client);
  void on_told(Pair& pair, Side& side, TlsResult<Stream> result);
  void go_on(Side& side, Stream secured);

  World& world_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

}  // namespace spate::chaos
