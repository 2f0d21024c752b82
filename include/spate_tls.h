// spate_tls.h: TLS 1.2 and 1.3 below a spate_stream, on either side, for C. Programs link to
// libspate_tls, too, which needs OpenSSL.
//
// A stream that carries TLS is used as any other. What differs: the peer's end is an end only if
// the peer has said so (else SPATE_E_TLS_TRUNCATED), and its descriptor is not for reading.
//
// Ownership: a context is the caller's; it may go before the streams made with it.
// Threads: a context may be used from any thread; a stream as in spate_net.h.
// Callbacks: called once, from the loop. Inside them everything is allowed.
#pragma once

#include "spate_net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spate_tls_context spate_tls_context;

typedef enum spate_tls_client_check {
  SPATE_TLS_CLIENT_NONE,      // A client is not asked for a certificate.
  SPATE_TLS_CLIENT_OPTIONAL,  // Without one it goes on.
  SPATE_TLS_CLIENT_REQUIRED
} spate_tls_client_check;

// Zero is the default of each. Texts and files are PEM; of each, one or the other.
typedef struct spate_tls_options {
  size_t size;
  // Our certificate, with its chain, and its key: a server's, or a client's that is asked.
  const char* chain_file;
  const char* chain;
  const char* key_file;
  const char* key;
  // Who may have issued the peer's certificate. A client trusts those of the system besides,
  // unless `without_system_cas` is 1.
  const char* ca_file;
  const char* ca;
  int without_system_cas;
  spate_tls_client_check client_check;  // A server's.
  const char* alpn;           // Protocols above TLS, the one preferred first: "h2,http/1.1".
  int64_t handshake_timeout;  // 0: 10 s.
} spate_tls_options;

// Errors: SPATE_E_TLS_CERTIFICATE for what cannot be read, or does not belong together; EINVAL;
// ENOENT, EACCES, ... for files; ENOMEM. What OpenSSL says about it is put into `why`, of `size`
// bytes, which may be NULL and 0.
SPATE_API int spate_tls_server(spate_tls_context** context, const spate_tls_options* options,
                               char* why, size_t size);
SPATE_API int spate_tls_client(spate_tls_context** context, const spate_tls_options* options,
                               char* why, size_t size);
// Any time; NULL is allowed.
SPATE_API void spate_tls_context_destroy(spate_tls_context* context);

// The stream carries TLS, and is to be started; or the handshake has failed, and it is closed:
// `error` is not 0, and `why` is a text for a log.
typedef void spate_secured_fn(spate_stream* stream, int error, const char* why);

// Shakes hands: as the server, on a stream that was accepted; as the client of `host`, a name or an
// IP address, on one that is connected. It is called with nothing else meanwhile. Destroying it
// cancels. Errors of the callback: EBUSY if something is unread or unsent; SPATE_E_DEADLINE;
// SPATE_E_TLS_CERTIFICATE; SPATE_E_TLS_HANDSHAKE for all else that the two do not agree on; EINVAL
// for a context of the other side; ENOMEM. Of the functions: EBADF if it is not open; ENOMEM, and
// it is closed.
SPATE_API int spate_stream_accept_tls(spate_stream* stream, const spate_tls_context* context,
                                      spate_secured_fn* callback);
SPATE_API int spate_stream_start_tls(spate_stream* stream, const spate_tls_context* context,
                                     const char* host, spate_secured_fn* callback);

#ifdef __cplusplus
}
#endif
