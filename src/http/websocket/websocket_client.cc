// WebSocketClient: a handler of one WebSocket after the other.
#include "spate/http/websocket_client.h"

#include <deque>
#include <span>
#include <string>

#include "base/abandonable.h"
#include "base/backoff.h"
#include "http/codec/websocket_frame.h"
#include "spate/assert.h"
#include "spate/http/error.h"
#include "spate/timer.h"
#include "sys/random.h"

namespace spate::http {

class WebSocketClientState final : public WebSocketHandler,
                                   private Abandonable<WebSocketClientState> {
 public:
  WebSocketClientState(Client& client, std::string_view url, WebSocketClientHandler& handler,
                       WebSocketClientOptions options)
      : client_(client),
        url_(url),
        handler_(handler),
        options_(std::move(options)),
        backoff_(sys::random_seed()),
        timer_(client.loop(), [this] { on_timer(); }) {}

  void leave() {
    socket_ = WebSocket();
    timer_.stop();
    is_over_ = true;
    abandon();
  }

  bool is_open() const { return socket_.is_writable(); }
  std::size_t waiting() const { return waiting_bytes_; }
  Nanos retry_in() const { return is_over_ ? Nanos{0} : timer_.remaining(); }
  std::uint32_t failures() const { return failures_; }
  const WebSocket& socket() const { return socket_; }

  std::error_code attempt() {
    timer_.stop();
    is_connected_ = false;
    CallOptions request{.credentials = options_.credentials,
                        .deadline = options_.connect_timeout,
                        .proxy = options_.proxy,
                        .address = options_.address};
    request.fields.add_all(options_.fields);
    auto socket = WebSocket::connect(client_, url_, *this, options_.socket, std::move(request));
    if (!socket) return socket.error();
    socket_ = std::move(*socket);
    return {};
  }
  void reconnect() {
    if (is_over_) return;
    if (ends_steady()) failures_ = 0;
    socket_ = WebSocket();
    if (attempt()) wait();
  }

  bool send(MessageKind kind, Bytes bytes) {
    if (is_over_) return false;
    if (socket_.is_writable() && (in_open_ || waiting_.empty())) return socket_.send(kind, bytes);
    if (!may_wait(frame_size(bytes))) return false;
    waiting_.push_back({kind, std::string(text_of(bytes))});
    waiting_bytes_ += frame_size(bytes);
    return true;
  }

  void close(CloseCode code, std::string_view reason) {
    if (std::exchange(is_over_, true)) return;
    drop_waiting();
    timer_.stop();
    if (socket_.is_open()) return socket_.close(code, reason);
    timer_.feed();
  }

 private:
  friend class Abandonable<WebSocketClientState>;
  struct Message {
    MessageKind kind;
    std::string bytes;
  };

  ~WebSocketClientState() = default;

  void on_open() override {
    is_connected_ = true;
    connected_at_ = client_.loop().now();
    in_open_ = true;
    if (!call([this] { handler_.on_open(); })) return;
    in_open_ = false;
    flush();
  }
  void on_message(MessageKind kind, Bytes bytes) override {
    call([&] { handler_.on_message(kind, bytes); });
  }
  void on_pong(Bytes) override { flush(); }
  void on_drained() override {
    flush();
    if (waiting_.empty() && !socket_.is_full()) call([this] { handler_.on_drained(); });
  }
  void on_closed(CloseCode code, std::string_view reason, std::error_code error) override {
    if (is_over_) return finish({});
    const bool was_steady = ends_steady();
    if (was_steady) failures_ = 0;
    if (error == HttpError::https_without_tls || (!was_steady && counts_too_many()))
      return finish(error ? error : make_error_code(Error::ended));
    wait();
    call([&] { handler_.on_lost(code, reason, error); });
  }

  bool ends_steady() {
    return std::exchange(is_connected_, false) &&
           client_.loop().now() - connected_at_ >= options_.steady_after;
  }
  bool counts_too_many() { return ++failures_ == options_.max_failures; }
  // Without memory for the timer, retries in the next turn.
  void wait() {
    const Nanos delay =
        backoff_.after(failures_, options_.first_delay, options_.max_delay, options_.jitter);
    if (!timer_.start(delay)) timer_.feed();
  }
  void on_timer() {
    if (is_over_) return finish({});
    if (attempt()) wait();
  }
  static std::size_t frame_size(Bytes message) { return message.size() + kMostFrameHead; }
  bool may_wait(std::size_t size) const {
    return size <= options_.max_waiting - waiting_bytes_ && size <= options_.socket.limits.max;
  }
  bool fits(std::size_t size) const {
    return socket_.queued() + size <= options_.socket.limits.max;
  }
  // A message for which the queue has no room would be dropped, or end the connection. The queue
  // reports that it has drained only if it was full, so the pong to a ping after it shows that.
  void flush() {
    while (!waiting_.empty() && socket_.is_writable() && !socket_.is_full()) {
      const Message& first = waiting_.front();
      const std::size_t size = frame_size(bytes_of(first.bytes));
      if (!fits(size)) return void(socket_.ping());
      if (!socket_.send(first.kind, bytes_of(first.bytes))) return;
      waiting_bytes_ -= size;
      waiting_.pop_front();
    }
  }
  void drop_waiting() {
    waiting_.clear();
    waiting_bytes_ = 0;
  }
  void finish(std::error_code error) {
    is_over_ = true;
    drop_waiting();
    timer_.stop();
    call([&] { handler_.on_closed(error); });
  }

  Client& client_;
  const std::string url_;
  WebSocketClientHandler& handler_;
  const WebSocketClientOptions options_;
  Backoff backoff_;
  Timer timer_;  // For the next attempt, or for on_closed() after close().
  std::deque<Message> waiting_;
  std::size_t waiting_bytes_ = 0;
  Nanos connected_at_{0};  // Loop time.
  std::uint32_t failures_ = 0;
  bool is_connected_ = false;
  bool in_open_ = false;
  bool is_over_ = false;
  WebSocket socket_;
};

Result<WebSocketClient> WebSocketClient::connect(Client& client, std::string_view url,
                                                 WebSocketClientHandler& handler,
                                                 WebSocketClientOptions options) {
  SPATE_ASSERT(options.socket.view == MessageView::whole, "messages are whole");
  SPATE_ASSERT(options.jitter >= 0 && options.jitter <= 1, "the jitter is a share, 0 ... 1");
  WebSocketClient made(new WebSocketClientState(client, url, handler, std::move(options)));
  if (const std::error_code error = made.state_->attempt()) return std::unexpected(error);
  return made;
}

bool WebSocketClient::send(MessageKind kind, Bytes bytes) {
  return state_ != nullptr && state_->send(kind, bytes);
}
bool WebSocketClient::is_open() const { return state_ != nullptr && state_->is_open(); }
std::size_t WebSocketClient::waiting() const { return state_ == nullptr ? 0 : state_->waiting(); }
Nanos WebSocketClient::retry_in() const {
  return state_ == nullptr ? Nanos{0} : state_->retry_in();
}
std::uint32_t WebSocketClient::failures() const {
  return state_ == nullptr ? 0 : state_->failures();
}
const WebSocket& WebSocketClient::socket() const {
  static const WebSocket none;
  return state_ == nullptr ? none : state_->socket();
}
void WebSocketClient::reconnect() {
  if (state_ != nullptr) state_->reconnect();
}
void WebSocketClient::close(CloseCode code, std::string_view reason) {
  if (state_ != nullptr) state_->close(code, reason);
}
void WebSocketClient::leave() { state_->leave(); }

}  // namespace spate::http
