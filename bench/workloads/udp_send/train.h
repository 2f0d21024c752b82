/* Shared by the contestants and the client of udp_send. */
#ifndef BENCH_UDP_SEND_TRAIN_H
#define BENCH_UDP_SEND_TRAIN_H

#include <cstddef>

inline constexpr std::size_t kTrain = 16;     // Packets for a request.
inline constexpr std::size_t kPacket = 1200;  // Their size in bytes.
inline constexpr std::size_t kRequest = 8;

// The bytes of a train.
struct Train {
  Train() {
    for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>(i / kPacket + i);
  }
  char bytes[kTrain * kPacket];
};

#endif
