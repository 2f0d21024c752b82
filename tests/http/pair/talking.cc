#include "http/pair/talking.h"

#include <utility>
#include <vector>

#include "http/pair/pair_world.h"

namespace spate::testing {

void Talking::connect() {
  socket_ = must(http::WebSocket::connect(world_.client(), "ws://a/ws/" + std::to_string(number_),
                                          *this, options()));
}

bool Talking::accept(http::Exchange exchange) {
  auto socket = http::WebSocket::accept(std::move(exchange), *this, options());
  if (!socket) return false;
  socket_ = std::move(*socket);
  return true;
}

http::WebSocketOptions Talking::options() {
  http::WebSocketOptions options;
  if (world_.random.one_in(3)) options.compression = http::WebSocketCompression::each_message;
  if (world_.random.one_in(3)) options.limits.pause_reading = true;
  return options;
}

void Talking::act() {
  Random& random = world_.random;
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return talk();
    case 4:
      return socket_.pause();
    case 5:
    case 6:
      return socket_.resume();
    case 7:
      socket_.ping();
      return;
    case 8:
      if (random.one_in(4)) socket_.close();
      return;
    case 9:
      if (!random.one_in(12)) return;
      is_silent_ = true;
      return socket_.abort();
    case 10:
      if (random.one_in(12)) world_.let_go(*this);
      return;
    default:
      return world_.act_anywhere();
  }
}

void Talking::talk() {
  Random& random = world_.random;
  std::vector<std::string>& sent = world_.messages_of(*this);
  const std::string text = std::to_string(sent.size()) +
                           letters(sent.size(), random.below(random.one_in(8) ? 90'000 : 200));
  if (socket_.queued() < 400'000 && socket_.send(text)) sent.push_back(text);
}

void Talking::finish() {
  socket_.resume();
  socket_.close();
}

void Talking::expect_over() const {
  EXPECT_TRUE(is_silent_ || is_closed_) << "socket " << number_ << is_client_;
}

// ---- callbacks

void Talking::note(const char* what) {
  EXPECT_TRUE(!is_silent_ && !is_closed_) << what << " of " << number_ << is_client_;
}

void Talking::on_open() {
  note("on_open");
  EXPECT_TRUE(is_client_);
  EXPECT_FALSE(std::exchange(is_open_, true));
  world_.on_call(*this);
}

void Talking::on_message(http::MessageKind kind, Bytes bytes) {
  note("on_message");
  EXPECT_TRUE(is_open_ || !is_client_);
  EXPECT_EQ(kind, http::MessageKind::text);
  const std::vector<std::string>* sent = world_.messages_to(*this);
  ASSERT_NE(sent, nullptr);
  ASSERT_LT(heard_, sent->size());
  EXPECT_TRUE((*sent)[heard_] == text_of(bytes)) << number_ << is_client_;
  ++heard_;
  world_.on_call(*this);
}

void Talking::on_pong(Bytes bytes) {
  note("on_pong");
  EXPECT_TRUE(bytes.empty());
  world_.on_call(*this);
}

void Talking::on_drained() {
  note("on_drained");
  world_.on_call(*this);
}

void Talking::on_closed(http::CloseCode, std::string_view, std::error_code error) {
  note("on_closed");
  is_closed_ = true;
  EXPECT_FALSE(socket_.is_open());
  if (!error) EXPECT_TRUE(is_open_ || !is_client_);
  world_.on_call(*this);
}

}  // namespace spate::testing
