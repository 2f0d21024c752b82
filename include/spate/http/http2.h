// Http2: lets a Server speak HTTP/2 beside HTTP/1.1, with the same Service, and a Client, with the
// same Calls (ClientOptions::http2).
//
//   ServerOptions options;
//   options.http2 = must(Http2::create());
//   options.tls = must(TlsContext::server({.identities = {...}, .alpn = {"h2", "http/1.1"}}));
//
// Over TLS a client gets it by ALPN; over a plain connection by prior knowledge, which is to begin
// with the preface of HTTP/2. A program that calls create() links to spate::http2, which needs
// nghttp2.
//
// Ownership: a handle, copied cheaply; it may go before the Servers and Clients that were made with
// it. Threads: any.
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
  // Requests of one connection at the same time, 1 ... 10,000; beyond it a server refuses a stream,
  // and the client repeats it, and a client opens another connection, or waits.
  std::uint32_t max_streams = 100;
  // Bytes of one body that the peer may send ahead of who reads it, 1 KiB ... 16 MiB. Times
  // max_streams it is what one connection can make us keep.
  std::uint32_t stream_window = 256 * 1024;
};

class SPATE_EXPORT Http2 {
 public:
  // None: HTTP/1.1 only.
  Http2() = default;

  // Errors: EINVAL for an option that is out of its range, ENOMEM.
  static Result<Http2> create(const Http2Options& options = {});

  explicit operator bool() const { return engine_ != nullptr; }

  // For the library.
  explicit Http2(std::shared_ptr<const Http2Engine> engine) : engine_(std::move(engine)) {}
  const Http2Engine* engine() const { return engine_.get(); }

 private:
  std::shared_ptr<const Http2Engine> engine_;
};

}  // namespace spate::http
