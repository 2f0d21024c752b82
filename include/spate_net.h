// spate_net.h: connections, listeners, datagrams, names and directory trees on a loop of spate.h,
// for C.
//
// Ownership: the structs are opaque; the program that creates one must destroy it. Destroying is
// allowed anywhere, also in its own callbacks, and cancels: nothing is called after it. The loop
// may be destroyed first; objects that are left are then closed, and must still be destroyed.
// Tables of callbacks stay the caller's, and must not change while an object uses them.
// Threads: the loop's thread only; addresses are plain values. Callbacks come from the loop, never
// from inside a call, and must return (see spate.h), with batches too. Inside them everything is
// allowed. Any member of a table may be NULL.
// Errors and times: as in spate.h. Functions that list EINVAL return it also for a text, an
// address, a table or a callback that is NULL, unless NULL is allowed there. The documentation of
// the classes of the same names, in <spate/net/...> and <spate/watch.h>, applies.
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

// Parses "192.0.2.1:80", "[2001:db8::1]:80", "unix:/run/s.sock", "unix:@name"; see
// spate/net/address.h. Errors: EINVAL, ERANGE (the port), ENODEV, ENAMETOOLONG.
SPATE_API int spate_address_parse(spate_address* address, const char* text);
// As above, or a port alone, which means any address.
SPATE_API int spate_address_parse_listen(spate_address* address, const char* text);
// Convert from and to a struct sockaddr. Errors: EAFNOSUPPORT, EINVAL.
SPATE_API int spate_address_from_system(spate_address* address, const void* from, size_t size);
SPATE_API const void* spate_address_system(const spate_address* address, size_t* size);
// Formats the address into `text`, of `size` bytes (128 suffice), and returns `text`.
SPATE_API const char* spate_address_text(const spate_address* address, char* text, size_t size);
SPATE_API uint16_t spate_address_port(const spate_address* address);

// ---- streams

typedef struct spate_stream spate_stream;

typedef struct spate_stream_callbacks {
  size_t size;  // sizeof() the struct when the program was compiled.
  // Receives bytes from the peer, valid until it returns how many it has used. The rest is passed
  // in again, together with the bytes that follow. NULL: all are discarded.
  size_t (*on_data)(spate_stream* stream, const void* bytes, size_t size);
  void (*on_end)(spate_stream* stream);        // The peer ended its side.
  void (*on_connected)(spate_stream* stream);  // After spate_stream_connect().
  void (*on_drained)(spate_stream* stream);    // The queue was full, and has fallen to `low`.
  // Called last, exactly once: 0 if both sides ended, otherwise the reason.
  void (*on_closed)(spate_stream* stream, int error);
} spate_stream_callbacks;

// Times: 0 is none.
typedef struct spate_connect_options {
  size_t size;
  int64_t timeout;             // Total; SPATE_E_CONNECT_TIMEOUT.
  const spate_address* local;  // To bind to, or NULL.
  int64_t attempt_delay;       // Before the next address is tried; 0: 250 ms.
} spate_connect_options;

// Limits of the send queue, in bytes: low <= high <= max.
typedef struct spate_queue_limits {
  size_t low;
  size_t high;
  size_t max;
  size_t max_unread;  // How many bytes on_data() may leave unused.
} spate_queue_limits;

// Takes ownership of a connected socket, a pipe's end, .... On an error `fd` stays the caller's.
// Errors: EBADF, ENOMEM.
SPATE_API int spate_stream_adopt(spate_stream** stream, spate_loop* loop, int fd);
// Makes two streams connected to each other. Errors: EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_stream_pair(spate_stream** near, spate_stream** far, spate_loop* loop);
// Connects to a host by name, racing its addresses (RFC 8305), or to an address. The stream is open
// for writing at once. If the attempt fails, on_closed() gets the reason. `options` may be NULL.
// Errors: EINVAL, ENOMEM.
SPATE_API int spate_stream_connect(spate_stream** stream, spate_loop* loop, const char* host,
                                   uint16_t port, const spate_stream_callbacks* callbacks,
                                   void* data, const spate_connect_options* options);
SPATE_API int spate_stream_connect_to(spate_stream** stream, spate_loop* loop,
                                      const spate_address* address,
                                      const spate_stream_callbacks* callbacks, void* data,
                                      const spate_connect_options* options);
// Closes gracefully: queued bytes are still sent. NULL is allowed.
SPATE_API void spate_stream_destroy(spate_stream* stream);

// Sets the callbacks, and starts reading. If the stream closed before, on_closed() is called from
// the loop. Errors: EINVAL; EBADF while a handshake runs, and after it failed.
SPATE_API int spate_stream_start(spate_stream* stream, const spate_stream_callbacks* callbacks,
                                 void* data);
