// Diagnosis of the Streams of a loop. No state is kept for it; it costs time only when it is
// called.
//
//   spate::for_each_stream(loop, [](const spate::Stream& stream) {
//     if (spate::stream_info(stream).queued > 1'000'000)
//       report(stream.peer_address().to_string());
//   });
//
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "spate/export.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

enum class StreamState : std::uint8_t {
  connecting,  // Between Stream::connect() and on_connected().
  open,
  peer_ended,  // EOF was received; our side is open.
  ending,      // Our side ends once the queue is sent.
  ended,       // Our side has ended; the peer's has not.
  closing,     // Closed or destroyed, and waits for its queue or its peer.
  failed,      // on_closed() is due with an error.
  closed,      // on_closed() is due, was called, or has no handler; the Stream is not destroyed
               // yet.
};
inline constexpr std::size_t kStreamStates = 8;
SPATE_EXPORT std::string_view name_of(StreamState state);  // "open", "peer ended", ...

struct StreamInfo {
  StreamState state = StreamState::closed;
  bool is_started = false;  // It has a handler.
  bool is_paused = false;
  bool is_full = false;
  bool has_owner = false;  // False: the Stream was destroyed, and the rest of its queue is being
                           // sent.
  std::size_t queued = 0;  // Bytes: as Stream::queued(), and the size of Stream::unread().
  std::size_t unread = 0;
  // Since the kernel last took bytes of the queue, or the queue began. Zero while it is empty, or
  // rests because of rate limits.
  Nanos stalled{0};
  Nanos age{0};  // Since it was made, or began to connect. Resolution: about a second.
  // Unique in the process while the Stream exists: RunningCallback::watcher.
  const void* id = nullptr;
};
// Returns the state of a Stream; StreamState::closed for an empty one.
SPATE_EXPORT StreamInfo stream_info(const Stream& stream);

// The kernel's statistics of a TCP connection.
struct TcpInfo {
  Nanos since_received{0};  // Resolution: milliseconds, as the next.
  Nanos since_sent{0};
  std::uint64_t received = 0;       // Bytes, since the connection was established.
  std::uint64_t sent = 0;           // Bytes sent and acknowledged.
  std::uint64_t unsent = 0;         // Bytes in the kernel's queue.
  Nanos round_trip{0};              // Smoothed.
  std::uint32_t retransmitted = 0;  // Segments.
};
// Returns nullopt if it is not TCP or has no socket. Makes one system call.
SPATE_EXPORT std::optional<TcpInfo> tcp_info(const Stream& stream);

// Not for programs.
using ShowStream = void (*)(void* context, const Stream& stream);
SPATE_EXPORT void show_streams(Loop& loop, ShowStream show, void* context);

// Calls `visit` with each Stream of the loop, in no order. This includes Streams that were
// destroyed and are not yet done, and closed ones that are not yet destroyed. `visit` must not run
// the loop, nor make or destroy a Stream of it (asserted).
template <class Visit>
  requires std::is_invocable_v<Visit&, const Stream&>
void for_each_stream(Loop& loop, Visit&& visit) {
  show_streams(
      loop,
      [](void* context, const Stream& stream) {
        (*static_cast<std::remove_reference_t<Visit>*>(context))(stream);
      },
      const_cast<void*>(static_cast<const void*>(&visit)));
}

}  // namespace spate
