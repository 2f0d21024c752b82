// spate_tls.h: TLS 1.2 and 1.3 for a spate_stream, on either side, for C. Programs also link to
// libspate_tls, which needs OpenSSL.
//
// A stream that carries TLS is used as any other, with two differences: EOF without close_notify
// closes it with SPATE_E_TLS_TRUNCATED, and its descriptor is not for reading.
//
// Ownership: a context is the caller's; it may be destroyed before the streams made with it.
// Threads: a context may be used from any thread; a stream as in spate_net.h.
// Callbacks: called once, from the loop. Inside them everything is allowed.
#pragma once

#include "spate_net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spate_tls_context spate_tls_context;

typedef enum spate_tls_client_check {
  SPATE_TLS_CLIENT_NONE,      // No client certificate is requested.
  SPATE_TLS_CLIENT_OPTIONAL,  // Clients without one are accepted.
  SPATE_TLS_CLIENT_REQUIRED
} spate_tls_client_check;

// Options of a context. Zero is the default of each member. Texts and files are PEM; set one of
// each pair.
typedef struct spate_tls_options {
  size_t size;
  // Our certificate with its chain, and its key: for servers, and for clients if the server
  // requests one.
  const char* chain_file;
  const char* chain;
  const char* key_file;
  const char* key;
  // The issuers accepted for the peer's certificate. A client also accepts those of the system,
  // unless `without_system_cas` is 1.
  const char* ca_file;
  const char* ca;
  int without_system_cas;
  spate_tls_client_check client_check;  // For servers.
  const char* alpn;           // Application protocols, most preferred first: "h2,http/1.1".
  int64_t handshake_timeout;  // 0: 10 s.
} spate_tls_options;

// Make a context. OpenSSL's description of an error is written into `why`, of `size` bytes, which
// may be NULL and 0. Errors: SPATE_E_TLS_CERTIFICATE for a certificate or key that cannot be read,
// or that do not match; EINVAL, also for `client_check` of a client and `without_system_cas` of a
// server; ENOENT, EACCES, ... for files; ENOMEM.
SPATE_API int spate_tls_server(spate_tls_context** context, const spate_tls_options* options,
                               char* why, size_t size);
SPATE_API int spate_tls_client(spate_tls_context** context, const spate_tls_options* options,
                               char* why, size_t size);
// Destroys a context, at any time; NULL is allowed.
SPATE_API void spate_tls_context_destroy(spate_tls_context* context);

// Called after the handshake. If `error` is 0, the stream carries TLS, and must be started.
// Otherwise it is closed, and `why` is a text for a log.
typedef void spate_secured_fn(spate_stream* stream, int error, const char* why);

// Perform the handshake: as the server, on an accepted stream; as the client of `host`, a name or
// an IP address, on a connected one. Meanwhile the stream behaves as a closed one, and calls
// nothing else. Destroying it cancels. Errors of the callback: EBUSY if something is unread or
// unsent; SPATE_E_DEADLINE; SPATE_E_TLS_CERTIFICATE; SPATE_E_TLS_HANDSHAKE for all other handshake
// failures; EINVAL for a context of the other side; ENOMEM. Errors of the functions: EBADF if it is
// not open; EINVAL if an argument is NULL; ENOMEM, after which it is closed.
SPATE_API int spate_stream_accept_tls(spate_stream* stream, const spate_tls_context* context,
                                      spate_secured_fn* callback);
SPATE_API int spate_stream_start_tls(spate_stream* stream, const spate_tls_context* context,
                                     const char* host, spate_secured_fn* callback);

#ifdef __cplusplus
}
#endif
