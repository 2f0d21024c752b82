// spate_net.h: connections, listeners, datagrams and names on a loop of spate.h, for C.
//
// Ownership: the structs are opaque; whoever creates one destroys it. Destroying is allowed
// anywhere, in its own callbacks too, and cancels: nothing is called after it. The loop may go
// first; what is left is then closed, and still has to be destroyed. Tables of callbacks and what
// is in them stay the caller's, unchanged, as long as something uses them.
// Threads: the loop's thread only; addresses are plain values. Callbacks come from the loop, never
// from inside a call, and must return (see spate.h), in batches too. Inside them everything is
// allowed. Any member of a table may be NULL.
// Errors and times: as in spate.h. What <spate/net/...> says of the classes of these names holds.
#pragma once

#include "spate.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- addresses

typedef struct spate_address {
  uint64_t system_[14];
  uint64_t size_;
} spate_address;

// "192.0.2.1:80", "[2001:db8::1]:80", "unix:/run/s.sock", "unix:@name"; see spate/net/address.h.
// Errors: EINVAL, ERANGE (the port), ENODEV, ENAMETOOLONG.
SPATE_API int spate_address_parse(spate_address* address, const char* text);
// The same, or a port alone, which is that of any address.
SPATE_API int spate_address_parse_listen(spate_address* address, const char* text);
// From a struct sockaddr, and as one. Errors: EAFNOSUPPORT, EINVAL.
SPATE_API int spate_address_from_system(spate_address* address, const void* from, size_t size);
SPATE_API const void* spate_address_system(const spate_address* address, size_t* size);
// Into `text`, of `size` bytes, 128 of which are enough; returns `text`.
SPATE_API const char* spate_address_text(const spate_address* address, char* text, size_t size);
SPATE_API uint16_t spate_address_port(const spate_address* address);

// ---- streams

typedef struct spate_stream spate_stream;

typedef struct spate_stream_callbacks {
  size_t size;  // Of this struct, as the program was compiled with it.
  // Bytes from the peer, valid until it returns how many it has used: the rest comes again,
  // together with what follows. NULL: all are discarded.
  size_t (*on_data)(spate_stream* stream, const void* bytes, size_t size);
  void (*on_end)(spate_stream* stream);        // The peer has ended its side.
  void (*on_connected)(spate_stream* stream);  // After spate_stream_connect().
  void (*on_drained)(spate_stream* stream);    // The queue was full, and is down to `low`.
  // The last call, once: 0 if both sides have ended, else the reason.
  void (*on_closed)(spate_stream* stream, int error);
} spate_stream_callbacks;

// Times: 0 is none.
typedef struct spate_connect_options {
  size_t size;
  int64_t timeout;             // In total; SPATE_E_CONNECT_TIMEOUT.
  const spate_address* local;  // To bind to, or NULL.
  int64_t attempt_delay;       // Before the next address is tried; 0: 250 ms.
} spate_connect_options;

// Limits of what is queued, in bytes: low <= high <= max.
typedef struct spate_queue_limits {
  size_t low;
  size_t high;
  size_t max;
  size_t max_unread;  // How much on_data() may leave unused when more arrives.
} spate_queue_limits;

// Takes over a connected socket, a pipe's end, .... Errors, with which `fd` stays the caller's:
// EBADF, ENOMEM.
SPATE_API int spate_stream_adopt(spate_stream** stream, spate_loop* loop, int fd);
// Two that are connected to each other. Errors: EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_stream_pair(spate_stream** near, spate_stream** far, spate_loop* loop);
// Connects to a host by name, racing its addresses (RFC 8305), or to an address; open for writing
// at once. If it fails, on_closed() says why. `options` may be NULL. Errors: EINVAL, ENOMEM.
SPATE_API int spate_stream_connect(spate_stream** stream, spate_loop* loop, const char* host,
                                   uint16_t port, const spate_stream_callbacks* callbacks,
                                   void* data, const spate_connect_options* options);
SPATE_API int spate_stream_connect_to(spate_stream** stream, spate_loop* loop,
                                      const spate_address* address,
                                      const spate_stream_callbacks* callbacks, void* data,
                                      const spate_connect_options* options);
// Closes gracefully: what is queued is still sent. NULL is allowed.
SPATE_API void spate_stream_destroy(spate_stream* stream);

// Sets the callbacks, and starts reading. Error: EINVAL.
SPATE_API int spate_stream_start(spate_stream* stream, const spate_stream_callbacks* callbacks,
                                 void* data);
SPATE_API void* spate_stream_data(const spate_stream* stream);
SPATE_API void spate_stream_set_data(spate_stream* stream, void* data);
SPATE_API spate_loop* spate_stream_loop(const spate_stream* stream);

// Sends all of it, in order, or nothing. Errors: EPIPE if it is not writable; SPATE_E_QUEUE_FULL;
// ENOMEM.
SPATE_API int spate_stream_write(spate_stream* stream, const void* bytes, size_t size);
SPATE_API size_t spate_stream_queued(const spate_stream* stream);
SPATE_API int spate_stream_is_full(const spate_stream* stream);
SPATE_API int spate_stream_is_open(const spate_stream* stream);
// Errors: EINVAL, ENOMEM.
SPATE_API int spate_stream_set_limits(spate_stream* stream, const spate_queue_limits* limits);
SPATE_API void spate_stream_pause(spate_stream* stream);
SPATE_API void spate_stream_resume(spate_stream* stream);
// on_data() comes again when there are `size` bytes. Error: ENOMEM.
SPATE_API int spate_stream_want(spate_stream* stream, size_t size);

