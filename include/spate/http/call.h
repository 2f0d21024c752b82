// Call: one request of a Client, and its response.
//
// Ownership: a handle; moving it moves the call. Destroying it cancels: no callback follows, and
// the connection, if it has one, is closed. With HTTP/2 only the stream is reset.
// Threads: the loop's thread only.
// Callbacks: a CallHandler's functions, called by the loop and never from inside a call to the Call
// or the Client. Inside them everything is allowed, destroying the Call, the handler and the Client
// included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/fields.h"
#include "spate/http/method.h"
#include "spate/http/proxy.h"
#include "spate/http/response.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class CallState;

// For Basic authentication (RFC 7617), in UTF-8. No controls, and no colon in the user (EINVAL).
// They are sent unencrypted unless the URL is https.
struct Credentials {
  std::string user;
  std::string password;
};

// A value for CallOptions::upload.
inline constexpr std::uint64_t kUnknownSize = UINT64_MAX;

struct CallOptions {
  Method method = Method::get;  // Any except CONNECT.
  std::string method_name{};    // The name of a Method::other.
  // Sent unchanged in place of the URL's path and query. Begins with '/', or is "*". Not used for
  // redirects.
  std::string target{};
  // Fields of the request. EINVAL for the fields of the connection (Connection, Content-Length,
  // Keep-Alive, Proxy-Connection, TE, Transfer-Encoding, Upgrade) and for Expect. Host replaces
  // that of the URL; Cookie replaces the cookies of the jar.
  Fields fields{};

  // Sent as Authorization, unless `fields` has that field. Replaces those of the Client.
  std::optional<Credentials> credentials{};

  // The body of the request (see also body.h): bytes that are copied, or a Buffer that is moved.
  Bytes body{};
  Buffer content{};
  // In place of these: the size of a body that Call::write() sends piece by piece, or kUnknownSize
  // for a chunked one. Such a request cannot be repeated.
  std::optional<std::uint64_t> upload{};
  // Sends "Expect: 100-continue", and waits for the server's permission before it sends the body.
  // After this time it sends the body anyway, because old servers never respond. Zero: the field is
  // not sent.
  Nanos expect_continue{0};
  // Requests an upgrade to this protocol ("websocket"). If the server agrees, on_upgraded() is
  // called; otherwise its response is an ordinary one. With send() only, and without a body. Over
  // HTTP/2 the upgrade uses one stream of the connection (RFC 8441), with GET only; other methods
  // use HTTP/1.1.
  std::string upgrade{};

