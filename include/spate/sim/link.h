// What happens to packets between two hosts of a World (world.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/net/address.h"
#include "spate/net/bytes.h"
#include "spate/time.h"

namespace spate::sim {

class Host;

// Each packet takes `latency`, and up to `jitter` longer by the seed; negative counts as zero.
// Probabilities are 0 ... 1, of each packet.
//
// What is lost of TCP is sent again, after 200 ms (1 s while it connects) and twice as long each
// time, so that a stream stalls and nothing of it is missing; after 15 times (6) its sender fails
// with ETIMEDOUT. Packets of UDP are lost.
struct LinkOptions {
  Nanos latency{100'000};
  Nanos jitter{0};
  double loss = 0;
  double duplicates = 0;  // UDP: it comes twice.
  double reorder = 0;     // UDP: others overtake it. Else packets of one direction stay in order.
  // 0: no limit. Packets of UDP that would wait for more than 200 ms for their turn are dropped.
  std::uint64_t bytes_per_second = 0;
  // The longest packet, IP's head included, of 68 bytes or more. TCP sends segments of 52 bytes
  // less. Longer packets of UDP go in several, and are lost if one of those is.
  std::size_t mtu = 1500;
};

// What becomes of packets that are under way when a link is cut.
enum class InFlight : std::uint8_t {
  arrives,
  lost,  // That of TCP is sent again, as what is sent later.
  held,  // It comes when the link is healed.
};

enum class PacketKind : std::uint8_t { syn, syn_ack, ack, data, fin, reset, datagram };

// A packet that is about to leave its host: World::set_rule().
struct WirePacket {
  const Host& from;
  const Host& to;
  Address source;
  Address destination;
  PacketKind kind;
  Bytes bytes;      // Of `data` and `datagram`; valid during the call.
  int attempt = 0;  // Counts up each time that TCP sends it again.
};

// What a rule decides. The link's own latency, loss and the like come on top.
struct Fate {
  bool is_lost = false;
  Nanos delay{0};  // Negative counts as zero. TCP's later segments wait for it.
};

// From a loop's clock to the World's: Host::set_clock().
struct ClockOptions {
  Nanos ahead{0};  // The wall clock, now; negative: it is behind.
  // Both clocks run faster by so many millionths; negative: slower. -500,000 ... 1,000,000.
  int drift = 0;
};

// One end of a connection, or a listener: World::connections().
enum class ConnectionState : std::uint8_t { listening, connecting, open, ended, reset };

struct ConnectionInfo {
  const Host* host;
  Address local;
  Address peer;  // Of a listener, the unspecified address.
  ConnectionState state;
  std::size_t unread = 0;  // Bytes; of a listener, who waits to be accepted.
  std::size_t unsent = 0;  // Bytes, those under way left out.
};

}  // namespace spate::sim
