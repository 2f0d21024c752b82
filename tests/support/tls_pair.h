// Two Streams that carry TLS, over two plain ones.
#pragma once

#include <chrono>
#include <string_view>
#include <utility>

#include "spate/loop.h"
#include "spate/net/tls.h"
#include "tls/testing/certificates.h"

namespace spate::testing {

// The results of a handshake on both sides.
struct Handshake {
  TlsResult<Stream> client = std::unexpected(TlsFailure{});
  TlsResult<Stream> server = std::unexpected(TlsFailure{});
  int calls = 0;
};

// Shakes hands over `plain`, the client's side and the server's. Returns when both sides have their
// result, or after 30 seconds.
inline Handshake shake_hands(Loop& loop, std::pair<Stream, Stream> plain, const TlsContext& client,
                             const TlsContext& server, std::string_view host = "localhost") {
  Handshake shaken;
  const Connecting ours =
      start_tls(std::move(plain.first), client, host, [&](TlsResult<Stream> stream) {
        shaken.client = std::move(stream);
        ++shaken.calls;
      });
  const Connecting theirs = accept_tls(std::move(plain.second), server, [&](auto stream) {
    shaken.server = std::move(stream);
    ++shaken.calls;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (shaken.calls < 2 && std::chrono::steady_clock::now() < end) loop.run(Run::no_wait);
  return shaken;
}

}  // namespace spate::testing
