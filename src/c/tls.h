// spate_tls_context; src/tls makes them.
#pragma once

#include "spate/net/tls.h"
#include "spate_tls.h"

struct spate_tls_context {
  spate::TlsContext context;
};
