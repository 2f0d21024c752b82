// Bufferevents that speak TLS, on a socket or through another bufferevent.
//
// Semantics: event2/bufferevent_ssl.h; probed: the times of reads, writes and callbacks.
//
// libevent_openssl, a separate shared object, contains the calls of OpenSSL, so that other programs
// do not load OpenSSL: it gives each connection an engine, and this library has the rest. It needs
// only the three functions at the end beyond the headers; they are exported for it alone, and both
// libraries come from one build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compat/libevent/bufferevent/socket.h"

struct ssl_st;

namespace spate::libevent {

struct TlsConnection;

// The result of one call of an engine.
struct [[nodiscard]] TlsStep {
  enum class Kind : std::uint8_t { done, wants_read, wants_write, ended };
  Kind kind;
  short event;  // The kind of end: BEV_EVENT_EOF or BEV_EVENT_ERROR.
  int count;    // Bytes read or written.
};

// The newest are returned first; those that find no room are dropped.
class TlsErrors {
 public:
  void clear() { count_ = 0; }
  void put(unsigned long error) {
    if (count_ < errors_.size()) errors_[count_++] = error;
  }
  unsigned long take() { return count_ != 0 ? errors_[--count_] : 0; }

 private:
  std::array<unsigned long, 3> errors_;
  std::size_t count_;
};

// The interface of a TLS library. Each call stores its errors in the connection's.
struct TlsEngine {
  // Resets the last connection. Returns false if the engine cannot.
  bool (*reset)(TlsConnection& connection);
  // Called before each connection's first handshake.
  void (*begin)(TlsConnection& connection);
  TlsStep (*handshake)(TlsConnection& connection);
  void (*renegotiate)(TlsConnection& connection);
  TlsStep (*read)(TlsConnection& connection, void* target, int most);
  TlsStep (*write)(TlsConnection& connection, const void* bytes, int count);
  // Returns true if more data is decoded than was read; the descriptor does not report this.
  bool (*has_pending)(const TlsConnection& connection);
  // Bytes on the wire since the connection began.
  std::uint64_t (*wire_read)(const TlsConnection& connection);
  std::uint64_t (*wire_written)(const TlsConnection& connection);
  // Returns false if it is not available; -1 for none.
  bool (*use_fd)(TlsConnection& connection, evutil_socket_t fd);
  void (*free)(TlsConnection& connection);
};

enum class TlsState : std::uint8_t { open, connecting, accepting };

// Lies in zeroed memory, as all kinds.
struct TlsConnection : SocketConnection {
  const TlsEngine* engine;
  ssl_st* ssl;
  Connection* below;  // Null on a socket.
  TlsErrors errors;
  std::uint64_t counted_read;  // Bytes on the wire already counted.
  std::uint64_t counted_written;
  short handshake_waits;  // For EV_READ, or EV_WRITE. 0 before its first step.
  int write_to_repeat;    // The size of a write that the engine could not finish.
  TlsState state;
  TlsState role;  // The state before the handshake.
  bool allows_dirty_shutdown;
  bool reading_waits_to_write;
  bool writing_waits_to_read;
  bool has_read_all;  // The peer has sent close_notify. It may still be written to.
  bool has_failed;    // Input that arrived may be read; nothing else is possible.
};

struct TlsPlan {
  event_base* base;
  bufferevent* below;  // This,
  evutil_socket_t fd;  // or this.
  const TlsEngine* engine;
  ssl_st* ssl;
  TlsState state;
  int options;
};

// ---- transferring data (tls_transfer.cc)

void tls_handshake(TlsConnection& connection);
void tls_read(TlsConnection& connection);
void tls_write(TlsConnection& connection);
// Starts the events that the program enabled; a handshake continues.
void tls_start(TlsConnection& connection, short what);
// Waits for what the handshake needs next, or before its first step for the events `otherwise`.
void tls_await_handshake(TlsConnection& connection, short otherwise);

}  // namespace spate::libevent

extern "C" {
// Returns null if the options are incompatible, or memory runs out; the engine has freed nothing
// then.
[[gnu::visibility("default")]] bufferevent* spate_bufferevent_tls_new(
    const spate::libevent::TlsPlan& plan);
// Returns null if it is of another kind.
[[gnu::visibility("default")]] spate::libevent::TlsConnection* spate_bufferevent_tls_of(
    bufferevent* bev);
// Begins another handshake on an open connection: returns 1 if it finished at once, -1 if it cannot
// begin.
[[gnu::visibility("default")]] int spate_bufferevent_tls_renegotiate(
    spate::libevent::TlsConnection& connection);
}
