// WebSocketSession: a WebSocket and its state in one object. WebSocketSessions: owns one per
// WebSocket, as Sessions (net/session.h) does for Streams.
//
//   struct Echo : spate::http::WebSocketSession {
//     void on_message(MessageKind kind, Bytes bytes) override { socket().send(kind, bytes); }
//   };
//   WebSocketSessions<Echo> echoes(*loop);
//   router.get("/echo", [&](Exchange exchange) { echoes.accept(std::move(exchange)); });
//
// Ownership: WebSocketSessions creates a session for a WebSocket, and destroys it when that has
// ended: from the loop, soon after on_closed(). Destroying the WebSocketSessions destroys all of
// them, closes their connections with going_away, and makes no further calls. The loop may be
// destroyed first; the WebSocketSessions may then only be destroyed.
// Threads: the loop's thread only.
// Inside a session's callbacks everything is allowed, ending the session or destroying the
// WebSocketSessions included; the latter destroys the session.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/websocket.h"
#include "spate/timer.h"

namespace spate::http {

class WebSocketSessionList;

// The base class of a program's sessions. They must not be final.
class WebSocketSession : public WebSocketHandler {
 public:
  WebSocketSession(const WebSocketSession&) = delete;
  WebSocketSession& operator=(const WebSocketSession&) = delete;

  // Returns the WebSocket. Valid from on_open() on. socket().close() ends the session gracefully,
  // abort() at once.
  WebSocket& socket() { return socket_; }
  // Resets the connection, and ends the session without another call.
  void abort();

  // Called when accepted, before anything is read: the place for topics and a greeting.
  void on_open() override {}
  // Called last. Must not be private in a derived class.
  void on_closed(CloseCode, std::string_view, std::error_code) override {}

 protected:
  WebSocketSession() = default;
  virtual ~WebSocketSession();

 private:
  friend class WebSocketSessionList;

  WebSocket socket_;
  WebSocketSessionList* list_ = nullptr;
  WebSocketSession* next_ = nullptr;
  WebSocketSession* previous_ = nullptr;
  bool* gone_ = nullptr;  // Set by the destructor, for the innermost call of a function of the
                          // session.
  bool is_over_ = false;
};

// The part of WebSocketSessions that does not depend on the type.
class SPATE_EXPORT WebSocketSessionList {
 public:
  WebSocketSessionList(const WebSocketSessionList&) = delete;
  WebSocketSessionList& operator=(const WebSocketSessionList&) = delete;

  Loop& loop() const { return sweep_.loop(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const WebSocketOptions& options() const { return options_; }

  // Closes each WebSocket, as WebSocket::close(): for a server that shuts down.
  void close_all(CloseCode code = CloseCode::going_away, std::string_view reason = {});

 protected:
  using Visitor = void (*)(WebSocketSession& session, void* context);
  using Tell = void (*)(WebSocketSession& session, const void* what);

  WebSocketSessionList(Loop& loop, WebSocketOptions options);
  ~WebSocketSessionList();

  // False if the exchange was refused, or the session ended itself: it is destroyed, or will be.
  bool enter(WebSocketSession& session, Exchange exchange);
  // Makes the last call, on_closed().
  static void close(WebSocketSession& session, Tell tell, const void* what);
  void visit_each(Visitor visitor, void* context);

 private:
  class Visit;
  friend class WebSocketSession;
  // On the stack while a function of a session is called.
  struct Running {
    explicit Running(WebSocketSession& called);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    WebSocketSession& session;
    bool is_gone = false;
    bool* const outer;
  };

  void sweep();
  void retire(WebSocketSession& session);
  bool call(WebSocketSession& session, Tell tell, const void* what);
  void link(WebSocketSession& session);
  void unlink(WebSocketSession& session);
  void destroy(WebSocketSession& session);
  void destroy_all(WebSocketSession*& first);

  const WebSocketOptions options_;
  WebSocketSession* live_ = nullptr;
  WebSocketSession* ended_ = nullptr;
  std::size_t size_ = 0;  // Live sessions.
  Visit* visits_ = nullptr;
  Timer sweep_;
};

inline WebSocketSession::~WebSocketSession() {
  if (gone_ != nullptr) *gone_ = true;
  if (list_ != nullptr) list_->unlink(*this);
}

inline void WebSocketSession::abort() {
  socket_.abort();
  if (list_ != nullptr) list_->retire(*this);
}

// The sessions of one loop, with common options.
template <class T>
class SPATE_EXPORT WebSocketSessions : public WebSocketSessionList {
 public:
  explicit WebSocketSessions(Loop& loop, WebSocketOptions options = {})
      : WebSocketSessionList(loop, std::move(options)) {}

  // Accepts a request as WebSocket::accept() does, and creates a session T(args...) for it. Returns
  // nullptr if it was refused, if memory ran out (500), or if the session ended itself at once.
  template <class... Args>
  T* accept(Exchange exchange, Args&&... args) {
    static_assert(std::derived_from<T, WebSocketSession> && !std::is_final_v<T>,
                  "a session derives from spate::http::WebSocketSession, publicly, and is not "
                  "final");
    auto* session = new (std::nothrow) Owned(std::forward<Args>(args)...);
    if (session == nullptr) return nullptr;
    return enter(*session, std::move(exchange)) ? session : nullptr;
  }

  // Calls visit(T&) for each session, in no order. It may end any of them; sessions opened
  // meanwhile may be skipped.
  template <class F>
  void for_each(F visit) {
    const Visitor visitor = [](WebSocketSession& session, void* context) {
      (*static_cast<F*>(context))(static_cast<T&>(session));
    };
    visit_each(visitor, &visit);
  }

 private:
  class Owned final : public T {
   public:
    template <class... Args>
    explicit Owned(Args&&... args) : T(std::forward<Args>(args)...) {}

    void on_closed(CloseCode code, std::string_view reason, std::error_code error) override {
      const How how = {code, reason, error};
      const auto tell = [](WebSocketSession& session, const void* what) {
        const How& why = *static_cast<const How*>(what);
        static_cast<Owned&>(session).T::on_closed(why.code, why.reason, why.error);
      };
      close(*this, tell, &how);
    }

   private:
    struct How {
      CloseCode code;
      std::string_view reason;
      std::error_code error;
    };
  };
};

}  // namespace spate::http
