// Bufferevents that speak TLS, on a socket or through another bufferevent.
//
// Semantics: event2/bufferevent_ssl.h; when what is read, written and told: probes.
//
// What OpenSSL does is in libevent_openssl, a shared object of its own, so that other programs do
// not load OpenSSL: it gives each connection an engine, and this library has the rest. The three
// functions at the end are all that it needs of what the headers do not declare; they are exported
// for it alone, and both libraries come from one build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compat/libevent/bufferevent/socket.h"

struct ssl_st;

namespace spate::libevent {

struct TlsConnection;

// What came of one call of an engine.
struct TlsStep {
  enum class Kind : std::uint8_t { done, wants_read, wants_write, ended };
  Kind kind;
  short event;  // How it has ended: BEV_EVENT_EOF or BEV_EVENT_ERROR.
  int count;    // Bytes read or written.
};

// The newest are handed out first; those that find no room are forgotten.
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

// The part of a TLS library. Each call puts its errors into those of the connection.
struct TlsEngine {
  // Before the first handshake, and before that on another descriptor.
  void (*begin)(TlsConnection& connection);
  TlsStep (*handshake)(TlsConnection& connection);
  void (*renegotiate)(TlsConnection& connection);
  TlsStep (*read)(TlsConnection& connection, void* target, int most);
  TlsStep (*write)(TlsConnection& connection, const void* bytes, int count);
  // More has arrived than was read. The descriptor does not tell.
  bool (*has_pending)(const TlsConnection& connection);
  // Bytes on the wire, since ever.
  std::uint64_t (*wire_read)(const TlsConnection& connection);
  std::uint64_t (*wire_written)(const TlsConnection& connection);
  // False if it cannot be had. -1 for none.
  bool (*use_fd)(TlsConnection& connection, evutil_socket_t fd);
  void (*free)(TlsConnection& connection);
};

enum class TlsState : std::uint8_t { open, connecting, accepting };

// Of zeroed memory, as all.
struct TlsConnection : SocketConnection {
  const TlsEngine* engine;
  ssl_st* ssl;
  Connection* below;  // Null on a socket.
  TlsErrors errors;
  std::uint64_t counted_read;  // Of the bytes on the wire.
  std::uint64_t counted_written;
  short handshake_waits;  // For EV_READ, or EV_WRITE.
  int write_to_repeat;    // The size of a write that the engine could not finish.
  TlsState state;
  TlsState role;  // What it was before it was open.
  bool allows_dirty_shutdown;
  bool reading_waits_to_write;
  bool writing_waits_to_read;
  bool has_read_all;  // The peer has said goodbye. It may still be written to.
  bool has_failed;    // What has arrived may be taken, and that is all.
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

// ---- what moves bytes (tls_transfer.cc)

void tls_handshake(TlsConnection& connection);
void tls_read(TlsConnection& connection);
void tls_write(TlsConnection& connection);
// What a program has enabled begins; a handshake goes on.
void tls_start(TlsConnection& connection, short what);
void tls_await_handshake(TlsConnection& connection);

}  // namespace spate::libevent

extern "C" {
// Null if the options do not go together, or memory runs out; the engine has freed nothing then.
[[gnu::visibility("default")]] bufferevent* spate_bufferevent_tls_new(
    const spate::libevent::TlsPlan& plan);
// Null if it is of another kind.
[[gnu::visibility("default")]] spate::libevent::TlsConnection* spate_bufferevent_tls_of(
    bufferevent* bev);
// Begins another handshake on an open connection: 1 if it is over already, -1 if it cannot.
[[gnu::visibility("default")]] int spate_bufferevent_tls_renegotiate(
    spate::libevent::TlsConnection& connection);
}