// Ends our side once the queue is sent; reading goes on.
SPATE_API void spate_stream_end(spate_stream* stream);
// As destroy, but on_closed() is called when it is done.
SPATE_API void spate_stream_close(spate_stream* stream);
// Resets the connection; nothing is called after it.
SPATE_API void spate_stream_abort(spate_stream* stream);
// 1: our side stays open after the peer's end.
SPATE_API void spate_stream_set_half_open(spate_stream* stream, int half_open);

// Closed with SPATE_E_DEADLINE, IDLE_TIMEOUT, READ_TIMEOUT, WRITE_TIMEOUT; 0 is none. Error:
// ENOMEM.
SPATE_API int spate_stream_set_deadline(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_idle_timeout(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_read_timeout(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_write_timeout(spate_stream* stream, int64_t timeout);

SPATE_API int spate_stream_fd(const spate_stream* stream);
SPATE_API void spate_stream_local_address(const spate_stream* stream, spate_address* address);
SPATE_API void spate_stream_peer_address(const spate_stream* stream, spate_address* address);
// Gives the descriptor away. Errors: EBUSY while something is queued or unread; EBADF if closed.
SPATE_API int spate_stream_release(spate_stream* stream);

// ---- listeners

typedef struct spate_listener spate_listener;
// `stream` is the callback's, to be started, or destroyed.
typedef void spate_accept_fn(spate_listener* listener, spate_stream* stream,
                             const spate_address* peer);

// Zero is the default of each.
typedef struct spate_listen_options {
  size_t size;
  int backlog;             // 4096.
  int accepts_per_turn;    // 64.
  size_t max_connections;  // Without a limit.
  int reuse_port;          // 1: share the port with others that set it.
  int v6_only;             // 1: an IPv6 socket accepts no IPv4.
} spate_listen_options;

// Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL, ENOENT, EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_listen(spate_listener** listener, spate_loop* loop,
                           const spate_address* address, spate_accept_fn* on_accept, void* data,
                           const spate_listen_options* options);
// Resets what is in the backlog. NULL is allowed.
SPATE_API void spate_listener_destroy(spate_listener* listener);
SPATE_API void* spate_listener_data(const spate_listener* listener);
SPATE_API void spate_listener_pause(spate_listener* listener);
SPATE_API void spate_listener_resume(spate_listener* listener);
// Accepts what is in the backlog, and closes.
SPATE_API void spate_listener_close(spate_listener* listener);
SPATE_API void spate_listener_address(const spate_listener* listener, spate_address* address);
SPATE_API size_t spate_listener_connections(const spate_listener* listener);

// ---- datagrams

typedef struct spate_datagram spate_datagram;

typedef struct spate_packet {
  const void* bytes;
  size_t size;
  const spate_address* peer;
  int truncated;  // 1: it was longer than there was room for.
  int reserved;
} spate_packet;

typedef struct spate_datagram_callbacks {
  size_t size;
  // One packet, valid until it returns.
  void (*on_packet)(spate_datagram* datagram, const spate_packet* packet);
  void (*on_error)(spate_datagram* datagram, int error);
  void (*on_writable)(spate_datagram* datagram);  // There may be room again.
} spate_datagram_callbacks;

// `packet_size`: longer packets are cut; 0: 2048. Errors: as spate_listen().
SPATE_API int spate_datagram_create(spate_datagram** datagram, spate_loop* loop,
                                    const spate_address* local, size_t packet_size);
SPATE_API void spate_datagram_destroy(spate_datagram* datagram);
// Starts receiving. Error: EINVAL.
SPATE_API int spate_datagram_start(spate_datagram* datagram,
                                   const spate_datagram_callbacks* callbacks, void* data);
SPATE_API void* spate_datagram_data(const spate_datagram* datagram);
SPATE_API void spate_datagram_pause(spate_datagram* datagram);
SPATE_API void spate_datagram_resume(spate_datagram* datagram);
// To `peer`, or, if NULL, to the connected one. Errors: EAGAIN, ENOBUFS when there is no room;
// EMSGSIZE, EDESTADDRREQ, ....
SPATE_API int spate_datagram_send(spate_datagram* datagram, const void* bytes, size_t size,
                                  const spate_address* peer);
SPATE_API int spate_datagram_connect(spate_datagram* datagram, const spate_address* peer);
SPATE_API void spate_datagram_local_address(const spate_datagram* datagram, spate_address* address);
SPATE_API int spate_datagram_fd(const spate_datagram* datagram);

// ---- names

typedef struct spate_resolving spate_resolving;
// Called once: with `count` addresses, best first, valid until it returns; or with an error.
typedef void spate_resolved_fn(spate_resolving* resolving, int error,
                               const spate_address* addresses, size_t count);

// `timeout`: 0 leaves it to the system's configuration. Error: ENOMEM.
SPATE_API int spate_resolve(spate_resolving** resolving, spate_loop* loop, const char* host,
                            uint16_t port, int64_t timeout, spate_resolved_fn* callback,
                            void* data);
// Cancels, if it has not been called. Before or after the call, or in it.
SPATE_API void spate_resolving_destroy(spate_resolving* resolving);
SPATE_API void* spate_resolving_data(const spate_resolving* resolving);

#ifdef __cplusplus
}
#endif
