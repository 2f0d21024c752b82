// Call: one request of a Client's, and what comes back.
//
// Ownership: a handle; moving it moves the call. Destroying it cancels: no callback follows, and
// the connection, if it has one, is closed; of HTTP/2 only its stream is.
// Threads: the loop's thread only.
// Callbacks: a CallHandler's functions, called by the loop and never from inside a call to the Call
// or the Client. Inside them everything is allowed, destroying the Call, the handler and the Client
// included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
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

// Of CallOptions::upload.
inline constexpr std::uint64_t kUnknownSize = UINT64_MAX;

struct CallOptions {
  Method method = Method::get;  // Not CONNECT.
  std::string method_name{};    // Of Method::other.
  // Instead of the URL's path and query, and sent as it is: begins with '/', or is "*". Not of a
  // redirect.
  std::string target{};
  // Not those of the connection (Connection, Content-Length, Keep-Alive, Proxy-Connection, TE,
  // Transfer-Encoding, Upgrade), and not Expect: EINVAL. Host replaces that of the URL, Cookie what
  // the jar has.
  Fields fields{};

  // The request's body: bytes that are copied, or a Buffer that is taken.
  Bytes body{};
  Buffer content{};
  // Instead: a body that Call::write() gives piece by piece, of that size, or kUnknownSize, which
  // is sent chunked. The request cannot be repeated then.
  std::optional<std::uint64_t> upload{};
  // Asks the server before the body is sent (Expect: 100-continue), and waits so long for an
  // answer, as old servers give none. Zero does not ask.
  Nanos expect_continue{0};
  // Asks the server to go on with this protocol ("websocket") on the connection, which is told by
  // CallHandler::on_upgraded() if it does; else its answer is one as any other. With send() only,
  // and without a body. Of HTTP/2 it is a stream of the connection (RFC 8441), with GET only: other
  // methods are of HTTP/1.1.
  std::string upgrade{};

  // For everything together: waiting for a connection, names, connecting, redirects, the body.
  // Beyond it the call ends with Error::deadline. Half a minute, since a call without a deadline
  // waits for ever on the day a server is stuck, and whoever waits in front of us, a person or a
  // proxy, has rarely more patience. Zero is none: for downloads that take as long as they take.
  Nanos deadline{30'000'000'000};

  // How many redirects are followed; 0: they are answers as any other. Credentials (Authorization,
  // Cookie) and Host are dropped when the scheme, the host or the port changes. 303, and 301 and
  // 302 to a POST, go on as GET without a body (RFC 9110 §15.4). One that would need an `upload`
  // again is an answer.
  unsigned max_redirects = 0;
  // Says that gzip and deflate are understood, and decompresses.
  bool decompress = false;
  // Says that trailers are understood (TE: trailers), which some servers want to hear before they
  // send any: those of gRPC. Not with `upgrade`.
  bool accept_trailers = false;
  // Bytes of the response's body, decompressed, counted while they come out. 0: 16 MiB with
  // fetch(), no limit with send().
  std::uint64_t max_body = 0;

  // Instead of those of the Client; Proxy() is none.
  std::optional<Proxy> proxy{};
  // Connects there, whatever the URL's host is: a unix socket, for instance. Not if a redirect
  // leads elsewhere.
  Address address{};
};

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT CallHandler {
 public:
  // With CallOptions::upload, once: the request's head has been sent, and with `expect_continue`
  // the server has asked for the body, or has not said anything in time. Write before, and it
  // waits.
  virtual void on_upload() {}
  // An answer before the answer: 103, for instance; never 100 and 101. Valid until it returns.
  virtual void on_informational(Status /*status*/, const FieldsView& /*fields*/) {}
  // The head of the answer. Valid as long as the Call is.
  virtual void on_response(const Response& /*response*/) {}
  // A piece of the body, at least one byte, valid until it returns. It is used up; who can take no
  // more calls pause().
  virtual void on_body(Bytes /*bytes*/) {}
  // The body has been received, with these fields behind it, usually none. Not called without a
  // body. Valid until it returns.
  virtual void on_body_end(const FieldsView& /*trailers*/) {}
  // Call::is_full() is over: go on writing.
  virtual void on_drained() {}
  // The server has answered 101 (CallOptions::upgrade): the connection is the handler's, and what
  // has come behind the head is read from it once it is started. The last call, in place of
  // on_response() and on_closed(). `response` is valid until it returns. Over HTTP/2 the server
  // says 2xx, which is shown as the 101 that it stands for; the Stream ends with the Client, and is
  // reset if nothing moves for a minute while something waits to be sent, or once its own side has
  // ended.
  virtual void on_upgraded(const Response& /*response*/, Stream /*stream*/) {}
  // The last call, once: without an error when the answer has ended. Else a HttpError,
  // Error::deadline, connect()'s error, ECONNRESET, ...: Client in client.h has the list.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~CallHandler() = default;
};

using OnResponse = std::move_only_function<void(Result<Response> response)>;

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

  // The last callback has not been called yet, and the Client is there.
  bool is_open() const;
  // No callback follows.
  void cancel() { *this = Call(); }
  // Something of it was sent: the server may have seen it, and may have done it. Also when it is
  // over.
  bool was_sent() const;

  // ---- the request's body, with CallOptions::upload. What is written before there is a connection
  // waits for it.

  // False: no upload, ended, over, or more than its size.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // If it returns false, the bytes are still in `buffer`.
  bool write(Buffer&& buffer);
  // Less than the size ends the call with EINVAL. Trailers are dropped if there is a size. False:
  // no upload, ended or over already.
  bool end(Fields trailers = {});
  // From more than 256 KiB that wait to be sent, until there are 64; on_drained() is called then.
  bool is_full() const;

  // ---- the response's body

  // While paused, nothing is read, nor is it told that the body has ended, or the call; and neither
  // the end nor the loss of the server is seen. Of HTTP/2 a loss is, unless all of the answer has
  // come before, and other calls go on. The deadline goes on.
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