  // For the whole call: waiting for a connection, name resolution, connecting, redirects and the
  // body. Then the call ends with Error::deadline. The default prevents calls that wait for ever on
  // a server that is stuck. Zero is none: for downloads of unknown length.
  Nanos deadline{30'000'000'000};

  // Ends the call with Error::idle_timeout when its connection has moved no byte of it for this
  // time. Waiting for a connection does not count, nor does the time while the Call is paused or
  // its `upload` waits for write(). While a body is sent, it may take twice as long, because sent
  // bytes are looked for only at these intervals. Zero is none.
  Nanos idle_timeout{0};
  // Replaces RetryOptions::attempts of the Client.
  std::optional<unsigned> attempts{};

  // How many redirects are followed. 0: redirects are returned to the caller. Credentials
  // (Authorization, Cookie) and Host are dropped when the scheme, the host or the port changes. 303
  // continues as GET without a body, as do 301 and 302 after a POST (RFC 9110 §15.4). A redirect
  // that would have to repeat an `upload` is returned to the caller.
  unsigned max_redirects = 0;
  // Accepts gzip and deflate (Accept-Encoding), and decompresses the body.
  bool decompress = false;
  // Accepts trailers (TE: trailers). Some servers, such as those of gRPC, send none without it. Not
  // with `upgrade`.
  bool accept_trailers = false;
  // The most bytes of the response's body, counted as they are decompressed. 0: 16 MiB with
  // fetch(), no limit with send().
  std::uint64_t max_body = 0;

  // Replaces the Client's proxy. Proxy() connects directly.
  std::optional<Proxy> proxy{};
  // Connects to this address, whatever the URL's host is: a unix socket, for instance. Not used for
  // a redirect to another host. EINVAL together with a proxy, or with ClientOptions::open.
  Address address{};
  // Sent at the beginning of the connection, before TLS: the result of proxy_header()
  // (spate/net/proxy_protocol.h). Only calls with the same header share a connection. Not used for
  // a redirect to another host. EINVAL together with a proxy.
  std::string proxy_header{};
};

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT CallHandler {
 public:
  // Called once, with CallOptions::upload, when the header section was sent, and before
  // on_response(); with `expect_continue`, when the server also requested the body or did not
  // respond in time. Bytes that were written earlier are queued until then.
  virtual void on_upload() {}
  // Called for an interim (1xx) response such as 103, never for 100 and 101. Valid until it
  // returns.
  virtual void on_informational(Status /*status*/, const FieldsView& /*fields*/) {}
  // Called when the header section of the response arrived. `response` is valid while the Call
  // exists.
  virtual void on_response(const Response& /*response*/) {}
  // Receives bytes of the body, at least one, valid until it returns. All of them are used up; call
  // pause() to stop.
  virtual void on_body(Bytes /*bytes*/) {}
  // Called when the whole body was received, with its trailers, usually none. Not called without a
  // body. Valid until it returns.
  virtual void on_body_end(const FieldsView& /*trailers*/) {}
  // Called when Call::is_full() is no longer true: resume writing.
  virtual void on_drained() {}
  // Called when the server switched protocols (CallOptions::upgrade). The handler owns the
  // connection; bytes that arrived after the response are read from it once it is started. This is
  // the last call, in place of on_response() and on_closed(). `response` is valid until it returns.
  // Over HTTP/2 the server sends 2xx, which is presented as 101. The Stream then ends with the
  // Client. It is reset if it makes no progress for a minute while it has bytes to send, or after
  // its own side has ended.
  virtual void on_upgraded(const Response& /*response*/, Stream /*stream*/) {}
  // Called last, exactly once. No error if the response is complete, otherwise an HttpError,
  // Error::deadline, connect()'s error, ECONNRESET, ...; see Client::fetch() in client.h.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~CallHandler() = default;
};

using OnResponse = Function<void(Result<Response> response)>;

class SPATE_EXPORT Call {
 public:
  Call() = default;
  Call(Call&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Call& operator=(Call&& other) noexcept {
    Call moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~Call() {
    if (state_ != nullptr) leave();
  }

  // True until the last callback, and while the Client exists.
  bool is_open() const;
  // Cancels the call. No callback follows.
  void cancel() { *this = Call(); }
  // True if a part of the request was sent: the server may have seen and processed it. Valid also
  // after the end.
  bool was_sent() const;
  // Returns the reason of a failed call as text, for a log. After a failed TLS handshake it names
  // the cause ("certificate has expired"), as TlsFailure::text; otherwise it is the message of the
  // error. Set before the last callback. Empty if the call has not failed.
  std::string_view last_failure() const;

  // ---- the body of the request, with CallOptions::upload. Bytes written before there is a
  // connection are queued.

  // False if there is no upload, if it was ended, if the call is over, or if this exceeds its size.
  // When memory runs out, the call ends with ENOMEM.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // As above. If it returns false, the bytes are still in `buffer`.
  bool write(Buffer&& buffer);
  // Ends the body. If it is shorter than its size or Exchange::end() would refuse `trailers`, the
  // call ends with EINVAL. Trailers are dropped if there is a size. False if there is no upload, or
  // if it was already ended or the call is over.
  bool end(Fields trailers = {});
  // True from the time when more than 256 KiB wait to be sent until 64 KiB are left; on_drained()
  // is called then. False when the call is over.
  bool is_full() const;

  // ---- the body of the response

  // While paused, nothing is read, and the end of the body or of the call is not reported. The end
  // or loss of an HTTP/1.1 server is not noticed. With HTTP/2 a loss is noticed, unless the whole
  // response arrived before, and other calls continue; on_informational() and on_response() may
  // also be called. The deadline keeps running.
  void pause();
  void resume();

 private:
  friend class CallState;
  friend class ClientCore;
  explicit Call(CallState* state) : state_(state) {}
  void leave();

  CallState* state_ = nullptr;
};

}  // namespace spate::http
