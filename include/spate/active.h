// for_each_active(): lists everything that keeps a loop alive, under the names that programs use.
//
//   spate::for_each_active(loop, [](const spate::ActiveInfo& info) {
//     std::println(stderr, "{} {} fd={}", spate::name_of(info.kind), info.label, info.fd);
//   });
//
// It answers why run() does not return. The watchers of a Stream, a Listener, a look-up or an
// http::Call are listed as one entry of that kind. No state is kept for it: it costs time and
// memory only when it is called.
//
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "spate/export.h"
#include "spate/time.h"

namespace spate {

class Loop;

enum class ActiveKind : std::uint8_t {
  io,             // Io.
  timer,          // Timer, and any other watcher that is a deadline.
  periodic,       // Periodic.
  signal,         // Signal.
  child,          // Child; a process of spawn().
  stat,           // Stat.
  watch,          // Watch.
  async,          // Async.
  prepare,        // Prepare.
  check,          // Check.
  idle,           // Idle.
  once,           // Loop::once().
  after,          // Loop::after().
  deferred,       // Loop::defer(): queued, not called yet.
  posted,         // Loop::post(): queued, not called yet.
  stream,         // Stream, also one that was closed and still sends its queue.
  listener,       // Listener, the Listener of a Server, or Workers.
  datagram,       // Datagram.
  connecting,     // connect(), Stream::connect(), or for an http::Client.
  reconnecting,   // spate::Client, between two attempts.
  name_lookup,    // resolve(), or the look-up of a connect().
  tls_handshake,  // A TLS handshake.
  relay,          // relay().
  offload,        // offload(): the work, or its completion, is not done.
  sleep,          // coro::sleep().
  http_server,    // http::Server: its deadlines, or its drain().
  http_request,   // A connection to an http::Server.
  http_client,    // A connection of an http::Client that is in use.
  http_call,      // http::Call: its deadline.
  websocket,      // A WebSocket connection.
  inspector,      // http::Inspector, while it has viewers.
  reference,      // Loop::ref(), and what libraries count by it. Negative: Loop::unref().
};
SPATE_EXPORT std::string_view name_of(ActiveKind kind);  // "listener", "name look-up", ...

struct ActiveInfo {
  ActiveKind kind{};
  // A local address (listener, datagram), a peer address (stream), host names (name_lookup), a
  // path, a process number, a signal number, a method and a URL (http_call); otherwise empty.
  std::string label{};
  int fd = -1;                 // -1 if it has none.
  std::optional<Nanos> due{};  // Its next deadline, in loop time.
  // How much of Loop::active_count() it is: the number of its active watchers. Zero for `deferred`
  // and `posted`, which keep run() from returning, but only for a turn.
  std::int64_t count = 1;
  const void* id = nullptr;  // Unique among the entries of a kind; a watcher's address.
};

// Not for programs.
using ShowActive = void (*)(void* context, const ActiveInfo& info);
SPATE_EXPORT void show_active(Loop& loop, ShowActive show, void* context);

// Calls `visit` with each entry, in the order of ActiveKind. The sum of the counts is
// Loop::active_count(). Idle connections of an http::Client, on_signal() and paused Streams are not
// listed, because they do not keep the loop alive. Inside `visit` everything is allowed: the list
// was made before the first call.
template <class Visit>
  requires std::is_invocable_v<Visit&, const ActiveInfo&>
void for_each_active(Loop& loop, Visit&& visit) {
  show_active(
      loop,
      [](void* context, const ActiveInfo& info) {
        (*static_cast<std::remove_reference_t<Visit>*>(context))(info);
      },
      const_cast<void*>(static_cast<const void*>(&visit)));
}

}  // namespace spate