SPATE_API void* spate_stream_data(const spate_stream* stream);
SPATE_API void spate_stream_set_data(spate_stream* stream, void* data);
SPATE_API spate_loop* spate_stream_loop(const spate_stream* stream);

// Sends all bytes, in order, or none. Errors: EPIPE if it is not writable; SPATE_E_QUEUE_FULL;
// ENOMEM.
SPATE_API int spate_stream_write(spate_stream* stream, const void* bytes, size_t size);
SPATE_API size_t spate_stream_queued(const spate_stream* stream);
SPATE_API int spate_stream_is_full(const spate_stream* stream);
SPATE_API int spate_stream_is_open(const spate_stream* stream);
// Errors: EINVAL, ENOMEM.
SPATE_API int spate_stream_set_limits(spate_stream* stream, const spate_queue_limits* limits);
SPATE_API void spate_stream_pause(spate_stream* stream);
SPATE_API void spate_stream_resume(spate_stream* stream);
// Calls on_data() again when `size` bytes are there. Error: ENOMEM.
SPATE_API int spate_stream_want(spate_stream* stream, size_t size);

// Ends our side once the queue is sent; reading continues.
SPATE_API void spate_stream_end(spate_stream* stream);
// As destroy, and calls on_closed() when done.
SPATE_API void spate_stream_close(spate_stream* stream);
// Resets the connection. Nothing is called after it.
SPATE_API void spate_stream_abort(spate_stream* stream);
// Sets whether our side stays open after the peer's end (1).
SPATE_API void spate_stream_set_half_open(spate_stream* stream, int half_open);

