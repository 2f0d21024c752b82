// Looking at the Streams of a loop from outside: for diagnosis. Nothing is kept for it; it costs
// when it is called.
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
  peer_ended,  // The peer sends no more; our side is open.
  ending,      // Our side ends once what is queued has been sent.
  ended,       // Our side has ended; the peer's has not.
  closing,     // Closed or destroyed, and waits for its queue or its peer.
  failed,      // Its error is about to be told.
  closed,      // on_closed() is due or was called, or there is none; the Stream is still there.
};
inline constexpr std::size_t kStreamStates = 8;
SPATE_EXPORT std::string_view name_of(StreamState state);  // "open", "peer ended", ...

struct StreamInfo {
  StreamState state = StreamState::closed;
  bool is_started = false;  // It has a handler.
  bool is_paused = false;
  bool is_full = false;
  bool has_owner = false;  // Else it was destroyed, and sends what is left.
  std::size_t queued = 0;  // Bytes: as Stream::queued(), and that of Stream::unread().
  std::size_t unread = 0;
  Nanos age{0};  // Since it was made, or began to connect: in steps of about a second.
  // As long as it is there no other Stream of the process has it: RunningCallback::watcher.
  const void* id = nullptr;
};
// Of an empty Stream: closed.
SPATE_EXPORT StreamInfo stream_info(const Stream& stream);

// What the kernel knows of a TCP connection. One system call.
struct TcpInfo {
  Nanos since_received{0};  // In milliseconds, as the next.
  Nanos since_sent{0};
  std::uint64_t received = 0;       // Bytes, of the connection's life.
  std::uint64_t sent = 0;           // And acknowledged.
  std::uint64_t unsent = 0;         // In the kernel's queue.
  Nanos round_trip{0};              // Smoothed.
  std::uint32_t retransmitted = 0;  // Segments.
};
// Nothing, if it is not TCP or has no socket.
SPATE_EXPORT std::optional<TcpInfo> tcp_info(const Stream& stream);

// Not for programs.
using ShowStream = void (*)(void* context, const Stream& stream);
SPATE_EXPORT void show_streams(Loop& loop, ShowStream show, void* context);

// Calls `visit` with each Stream of the loop, in no order: also with those that were destroyed and
// are not yet done, and those that have closed and are not yet destroyed. `visit` must not run the
// loop, nor make or destroy a Stream of it (asserted).
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
