// Handshakes: the two Ends of a connection change to TLS together (STARTTLS), and go on as two
// others, each when it is told that they have shaken hands.
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

// Makes what all programs share.
void prepare_certificates();

class Handshakes {
 public:
  explicit Handshakes(World& world);
  ~Handshakes();

  // `end` and its peer. Nothing happens unless both are Ends that may be handed on.
  void begin(End& end, const Step& step);
  // One is given up; or the contexts change.
  void act(const Step& step);

  // Somebody shakes hands over what the kernel carries in its own time.
  bool has_slow() const;
  // Nothing moves any more: all were told.
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