// Close with SPATE_E_DEADLINE, IDLE_TIMEOUT, READ_TIMEOUT, WRITE_TIMEOUT; 0 is none. Error: ENOMEM.
SPATE_API int spate_stream_set_deadline(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_idle_timeout(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_read_timeout(spate_stream* stream, int64_t timeout);
SPATE_API int spate_stream_set_write_timeout(spate_stream* stream, int64_t timeout);

// Returns the descriptor; -1 if the stream has none.
SPATE_API int spate_stream_fd(const spate_stream* stream);
SPATE_API void spate_stream_local_address(const spate_stream* stream, spate_address* address);
SPATE_API void spate_stream_peer_address(const spate_stream* stream, spate_address* address);
// Returns the descriptor, which the caller then owns. Errors: EBUSY while something is queued or
// unread; EBADF if closed.
SPATE_API int spate_stream_release(spate_stream* stream);

// ---- listeners

typedef struct spate_listener spate_listener;
// `stream` belongs to the callback, which must start or destroy it.
typedef void spate_accept_fn(spate_listener* listener, spate_stream* stream,
                             const spate_address* peer);

// Options of a listener. Zero is the default of each member.
typedef struct spate_listen_options {
  size_t size;
  int backlog;             // 4,096 by default.
  int accepts_per_turn;    // 64 by default.
  size_t max_connections;  // Unlimited by default.
  int reuse_port;          // 1: share the port with others that set it.
  int v6_only;             // 1: an IPv6 socket accepts no IPv4.
} spate_listen_options;

// Listens. `options` may be NULL. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL, ENOENT,
// EMFILE, ENFILE, ENOMEM.
SPATE_API int spate_listen(spate_listener** listener, spate_loop* loop,
                           const spate_address* address, spate_accept_fn* on_accept, void* data,
                           const spate_listen_options* options);
// Closes the socket, which resets connections in the backlog. NULL is allowed.
SPATE_API void spate_listener_destroy(spate_listener* listener);
SPATE_API void* spate_listener_data(const spate_listener* listener);
SPATE_API void spate_listener_pause(spate_listener* listener);
SPATE_API void spate_listener_resume(spate_listener* listener);
// Accepts the connections in the backlog, and closes.
SPATE_API void spate_listener_close(spate_listener* listener);
SPATE_API void spate_listener_address(const spate_listener* listener, spate_address* address);
SPATE_API size_t spate_listener_connections(const spate_listener* listener);

// ---- datagrams

typedef struct spate_datagram spate_datagram;

typedef struct spate_packet {
  const void* bytes;
  size_t size;
  const spate_address* peer;
  int truncated;  // 1: it was longer than `packet_size`.
  int reserved;
} spate_packet;

// Return more about a packet that on_packet() received, until it returns: the ECN, 0 ... 3 (RFC
// 3168), with the option `ecn`; the destination, with the option `local_address`, otherwise empty.
SPATE_API int spate_packet_ecn(const spate_packet* packet);
SPATE_API const spate_address* spate_packet_local(const spate_packet* packet);

// A packet to send.
typedef struct spate_outgoing {
  const void* bytes;
  size_t size;
  const spate_address* peer;   // NULL: the connected peer.
  const spate_address* local;  // The source, whose port is ignored; NULL: the kernel's choice.
  int has_ecn;                 // 1: `ecn` is valid; 0: the packet has the socket's.
  int ecn;                     // 0 ... 3 (RFC 3168).
  // Nonzero: up to 64 packets of `segment` bytes, of which the last may be shorter.
  size_t segment;
} spate_outgoing;

// Options of a datagram socket. Zero is the default of each member.
typedef struct spate_datagram_options {
  size_t size;
  size_t packet_size;  // Longer packets are truncated: 1 ... 65536 bytes; 2,048 by default.
  int reuse_address;   // 1: several sockets at one multicast address.
  int reuse_port;      // 1: share the port with others that set it.
  int v6_only;         // 1: an IPv6 socket carries no IPv4.
  int local_address;   // 1: for spate_packet_local().
  int ecn;             // 1: for spate_packet_ecn().
  int coalesce;        // 1: the kernel joins packets, which are split again.
  int broadcast;       // 1: allow sending to broadcast addresses.
  int dont_fragment;   // 1: routers may not split packets.
} spate_datagram_options;

typedef struct spate_datagram_callbacks {
  size_t size;
  // Receives one packet, valid until it returns.
  void (*on_packet)(spate_datagram* datagram, const spate_packet* packet);
  void (*on_error)(spate_datagram* datagram, int error);
  void (*on_writable)(spate_datagram* datagram);  // There may be room again.
} spate_datagram_callbacks;

// Makes a socket. Packets longer than `packet_size` are truncated; 0: 2048. Errors: as
// spate_listen().
SPATE_API int spate_datagram_create(spate_datagram** datagram, spate_loop* loop,
                                    const spate_address* local, size_t packet_size);
// As above, with options, which may be NULL.
SPATE_API int spate_datagram_open(spate_datagram** datagram, spate_loop* loop,
                                  const spate_address* local,
                                  const spate_datagram_options* options);
SPATE_API void spate_datagram_destroy(spate_datagram* datagram);
// Starts receiving. Error: EINVAL.
SPATE_API int spate_datagram_start(spate_datagram* datagram,
                                   const spate_datagram_callbacks* callbacks, void* data);
SPATE_API void* spate_datagram_data(const spate_datagram* datagram);
SPATE_API void spate_datagram_pause(spate_datagram* datagram);
SPATE_API void spate_datagram_resume(spate_datagram* datagram);
// Sends to `peer`, or, if NULL, to the connected one. Errors: EAGAIN, ENOBUFS when there is no
// room; EMSGSIZE, EDESTADDRREQ, ....
SPATE_API int spate_datagram_send(spate_datagram* datagram, const void* bytes, size_t size,
                                  const spate_address* peer);
// Sends packets from the front until one is refused. `*sent`, if not NULL, becomes how many were
// sent. Returns 0 if all were; otherwise the error of the first that was not: as
// spate_datagram_send(); EINVAL for a `local`, `ecn` or `segment` out of range; EOPNOTSUPP for
// `local` and `ecn` on a unix socket.
SPATE_API int spate_datagram_send_packets(spate_datagram* datagram, const spate_outgoing* packets,
                                          size_t count, size_t* sent);
// Sets the ECN of packets that do not have their own: 0 ... 3. Errors: EINVAL, EOPNOTSUPP.
SPATE_API int spate_datagram_set_ecn(spate_datagram* datagram, int ecn);
// Sets `*mtu` to the largest IP packet that the path to the connected peer is known to carry.
// Errors: ENOTCONN, EOPNOTSUPP.
SPATE_API int spate_datagram_path_mtu(const spate_datagram* datagram, size_t* mtu);
// Sets `*count` to how many packets the kernel dropped because the receive buffer was full. Error:
// ENOPROTOOPT before Linux 4.12.
SPATE_API int spate_datagram_dropped(const spate_datagram* datagram, uint32_t* count);
// Receives from `peer` only. Errors: EINVAL, and those of connect().
SPATE_API int spate_datagram_connect(spate_datagram* datagram, const spate_address* peer);
SPATE_API void spate_datagram_local_address(const spate_datagram* datagram, spate_address* address);
SPATE_API int spate_datagram_fd(const spate_datagram* datagram);

// ---- names

typedef struct spate_resolving spate_resolving;
// Called once: with `count` addresses, best first, valid until it returns; or with an error.
typedef void spate_resolved_fn(spate_resolving* resolving, int error,
                               const spate_address* addresses, size_t count);

// Looks up `host`. `timeout`: 0 leaves it to the system's configuration. Errors: EINVAL, ENOMEM.
SPATE_API int spate_resolve(spate_resolving** resolving, spate_loop* loop, const char* host,
                            uint16_t port, int64_t timeout, spate_resolved_fn* callback,
                            void* data);
// Frees the query, and cancels it if the callback was not called. Allowed before, in and after the
// callback.
SPATE_API void spate_resolving_destroy(spate_resolving* resolving);
SPATE_API void* spate_resolving_data(const spate_resolving* resolving);

// ---- directory trees

typedef struct spate_watch spate_watch;

typedef enum spate_watch_scope {
  SPATE_WATCH_TREE,       // A directory and all below it.
  SPATE_WATCH_DIRECTORY,  // A directory and its entries.
  SPATE_WATCH_FILE        // A file, which need not exist.
} spate_watch_scope;

typedef enum spate_change {
  SPATE_CHANGE_CREATED,     // Also: moved here from outside the scope.
  SPATE_CHANGE_CHANGED,     // Bytes were written, or the file was truncated.
  SPATE_CHANGE_WRITTEN,     // The file is complete: its writer closed it.
  SPATE_CHANGE_ATTRIBUTES,  // Mode, owner, times, or the number of links; with the option.
  SPATE_CHANGE_REMOVED,     // Also: moved out of the scope.
  SPATE_CHANGE_MOVED,       // Renamed from `old_path` to `path`.
  SPATE_CHANGE_READY,       // The scope is watched completely: at the start, after an overflow.
  SPATE_CHANGE_OVERFLOW,    // Events were lost: look at everything below `path` again.
  SPATE_CHANGE_UNWATCHED    // The directory `path` cannot be watched, because of `error`.
} spate_change;

typedef struct spate_watch_event {
  size_t size;       // sizeof(spate_watch_event) in the library.
  int change;        // A spate_change; a later version may have more.
  int is_directory;  // 1: `path` is a directory.
  int is_found;      // 1: found by listing a directory; it may be complete already.
  int error;         // SPATE_CHANGE_UNWATCHED only.
  // Relative to the root; "" is the root itself. With SPATE_WATCH_FILE it is the file's name.
  const char* path;
  const char* old_path;  // SPATE_CHANGE_MOVED only, otherwise NULL.
} spate_watch_event;

typedef struct spate_watch_callbacks {
  size_t size;
  // Receives one event, valid until it returns.
  void (*on_event)(spate_watch* watch, const spate_watch_event* event);
  // Called last, once, if the watch ends by itself: -ENOENT when the root was removed or moved,
  // -ENODEV when its file system was unmounted, ....
  void (*on_end)(spate_watch* watch, int error);
} spate_watch_callbacks;

// Options of a watch. Zero is the default of each member.
typedef struct spate_watch_options {
  size_t size;
  int scope;            // A spate_watch_scope.
  int existing;         // 1: report what exists, at the start and after an overflow.
  int without_changed;  // 1: do not report SPATE_CHANGE_CHANGED.
  int attributes;       // 1: report SPATE_CHANGE_ATTRIBUTES.
} spate_watch_options;

// Starts to watch `path`. `options` may be NULL. Errors: EINVAL; ENOENT, EACCES, ELOOP, ENOTDIR,
// ENAMETOOLONG; EMFILE for too many inotify instances or descriptors; ENOSPC for too many watches;
// SPATE_E_LOOP_FORKED; ENOMEM.
SPATE_API int spate_watch_start(spate_watch** watch, spate_loop* loop, const char* path,
                                const spate_watch_callbacks* callbacks, void* data,
                                const spate_watch_options* options);
// NULL is allowed.
SPATE_API void spate_watch_destroy(spate_watch* watch);
SPATE_API void* spate_watch_data(const spate_watch* watch);
// Prevents calls until spate_watch_resume(), except for the events of the same read from the
// kernel. A paused watch does not keep the loop alive.
SPATE_API void spate_watch_pause(spate_watch* watch);
SPATE_API void spate_watch_resume(spate_watch* watch);
// Returns 0 after on_end() and after the loop's destruction, otherwise 1.
SPATE_API int spate_watch_is_active(const spate_watch* watch);
// Returns the absolute path of the root, which is valid until the watch is destroyed.
SPATE_API const char* spate_watch_root(const spate_watch* watch);
// Returns "created", "changed", ...; NULL for an unknown change. Any thread.
SPATE_API const char* spate_change_name(int change);

#ifdef __cplusplus
}
#endif
