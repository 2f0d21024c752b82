// Bufferevents on OpenSSL with BEV_OPT_THREADSAFE: threads write to both ends, and change them,
// while the loop runs in another thread. Everything arrives, in each thread's order.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ostream>
#include <thread>
#include <vector>

#include "../differential/openssl_ends.h"
#include "running_base.h"

namespace spate::dropin {
namespace {

constexpr int kWriters = 3;
constexpr int kMessages = 300;
constexpr std::size_t kMessageSize = 40;

enum class Way { sockets, filters };
void PrintTo(Way way, std::ostream* out) { *out << (way == Way::sockets ? "sockets" : "filters"); }

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

// A message is the number of its writer, then its own.
struct End {
  std::array<int, kWriters> next{};  // Used by the loop's thread only.
  std::atomic<int> got{0};
  std::atomic<int> errors{0};
  bufferevent* bev = nullptr;

  void open(event_base* base, SSL_CTX* context, int fd, bool serves, Way way, int options) {
    const auto state = serves ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING;
    SSL* ssl = SSL_new(context);
    bev = way == Way::sockets
              ? bufferevent_openssl_socket_new(base, fd, ssl, state, options)
              : bufferevent_openssl_filter_new(base, bufferevent_socket_new(base, fd, options), ssl,
                                               state, options);
    bufferevent_setcb(bev, on_read, nullptr, on_event, this);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
  }
  static void on_read(bufferevent* bev, void* argument) {
    auto& self = *static_cast<End*>(argument);
    std::array<unsigned char, kMessageSize> message;
    evbuffer* input = bufferevent_get_input(bev);
    while (evbuffer_get_length(input) >= message.size()) {
      evbuffer_copyout(input, message.data(), message.size());
      const std::size_t writer = message[0] % kWriters;
      const int number = message[1] * 256 + message[2];
      if (number != self.next[writer]++) ++self.errors;
      ++self.got;
      // Above the high mark, reading resumes here, and calls this once more from within.
      evbuffer_drain(input, message.size());
    }
  }
  static void on_event(bufferevent*, short what, void* argument) {
    if (what != BEV_EVENT_CONNECTED) ++static_cast<End*>(argument)->errors;
  }
};

void write_messages(bufferevent* bev, int writer) {
  for (int i = 0; i < kMessages; ++i) {
    std::array<unsigned char, kMessageSize> message{static_cast<unsigned char>(writer),
                                                    static_cast<unsigned char>(i / 256),
                                                    static_cast<unsigned char>(i % 256)};
    bufferevent_write(bev, message.data(), message.size());
  }
}

// Operations that are allowed on an end to which others write.
void change(bufferevent* bev, int step) {
  switch (step % 5) {
    case 0:
      bufferevent_disable(bev, EV_READ);
      bufferevent_enable(bev, EV_READ);
      return;
    case 1:
      bufferevent_set_max_single_write(bev, step % 2 != 0 ? 100 : 0);
      return;
    case 2:
      bufferevent_setwatermark(bev, EV_READ, 0, step % 2 != 0 ? 4000 : 0);
      return;
    case 3:
      bufferevent_openssl_set_allow_dirty_shutdown(bev, step % 2);
      return;
    default:
      bufferevent_lock(bev);
      evbuffer_get_length(bufferevent_get_output(bev));
      bufferevent_unlock(bev);
  }
}

class TlsThreads : public testing::TestWithParam<std::tuple<Way, int>> {};

TEST_P(TlsThreads, ThreadsWriteToBothEndsWhileLoopRuns) {
  const auto [way, deferred] = GetParam();
  const int options = BEV_OPT_THREADSAFE | BEV_OPT_CLOSE_ON_FREE | deferred;
  std::signal(SIGPIPE, SIG_IGN);
  RunningBase running(make_base("epoll"));
  const Context context(make_context(TLS1_3_VERSION, 0));
  int fds[2];
  open_ends(fds);
  std::array<End, 2> ends;
  for (int i = 0; i < 2; ++i)
    ends[i].open(running.get(), context.get(), fds[i], i == 1, way, options);
  std::vector<std::thread> threads;
  for (End& end : ends) {
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back(write_messages, end.bev, writer);
    }
    threads.emplace_back([&end] {
      for (int step = 0; step < 200; ++step) change(end.bev, step);
      bufferevent_setwatermark(end.bev, EV_READ, 0, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const End& end : ends) {
    while (end.got < kWriters * kMessages && end.errors == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(end.errors, 0);
  }
  for (End& end : ends) bufferevent_free(end.bev);
  running.stop();
}

INSTANTIATE_TEST_SUITE_P(All, TlsThreads,
                         testing::Combine(testing::Values(Way::sockets, Way::filters),
                                          testing::Values(0, +BEV_OPT_DEFER_CALLBACKS)));

}  // namespace
}  // namespace spate::dropin
