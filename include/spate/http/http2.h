// Http2: enables HTTP/2 in a Server, beside HTTP/1.1 and with the same Service, and in a Client,
// with the same Calls (ClientOptions::http2).
//
//   ServerOptions options;
//   options.http2 = must(Http2::create());
//   options.tls = must(TlsContext::server({.identities = {...}, .alpn = {"h2", "http/1.1"}}));
//
// Over TLS it is negotiated by ALPN. Over a plain connection a client needs prior knowledge: it
// begins with the HTTP/2 preface. A program that calls create() links to spate::http2.
//
// Ownership: a handle, copied cheaply; it may be destroyed before the Servers and Clients that were
// made with it. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"

namespace spate::http {

class Http2Engine;

struct Http2Options {
  // Concurrent requests per connection, 1 ... 10,000. Beyond it a server refuses a stream, which
  // the client repeats; a client opens another connection, or waits.
  // It also bounds the memory for a client that does not read. While more than max_streams times
  // 256 KiB wait to be sent on a connection, or as many files as max_streams, a server starts no
  // further request of that connection.
  std::uint32_t max_streams = 100;
  // Bytes of one body that the peer may send before they are read, 1 KiB ... 16 MiB. Multiplied by
  // max_streams it is the memory that one connection can occupy.
  std::uint32_t stream_window = 256 * 1024;
};

class SPATE_EXPORT Http2 {
 public:
  // Makes an empty Http2: HTTP/1.1 only.
  Http2() = default;

  // Makes an Http2. Errors: EINVAL for an option that is out of its range, ENOMEM.
  static Result<Http2> create(const Http2Options& options = {});

  explicit operator bool() const { return engine_ != nullptr; }

  // Called by the library.
  explicit Http2(std::shared_ptr<const Http2Engine> engine) : engine_(std::move(engine)) {}
  const Http2Engine* engine() const { return engine_.get(); }

 private:
  std::shared_ptr<const Http2Engine> engine_;
};

}  // namespace spate::http
