// Bufferevents on OpenSSL, linked to directly: behaviour that the original does not guarantee
// (../differential compares the rest), and random programs of two ends, for the sanitizers.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <random>
#include <string>
#include <utility>

#include "../differential/openssl_ends.h"

namespace spate::dropin {
namespace {

struct FreeBase {
  void operator()(event_base* base) const { event_base_free(base); }
};
struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string text_of(std::size_t size, unsigned seed) {
  std::minstd_rand random(seed);
  std::string text(size, '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

enum class Way { sockets, filters, pair };

// One end, and the events that it had.
struct End {
  bufferevent* bev = nullptr;
  std::string got;
  int connected = 0;
  short end = 0;
  std::size_t takes_most = SIZE_MAX;  // In one callback.

  void watch(bufferevent* its) {
    bev = its;
    bufferevent_setcb(bev, on_read, nullptr, on_event, this);
  }
  void take(std::size_t most) {
    evbuffer* input = bufferevent_get_input(bev);
    std::string taken(std::min(most, evbuffer_get_length(input)), '\0');
    evbuffer_copyout(input, taken.data(), taken.size());
    got += taken;
    evbuffer_drain(input, taken.size());  // Another callback may get more.
  }
  void drop() {
    if (bev != nullptr) bufferevent_free(std::exchange(bev, nullptr));
  }
  static void on_read(bufferevent*, void* argument) {
    auto& self = *static_cast<End*>(argument);
    self.take(self.takes_most);
  }
  static void on_event(bufferevent*, short what, void* argument) {
    auto& self = *static_cast<End*>(argument);
    if ((what & BEV_EVENT_CONNECTED) != 0) ++self.connected;
    self.end = static_cast<short>(self.end | (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)));
  }
};

class TlsBufferevent : public testing::Test {
 protected:
  TlsBufferevent() { signal(SIGPIPE, SIG_IGN); }  // OpenSSL writes to sockets with write().

  bufferevent* below(int fd) { return bufferevent_socket_new(base.get(), fd, options); }

  bufferevent* on_below(bufferevent* its, bufferevent_ssl_state state) {
    return bufferevent_openssl_filter_new(base.get(), its, SSL_new(context.get()), state, options);
  }
  bufferevent* on_socket(int fd, bufferevent_ssl_state state) {
    return bufferevent_openssl_socket_new(base.get(), fd, SSL_new(context.get()), state, options);
  }

  void open(Way way) {
    int fds[2];
    bufferevent* pair[2];
    if (way == Way::pair) {
      bufferevent_pair_new(base.get(), options, pair);
    } else {
      open_ends(fds);
    }
    for (int i = 0; i < 2; ++i) {
      const auto state = i == 0 ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING;
      ends[i].watch(way == Way::sockets ? on_socket(fds[i], state)
                    : way == Way::pair  ? on_below(pair[i], state)
                                        : on_below(below(fds[i]), state));
    }
    for (End& end : ends) bufferevent_enable(end.bev, EV_READ | EV_WRITE);
  }

  void turn(int times = 1) {
    for (; times > 0; --times) event_base_loop(base.get(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
  }
  void connect(Way way) {
    open(way);
    for (int i = 0; i < 100 && ends[0].connected + ends[1].connected < 2; ++i) turn();
    ASSERT_EQ(ends[0].connected, 1);
    ASSERT_EQ(ends[1].connected, 1);
  }
  void write(End& end, const std::string& text) {
    bufferevent_write(end.bev, text.data(), text.size());
  }

  ~TlsBufferevent() override {
    for (End& end : ends) end.drop();
    turn(3);
  }

  std::unique_ptr<event_base, FreeBase> base{event_base_new()};
  std::unique_ptr<SSL_CTX, FreeContext> context{make_context(TLS1_3_VERSION, 0)};
  int options = BEV_OPT_CLOSE_ON_FREE;
  End ends[2];
};

TEST_F(TlsBufferevent, HighWatermarkDoesNotLoseRestOfRecord) {
  for (const Way way : {Way::sockets, Way::filters, Way::pair}) {
    connect(way);
    bufferevent_setwatermark(ends[1].bev, EV_READ, 0, 100);
    ends[1].takes_most = 100;
    const std::string text = text_of(5000, 1);
    write(ends[0], text);
    for (int i = 0; i < 300 && ends[1].got.size() < text.size(); ++i) turn();
    EXPECT_TRUE(ends[1].got == text) << ends[1].got.size();
    for (End& end : ends) end.drop();
    ends[0] = ends[1] = End();
  }
}

TEST_F(TlsBufferevent, ReadsNoMoreThanHighWatermark) {
  for (const Way way : {Way::sockets, Way::filters, Way::pair}) {
    connect(way);
    bufferevent_setcb(ends[1].bev, nullptr, nullptr, nullptr, nullptr);
    bufferevent_setwatermark(ends[1].bev, EV_READ, 0, 100);
    write(ends[0], text_of(5000, 1));
    turn(20);
    EXPECT_EQ(evbuffer_get_length(bufferevent_get_input(ends[1].bev)), 100U);
    for (End& end : ends) end.drop();
    ends[0] = ends[1] = End();
  }
}

TEST_F(TlsBufferevent, MaxSingleWriteIsRespected) {
  connect(Way::filters);
  bufferevent_set_max_single_write(ends[0].bev, 10);
  bufferevent* under = bufferevent_get_underlying(ends[0].bev);
  bufferevent_disable(under, EV_WRITE);
  write(ends[0], text_of(100, 1));
  // Each record of ten bytes has a header and a tag.
  EXPECT_GT(evbuffer_get_length(bufferevent_get_output(under)), 10 * (10U + 5U + 16U));
}

TEST_F(TlsBufferevent, IncompleteWriteMayBeLimitedAfterwards) {
  connect(Way::sockets);
  const std::string text = text_of(1000000, 1);
  bufferevent_disable(ends[1].bev, EV_READ);
  write(ends[0], text);
  turn(5);
  bufferevent_set_max_single_write(ends[0].bev, 7000);
  bufferevent_enable(ends[1].bev, EV_READ);
  for (int i = 0; i < 1000 && ends[1].got.size() < text.size(); ++i) turn();
  EXPECT_EQ(ends[0].end, 0);
  EXPECT_TRUE(ends[1].got == text) << ends[1].got.size();
}

// The original does the same: OpenSSL has begun a record, and is not given it again.
TEST_F(TlsBufferevent, DrainingIncompleteWriteEndsConnection) {
  for (const std::size_t left : {0U, 5U}) {
    connect(Way::sockets);
    bufferevent_disable(ends[1].bev, EV_READ);
    write(ends[0], text_of(1000000, 1));
    turn(5);
    evbuffer* output = bufferevent_get_output(ends[0].bev);
    ASSERT_GT(evbuffer_get_length(output), left);
    EXPECT_EQ(evbuffer_drain(output, evbuffer_get_length(output) - left), 0);
    write(ends[0], "more");
    bufferevent_enable(ends[1].bev, EV_READ);
    for (int i = 0; i < 100 && ends[0].end == 0; ++i) turn();
    EXPECT_EQ(ends[0].end, BEV_EVENT_ERROR);
    for (End& end : ends) end.drop();
    ends[0] = ends[1] = End();
  }
}

TEST_F(TlsBufferevent, RateLimitStopsWritingUntilNextTick) {
  connect(Way::sockets);
  const timeval tick{3600, 0};
  ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(1000, 1000, 1000, 1000, &tick);
  bufferevent_set_rate_limit(ends[0].bev, rates);
  write(ends[0], text_of(5000, 1));
  turn(20);
  EXPECT_EQ(ends[1].got.size(), 1000U);
  EXPECT_LE(bufferevent_get_write_limit(ends[0].bev), 0);
  bufferevent_decrement_write_limit(ends[0].bev, -100000);
  turn(20);
  EXPECT_EQ(ends[1].got.size(), 5000U);
  bufferevent_set_rate_limit(ends[0].bev, nullptr);
  ev_token_bucket_cfg_free(rates);
}

TEST_F(TlsBufferevent, EnablingWritingInHandshakeDoesNotSpin) {
  int fds[2];
  open_ends(fds);
  ends[0].watch(on_socket(fds[0], BUFFEREVENT_SSL_CONNECTING));
  turn(3);
  bufferevent_enable(ends[0].bev, EV_READ | EV_WRITE);
  turn();
  EXPECT_EQ(event_pending(&ends[0].bev->ev_write, EV_WRITE, nullptr), 0);
  EXPECT_NE(event_pending(&ends[0].bev->ev_read, EV_READ, nullptr), 0);
  close(fds[1]);
}

TEST_F(TlsBufferevent, ReportsFailureAgainWhenReadingIsEnabled) {
  connect(Way::sockets);
  const evutil_socket_t fd = bufferevent_getfd(ends[0].bev);
  ASSERT_EQ(send(fd, "garbage", 7, MSG_NOSIGNAL), 7);
  turn(5);
  EXPECT_EQ(ends[1].end, BEV_EVENT_ERROR);
  ends[1].end = 0;
  turn(5);
  EXPECT_EQ(ends[1].end, 0);
  bufferevent_enable(ends[1].bev, EV_READ | EV_WRITE);
  write(ends[1], "more");
  turn(5);
  EXPECT_EQ(ends[1].end, BEV_EVENT_ERROR);
}

TEST_F(TlsBufferevent, WritesAreAllowedAfterCloseNotifyOfPeer) {
  for (const Way way : {Way::sockets, Way::filters, Way::pair}) {
    connect(way);
    SSL_shutdown(bufferevent_openssl_get_ssl(ends[0].bev));
    turn(5);
    EXPECT_EQ(ends[1].end, BEV_EVENT_EOF);
    write(ends[1], "a last word");
    turn(5);
    EXPECT_EQ(ends[0].got, "a last word");
    for (End& end : ends) end.drop();
    ends[0] = ends[1] = End();
  }
}

TEST_F(TlsBufferevent, PlainBuffereventIsRefused) {
  bufferevent* plain = bufferevent_socket_new(base.get(), -1, 0);
  EXPECT_EQ(bufferevent_openssl_get_ssl(plain), nullptr);
  EXPECT_EQ(bufferevent_openssl_get_allow_dirty_shutdown(plain), -1);
  bufferevent_openssl_set_allow_dirty_shutdown(plain, 1);
  EXPECT_EQ(bufferevent_ssl_renegotiate(plain), -1);
  EXPECT_EQ(bufferevent_get_openssl_error(plain), 0U);
  bufferevent_free(plain);
}

TEST_F(TlsBufferevent, MayBeFreedInAnyOfItsCallbacks) {
  for (const Way way : {Way::sockets, Way::filters, Way::pair}) {
    for (const int deferred : {0, +BEV_OPT_DEFER_CALLBACKS}) {
      options = BEV_OPT_CLOSE_ON_FREE | deferred;
      for (int which = 0; which < 3; ++which) {
        open(way);
        const auto drop = [](bufferevent*, void* end) { static_cast<End*>(end)->drop(); };
        const auto drop_at = [](bufferevent*, short, void* end) { static_cast<End*>(end)->drop(); };
        if (which == 2) turn(20);
        bufferevent_setcb(ends[0].bev, which == 0 ? +drop : nullptr, which == 1 ? +drop : nullptr,
                          which == 2 ? +drop_at : nullptr, &ends[0]);
        for (End& end : ends) write(end, "something");
        turn(20);
        ends[1].drop();
        turn(5);
        // The end of a pair's peer is not reported.
        EXPECT_TRUE(ends[0].bev == nullptr || (way == Way::pair && which == 2));
        ends[0].drop();
        ends[0] = ends[1] = End();
      }
    }
  }
}

// Everything written arrives, whatever is enabled and disabled meanwhile.
class RandomTls : public TlsBufferevent, public testing::WithParamInterface<unsigned> {
 protected:
  unsigned below_of(unsigned limit) { return static_cast<unsigned>(random()) % limit; }

  void change(End& end, std::string& sent) {
    const short what = below_of(2) == 0 ? EV_READ : EV_WRITE;
    switch (below_of(9)) {
      case 0:
        bufferevent_disable(end.bev, what);
        return;
      case 1:
        bufferevent_enable(end.bev, what);
        return;
      case 2:
        bufferevent_setwatermark(end.bev, EV_READ, 0, below_of(3) * below_of(20000));
        return;
      case 3:
        bufferevent_set_max_single_read(end.bev, below_of(2) * below_of(3000));
        return;
      case 4:
        bufferevent_set_max_single_write(end.bev, below_of(2) * below_of(3000));
        return;
      case 5:
        if (end.connected != 0 &&
            SSL_version(bufferevent_openssl_get_ssl(end.bev)) == TLS1_3_VERSION) {
          bufferevent_ssl_renegotiate(end.bev);  // TLS 1.2 forbids it while data is in flight.
        }
        return;
      default:
        const std::string text = text_of(below_of(below_of(4) == 0 ? 60000 : 300), below_of(1000));
        write(end, text);
        sent += text;
    }
  }
  void settle(const std::string (&sent)[2]) {
    for (End& end : ends) {
      bufferevent_setwatermark(end.bev, EV_READ, 0, 0);
      bufferevent_enable(end.bev, EV_READ | EV_WRITE);
    }
    for (int i = 0; i < 3000; ++i) {
      turn();
      if (ends[0].got.size() == sent[1].size() && ends[1].got.size() == sent[0].size()) return;
      for (End& end : ends) end.take(SIZE_MAX);
    }
  }

  std::minstd_rand random{GetParam() + 1};
};

TEST_P(RandomTls, LosesNothing) {
  context.reset(make_context(below_of(2) == 0 ? TLS1_2_VERSION : TLS1_3_VERSION, 0));
  options |= below_of(2) == 0 ? BEV_OPT_DEFER_CALLBACKS : 0;
  open(static_cast<Way>(below_of(3)));
  std::string sent[2];
  for (int step = 0; step < 150; ++step) {
    const unsigned which = below_of(2);
    change(ends[which], sent[which]);
    turn(static_cast<int>(below_of(3)));
    ends[which].takes_most = below_of(2) == 0 ? SIZE_MAX : below_of(5000);
  }
  settle(sent);
  EXPECT_EQ(ends[0].end | ends[1].end, 0);
  EXPECT_TRUE(ends[1].got == sent[0]) << ends[1].got.size() << " of " << sent[0].size();
  EXPECT_TRUE(ends[0].got == sent[1]) << ends[0].got.size() << " of " << sent[1].size();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTls, testing::Range(0U, 24U));

// The original's filters begin a second handshake while they still remember the first.
TEST_F(TlsBufferevent, FilterMovesToAnotherDescriptorInEachState) {
  for (const bool is_enabled : {false, true}) {
    for (const int earlier : {0, 1, 40}) {
      open(Way::filters);
      turn(earlier);
      int fds[2];
      open_ends(fds);
      bufferevent* client = ends[0].bev;
      if (!is_enabled) bufferevent_disable(client, EV_READ | EV_WRITE);
      const int old = bufferevent_getfd(client);
      ASSERT_EQ(bufferevent_setfd(client, fds[0]), 0);
      ::close(old);
      ends[1].drop();
      ends[1] = {};
      ends[1].watch(on_socket(fds[1], BUFFEREVENT_SSL_ACCEPTING));
      bufferevent_enable(ends[1].bev, EV_READ | EV_WRITE);
      bufferevent_enable(client, EV_READ | EV_WRITE);
      ends[0].connected = 0;
      write(ends[0], "hello");
      for (int i = 0; i < 100 && ends[1].got.empty(); ++i) turn();
      EXPECT_EQ(ends[0].connected, 1) << earlier;
      EXPECT_EQ(ends[1].got, "hello") << earlier;
      for (End& end : ends) end.drop();
      ends[0] = ends[1] = {};
    }
  }
}

TEST_F(TlsBufferevent, FilterConnectsUnderlyingBufferevent) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  ASSERT_EQ(::bind(listener, name, size), 0);
  ASSERT_EQ(::listen(listener, 5), 0);
  ::getsockname(listener, name, &size);
  for (const bool by_name : {false, true}) {
    ends[0].watch(on_below(below(-1), BUFFEREVENT_SSL_CONNECTING));
    bufferevent_enable(ends[0].bev, EV_READ | EV_WRITE);
    const int result =
        by_name ? bufferevent_socket_connect_hostname(ends[0].bev, nullptr, AF_INET, "127.0.0.1",
                                                      ntohs(address.sin_port))
                : bufferevent_socket_connect(ends[0].bev, name, static_cast<int>(size));
    ASSERT_EQ(result, 0);
    turn(2);
    const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    ASSERT_GE(accepted, 0);
    ends[1].watch(on_socket(accepted, BUFFEREVENT_SSL_ACCEPTING));
    bufferevent_enable(ends[1].bev, EV_READ | EV_WRITE);
    write(ends[1], "hello");
    for (int i = 0; i < 100 && ends[0].got.empty(); ++i) turn();
    EXPECT_EQ(ends[0].got, "hello");
    for (End& end : ends) end.drop();
    ends[0] = ends[1] = {};
  }
  ::close(listener);
}

}  // namespace
}  // namespace spate::dropin
