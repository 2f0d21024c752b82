// OpenSSL as the engine of a TLS connection (compat/libevent/bufferevent/tls.h).
#pragma once

#include "compat/libevent/bufferevent/tls.h"

namespace spate::libevent {

extern const TlsEngine kOpensslEngine;

}  // namespace spate::libevent
