// The allocator for nghttp2: it needs some ten blocks per request, which the thread caches for the
// next one.
#pragma once

#include <nghttp2/nghttp2.h>

namespace spate::http {

// Shared by all sessions; nghttp2 does not change it.
nghttp2_mem* memory_of_nghttp2();

}  // namespace spate::http
