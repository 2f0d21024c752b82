#include "spate/http/websocket_sessions.h"

#include <utility>

#include "base/list_visit.h"
#include "http/websocket/loop_websockets.h"
#include "http/websocket/websocket_state.h"

namespace spate::http {

class WebSocketSessionList::Visit final : public ListVisit<Visit, WebSocketSession> {
 public:
  Visit(WebSocketSessionList& list, WebSocketSession* first) : ListVisit(list.visits_, first) {}

  static WebSocketSession* next(const WebSocketSession& session) { return session.next_; }
};

WebSocketSessionList::WebSocketSessionList(Loop& loop, WebSocketOptions options)
    : options_(std::move(options)), sweep_(loop, [this] { sweep(); }) {}

WebSocketSessionList::~WebSocketSessionList() {
  Visit::detach(visits_);
  destroy_all(live_);
  destroy_all(ended_);
}

void WebSocketSessionList::destroy_all(WebSocketSession*& first) {
  while (first != nullptr) destroy(*first);
}

// Unlinks it first, because its destructor may destroy the list.
void WebSocketSessionList::destroy(WebSocketSession& session) {
  unlink(session);
  session.list_ = nullptr;
  delete &session;
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
  Visit::pass(visits_, session);
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
  WebSocketState& state = *WebSocketState::of(session.socket_);
  bool lives = false;
  WebSocketCall(state.loop_state(), state).guard([&] { lives = call(session, open, nullptr); });
  return lives && !session.is_over_;
}

void WebSocketSessionList::close(WebSocketSession& session, Tell tell, const void* what) {
  WebSocketSessionList& list = *session.list_;
  list.retire(session);
  list.call(session, tell, what);
}

// Ends the session; the loop destroys it.
void WebSocketSessionList::retire(WebSocketSession& session) {
  if (session.is_over_) return;
  unlink(session);
  session.is_over_ = true;
  link(session);
  sweep_.start(Nanos{0});
}

// Calls a function of the session. It may run the loop, and calls may be nested: the session is not
// destroyed before the outermost has returned. False if the list was destroyed meanwhile.
bool WebSocketSessionList::call(WebSocketSession& session, Tell tell, const void* what) {
  const Running running(session);
  tell(session, what);
  return !running.is_gone;
}

// Also ends when the function throws.
WebSocketSessionList::Running::Running(WebSocketSession& called)
    : session(called), outer(std::exchange(called.gone_, &is_gone)) {}

WebSocketSessionList::Running::~Running() {
  if (is_gone) {
    if (outer != nullptr) *outer = true;
    return;
  }
  session.gone_ = outer;
  if (session.is_over_) session.list_->sweep_.start(Nanos{0});
}

// A session's destructor may run the loop, end other sessions, or destroy the list. So the search
// starts again after each.
void WebSocketSessionList::sweep() {
  const Visit visit(*this, nullptr);
  const auto find = [this] {
    WebSocketSession* each = ended_;
    while (each != nullptr && each->gone_ != nullptr) each = each->next_;
    return each;
  };
  while (WebSocketSession* each = find()) {
    destroy(*each);
    if (!visit.has_list()) return;
  }
}

void WebSocketSessionList::visit_each(Visitor visitor, void* context) {
  Visit visit(*this, live_);
  while (WebSocketSession* session = visit.take()) visitor(*session, context);
}

// close() calls no user code.
void WebSocketSessionList::close_all(CloseCode code, std::string_view reason) {
  for (WebSocketSession* each = live_; each != nullptr; each = each->next_)
    each->socket_.close(code, reason);
}

}  // namespace spate::http
