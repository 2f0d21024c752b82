// The memory of nghttp2: for each request it takes some ten blocks, which the thread keeps for the
// next one.
#pragma once

#include <nghttp2/nghttp2.h>

namespace spate::http {

// Of all sessions; nghttp2 does not change it.
nghttp2_mem* memory_of_nghttp2();

}  // namespace spate::http
