// RequestPipe: a client of a protocol that answers requests in their order on one connection, such
// as Redis, memcached, SMTP, or a protocol of your own. It pipelines requests, matches responses,
// and reconnects.
//
//   RequestPipe<Delimiter> pipe =
//       must(RequestPipe<Delimiter>::create(*loop, "localhost", 7000, Delimiter{"\r\n"}));
//   pipe.request("PING\r\n", [](Result<Bytes> response) {
//     if (response) std::printf("%s\n", text(*response).c_str());
//   });
//
// Framing finds the end of a response: any type that split() of framing.h accepts. It is copied for
// each connection. If it has a function `bool is_push(Bytes message) const`, messages for which
// that returns true are no responses: they are passed to PipeHandlers::on_push.
//
// Ownership: a handle, as Client. Destroying it drops all callbacks without calling them, sends the
// bytes that were written, and closes. The loop may be destroyed first, which drops the callbacks.
// Threads: the loop's thread only.
// Callbacks: each is called by the loop, never from inside a function of the RequestPipe. Inside
// them everything is allowed, destroying the RequestPipe included. While a response's callback runs
// the loop, no other response of that connection is delivered.
//
// Each accepted request has exactly one result, unless it is cancelled or the RequestPipe is
// destroyed: its response, or an error. Responses are delivered in the order of the requests. The
// errors of a callback:
// - Error::deadline: no response within its deadline. If it was sent, the late response is skipped.
//   If nothing has arrived since it was sent, or it was made in on_connected, the connection is
//   reset as well.
// - ECONNRESET: it was sent, and the connection ended before the response. Whether the server has
//   executed it is unknown. With PipeRequestOptions::repeats it is sent again instead.
// - EPROTO: the framing does not accept its response. The connection is reset.
// - ECANCELED: close() was called.
// - The error of the last attempt: the Client has given up (ClientOptions::max_failures) before the
//   request was sent.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/client.h"
#include "spate/net/framing.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

class PipeState;
struct PipeEntry;

// Called once. The bytes are valid until it returns.
using OnPipeResponse = Function<void(Result<Bytes>)>;

// Each is optional.
struct PipeHandlers {
  // Called for each connection: log in, or subscribe again. Requests made inside it, and inside the
  // callbacks of these requests, are sent before all others, which wait until these have their
  // responses. They count for no limit, and are never repeated.
  Function<void()> on_connected{};
  // Receives a message that Framing::is_push() accepts, valid until it returns. Without this,
  // pushed messages are discarded.
  Function<void(Bytes)> on_push{};
  // Called when is_full() was true and half of the requests have their results, and the bytes are
  // down to QueueLimits::low: resume making requests.
  Function<void()> on_drained{};
  // Called when an attempt has failed or the connection has ended, with the reason, before the
  // results of its requests. EPROTO: a malformed response, or one without a request.
  Function<void(std::error_code error)> on_disconnected{};
};

struct PipeOptions {
  ClientOptions client{};  // Connecting, TLS, and the delays between attempts.
  // The deadline of a request, from request() to its response. Zero is none.
  Nanos deadline{10'000'000'000};
  // How many requests may be without a response; a skipped one counts until its response arrives.
  std::size_t max_requests = 100'000;
  // `max`, `high` and `low` are the bytes that wait for a connection or in its send queue.
  // `max_unread` is the limit of a response. `when_full` is not used: a request beyond `max` fails.
  QueueLimits limits{};
  // Whether requests wait while there is no connection; if not, they fail with ENOTCONN.
  bool wait = true;
};

// The handle of one request, if PipeRequestOptions::handle asks for it.
class SPATE_EXPORT PipeRequest {
 public:
  PipeRequest() = default;
  PipeRequest(PipeRequest&& other) noexcept { take(other); }
  PipeRequest& operator=(PipeRequest&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    take(other);
    return *this;
  }
  ~PipeRequest() { cancel(); }

  // Drops the callback. A request that waits is not sent; the response to one that was sent is
  // skipped.
  void cancel();
  // Returns true if the request has no result yet.
  bool is_pending() const { return entry_ != nullptr; }

 private:
  friend class PipeState;
  void take(PipeRequest& other);

