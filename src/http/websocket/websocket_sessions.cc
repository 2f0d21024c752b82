#include "spate/http/websocket_sessions.h"

#include <utility>

namespace spate::http {

WebSocketSessionList::WebSocketSessionList(Loop& loop, WebSocketOptions options)
    : options_(std::move(options)), sweep_(loop, [this] { sweep(); }) {}

WebSocketSessionList::~WebSocketSessionList() {
  destroy_all(live_);
  destroy_all(ended_);
}

void WebSocketSessionList::destroy_all(WebSocketSession*& first) {
  while (first != nullptr) delete first;
}

void WebSocketSessionList::link(WebSocketSession& session) {
  WebSocketSession*& first = session.is_over_ ? ended_ : live_;
  session.list_ = this;
  session.previous_ = nullptr;
  session.next_ = std::exchange(first, &session);
  if (session.next_ != nullptr) session.next_->previous_ = &session;
  if (!session.is_over_) ++size_;
}

void WebSocketSessionList::unlink(WebSocketSession& session) {
  if (session.next_ != nullptr) session.next_->previous_ = session.previous_;
  WebSocketSession*& first = session.is_over_ ? ended_ : live_;
  (session.previous_ == nullptr ? first : session.previous_->next_) = session.next_;
  if (!session.is_over_) --size_;
}

bool WebSocketSessionList::enter(WebSocketSession& session, Exchange exchange) {
  Result<WebSocket> socket = WebSocket::accept(std::move(exchange), session, options_);
  if (!socket) {
    delete &session;
    return false;
  }
  session.socket_ = std::move(*socket);
  link(session);
  const auto open = [](WebSocketSession& opened, const void*) { opened.on_open(); };
  return call(session, open, nullptr) && !session.is_over_;
}

void WebSocketSessionList::close(WebSocketSession& session, Tell tell, const void* what) {
  WebSocketSessionList& list = *session.list_;
  list.retire(session);
  list.call(session, tell, what);
}

// It has ended, and is destroyed by the loop.
void WebSocketSessionList::retire(WebSocketSession& session) {
  if (session.is_over_) return;
  unlink(session);
  session.is_over_ = true;
  link(session);
  sweep_.start(Nanos{0});
}

// A callback may run the loop, and calls may be nested: it is not destroyed before the first has
// returned. False if the list was destroyed meanwhile.
bool WebSocketSessionList::call(WebSocketSession& session, Tell tell, const void* what) {
  bool is_gone = false;
  bool* const outer = std::exchange(session.gone_, &is_gone);
  tell(session, what);
  if (is_gone) {
    if (outer != nullptr) *outer = true;
    return false;
  }
  session.gone_ = outer;
  if (session.is_over_) sweep_.start(Nanos{0});
  return true;
}

void WebSocketSessionList::sweep() {
  WebSocketSession* next = nullptr;
  for (WebSocketSession* each = ended_; each != nullptr; each = next) {
    next = each->next_;
    if (each->gone_ == nullptr) delete each;
  }
}

// Closing calls nobody.
void WebSocketSessionList::close_all(CloseCode code, std::string_view reason) {
  for (WebSocketSession* each = live_; each != nullptr; each = each->next_)
    each->socket_.close(code, reason);
}

}  // namespace spate::http
