// A filter that connects the socket below it, twice.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "../threads/running_base.h"

namespace spate::dropin {
namespace {

class FilterConnect : public ::testing::Test {
 protected:
  FilterConnect() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(listener_, generic(), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, generic(), &size), 0);
    bufferevent* below = bufferevent_socket_new(base_.get(), -1, BEV_OPT_CLOSE_ON_FREE);
    filter_ =
        bufferevent_filter_new(below, nullptr, nullptr, BEV_OPT_CLOSE_ON_FREE, nullptr, nullptr);
    bufferevent_setcb(filter_, nullptr, nullptr, on_event, this);
    bufferevent_enable(filter_, EV_READ | EV_WRITE);
  }
  ~FilterConnect() override {
    bufferevent_free(filter_);
    if (peer_ >= 0) ::close(peer_);
    ::close(listener_);
  }

  // Connects, and accepts the connection.
  void connect() {
    events_ = 0;
    ASSERT_EQ(bufferevent_socket_connect(filter_, generic(), sizeof address_), 0);
    peer_ = ::accept(listener_, nullptr, nullptr);
    run_until([this] { return events_ != 0; });
    EXPECT_EQ(events_, BEV_EVENT_CONNECTED);
    events_ = 0;
  }
  void close_peer() { ::close(std::exchange(peer_, -1)); }
  // Closes the descriptor, as a program does before it connects again.
  void disconnect() {
    ::close(bufferevent_getfd(filter_));
    bufferevent_setfd(filter_, -1);
  }

  template <class Done>
  void run_until(Done done) {
    while (!done()) event_base_loop(base_.get(), EVLOOP_ONCE);
  }
  std::size_t arrived() const { return evbuffer_get_length(bufferevent_get_input(filter_)); }
  // Sends a byte each way, and waits for both.
  void exchange_bytes() {
    char byte = 0;
    ASSERT_EQ(::write(peer_, "a", 1), 1);
    run_until([this] { return arrived() == 1; });
    bufferevent_write(filter_, "b", 1);
    event_base_loop(base_.get(), EVLOOP_ONCE);
    ASSERT_EQ(::read(peer_, &byte, 1), 1);
    EXPECT_EQ(byte, 'b');
    evbuffer_drain(bufferevent_get_input(filter_), 1);
  }

  short events() const { return events_; }

 private:
  static void on_event(bufferevent*, short what, void* context) {
    static_cast<FilterConnect*>(context)->events_ = what;
  }
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address_); }

  Base base_{event_base_new()};
  int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
  bufferevent* filter_;
  int peer_ = -1;
  short events_ = 0;
};

TEST_F(FilterConnect, CarriesBytesBothWays) {
  connect();
  exchange_bytes();
}

TEST_F(FilterConnect, CarriesBytesAgainAfterEnd) {
  connect();
  close_peer();
  run_until([this] { return events() != 0; });
  EXPECT_EQ(events(), BEV_EVENT_EOF | BEV_EVENT_READING);
  disconnect();
  connect();
  exchange_bytes();
}

}  // namespace
}  // namespace spate::dropin