  PipeState* state_ = nullptr;
  PipeEntry* entry_ = nullptr;
};

struct PipeRequestOptions {
  std::optional<Nanos> deadline{};  // Replaces PipeOptions::deadline. Zero is none.
  // How often the request is sent again when the connection ends before the response. For requests
  // that may be executed twice. A copy of the bytes is kept until the response.
  std::uint8_t repeats = 0;
  // Becomes the handle of this request; a request that it had is cancelled. Without it, the request
  // can only be cancelled together with all others.
  PipeRequest* handle = nullptr;
};

// A framing without its type, which is the library's view of it.
struct PipeFraming {
  void* framing;
  Frame (*next)(void* framing, Bytes bytes);
  bool (*is_push)(void* framing, Bytes message);  // May be nullptr.
  void (*restart)(void* framing);
  void (*destroy)(void* framing);
};

// The functions that do not depend on the framing.
class SPATE_EXPORT AnyRequestPipe {
 public:
  AnyRequestPipe() = default;
  AnyRequestPipe(AnyRequestPipe&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  AnyRequestPipe& operator=(AnyRequestPipe&& other) noexcept {
    AnyRequestPipe moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~AnyRequestPipe();

  // Sends a request, or queues it until there is a connection. With an error, `callback` is
  // destroyed and not called. An empty request sends nothing, and receives a message that the
  // server sends first. Errors: Error::queue_full (PipeOptions); ENOTCONN without a connection if
  // PipeOptions::wait is false or the attempts were given up; EPIPE after close() and drain(), and
  // when empty; ENOMEM.
  [[nodiscard("after an error, the callback is not called")]]
  std::error_code request(Bytes bytes, OnPipeResponse callback,
                          const PipeRequestOptions& options = {});
  [[nodiscard("after an error, the callback is not called")]]
  std::error_code request(std::string_view text, OnPipeResponse callback,
                          const PipeRequestOptions& options = {}) {
    return request(bytes_of(text), std::move(callback), options);
  }
  // Sends bytes that have no response. Errors: ENOTCONN before on_connected and without a
  // connection; Error::queue_full; EPIPE and ENOMEM as above.
  std::error_code send(Bytes bytes);
  std::error_code send(std::string_view text) { return send(bytes_of(text)); }

  // Retries at once if waiting for the next attempt, and begins again after the attempts were given
  // up. create() calls it.
  void connect();
  // Resets the connection: its requests fail or are repeated, and a new one is opened. For a
  // connection that is no longer usable, as after a failed log-in.
  void reset();
  // Fails all requests with ECANCELED, and closes the connection when the bytes written are sent.
  void close();
  // Accepts no more requests. When all have their results, closes, and calls `done` once.
  void drain(Function<void()> done = {});

  // Returns true from the time when all requests of on_connected have their responses.
  bool is_connected() const;
  // Returns the state of connecting, as Client::state().
  Client::State state() const;
  // Returns the number of requests without a result.
  std::size_t pending() const;
  // Returns the bytes that wait for a connection or in its send queue.
  std::size_t queued() const;
  // Returns true if `max_requests` is reached, or more than `high` bytes are queued.
  bool is_full() const;
  // Returns why the last attempt failed or the last connection ended; none if it is open.
  std::error_code last_error() const;

 protected:
  // Creates the state, and connects. Errors: those of Client::create().
  static Result<PipeState*> make(Loop& loop, const Address& address, std::string_view host,
                                 std::uint16_t port, const PipeFraming& framing,
                                 PipeHandlers handlers, const PipeOptions& options);
  explicit AnyRequestPipe(PipeState* state) : state_(state) {}

 private:
  PipeState* own() const;

  PipeState* state_ = nullptr;
};

// A type that split() of framing.h accepts, and that can be copied.
template <class T>
concept IsFraming = std::copyable<T> && requires(T& framing, Bytes bytes) {
  { framing.next(bytes) } -> std::same_as<Frame>;
};

template <IsFraming Framing>
class [[nodiscard("a discarded RequestPipe is closed at once")]] RequestPipe
    : public AnyRequestPipe {
 public:
  // Makes an empty one, whose requests fail with EPIPE.
  RequestPipe() = default;

  // Makes a RequestPipe and connects to an address, or to a host by name. Errors: those of
  // Client::create().
  static Result<RequestPipe> create(Loop& loop, const Address& address, Framing framing = {},
                                    PipeHandlers handlers = {}, const PipeOptions& options = {}) {
    return of(make(loop, address, {}, 0, boxed(std::move(framing)), std::move(handlers), options));
  }
  static Result<RequestPipe> create(Loop& loop, std::string_view host, std::uint16_t port,
                                    Framing framing = {}, PipeHandlers handlers = {},
                                    const PipeOptions& options = {}) {
    return of(make(loop, {}, host, port, boxed(std::move(framing)), std::move(handlers), options));
  }

 private:
  struct Box {
    Framing initial;
    Framing current;
  };

  explicit RequestPipe(PipeState* state) : AnyRequestPipe(state) {}
  static Result<RequestPipe> of(Result<PipeState*> state) {
    if (!state) return std::unexpected(state.error());
    return RequestPipe(*state);
  }
  static PipeFraming boxed(Framing framing) {
    auto box = std::make_unique<Box>(framing, framing);
    PipeFraming erased{
        .framing = box.release(),
        .next = [](void* from,
                   Bytes bytes) { return static_cast<Box*>(from)->current.next(bytes); },
        .is_push = nullptr,
        .restart =
            [](void* from) {
              auto* whole = static_cast<Box*>(from);
              whole->current = whole->initial;
            },
        .destroy = [](void* from) { delete static_cast<Box*>(from); }};
    if constexpr (requires(const Framing& f, Bytes b) {
                    { f.is_push(b) } -> std::same_as<bool>;
                  })
      erased.is_push = [](void* from, Bytes message) {
        return static_cast<const Box*>(from)->current.is_push(message);
      };
    return erased;
  }
};

}  // namespace spate
