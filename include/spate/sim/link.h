// The properties of the links between two hosts of a World (world.h), and of its name servers.
// Threads: any, one at a time for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "spate/net/address.h"
#include "spate/net/bytes.h"
#include "spate/net/resolver.h"
#include "spate/time.h"

namespace spate::sim {

class Host;

// Each packet takes `latency`, and up to `jitter` longer, by the seed; negative counts as zero.
// Probabilities are 0 ... 1, per packet.
//
// A lost TCP segment is retransmitted after 200 ms (1 s while connecting), doubling each time, so
// that a stream stalls but loses nothing. After 15 retransmissions (6 while connecting) the sender
// fails with ETIMEDOUT. A lost UDP packet is not sent again.
struct LinkOptions {
  Nanos latency{100'000};
  Nanos jitter{0};
  double loss = 0;
  double duplicates = 0;  // UDP: the packet is delivered twice.
  double reorder = 0;     // UDP: others overtake the packet. All other packets of one direction
                          // stay in order.
  // 0: no limit. UDP packets that would be queued for more than 200 ms are dropped.
  std::uint64_t bytes_per_second = 0;
  // The longest packet, including the IP header; at least 68 bytes. TCP segments carry 52 bytes
  // less. Longer UDP packets are fragmented, and lost if one fragment is.
  std::size_t mtu = 1500;
};

// The treatment of packets in flight when a link is cut.
enum class InFlight : std::uint8_t {
  arrives,
  lost,  // TCP retransmits them, as it does later segments.
  held,  // Delivered when the link is healed.
};

enum class PacketKind : std::uint8_t { syn, syn_ack, ack, data, fin, reset, datagram };

// A packet that is about to leave its host: World::set_rule().
struct WirePacket {
  const Host& from;
  const Host& to;
  Address source;
  Address destination;
  PacketKind kind;
  Bytes bytes;      // For `data` and `datagram`; valid during the call.
  int attempt = 0;  // Number of the retransmission; 0 is the first transmission.
};

// The decision of a rule. Latency, loss and other properties of the link apply in addition.
struct Delivery {
  bool is_lost = false;
  Nanos delay{0};  // Negative counts as zero. Later TCP segments wait for this one.
};

// The relation of a host's clocks to the World's: Host::set_clock().
struct ClockOptions {
  Nanos ahead{0};  // Offset of the wall clock at the call; negative: it is behind.
  // Both clocks run faster by this many millionths; negative: slower. -500,000 ... 1,000,000.
  int drift = 0;
};

// One end of a connection, or a listener: World::connections().
enum class ConnectionState : std::uint8_t { listening, connecting, open, ended, reset };

struct ConnectionInfo {
  const Host* host;
  Address local;
  Address peer;  // For a listener, the unspecified address.
  ConnectionState state;
  std::size_t unread = 0;  // Bytes; for a listener, connections in the backlog.
  std::size_t unsent = 0;  // Bytes, without those in flight.
};

// The answer of the name servers for a name.
struct NameAnswer {
  std::vector<Address> addresses{};  // IPv4 and IPv6. Ports are ignored.
  // In place of addresses: no_such_host, no_address, server_failure or bad_answer. With timeout, no
  // server responds: the query fails after the resolver's timeouts and tries (ResolverOptions; by
  // default after 75 s).
  std::optional<NameError> error{};
  // The delay of the answer, and a random addition up to `jitter`, by the seed. Negative counts as
  // zero.
  Nanos delay{1'000'000};
  Nanos jitter{0};
};

}  // namespace spate::sim
