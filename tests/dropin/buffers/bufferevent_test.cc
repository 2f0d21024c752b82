// Bufferevents with threads: several threads write to, free and move connections while a loop runs
// them.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <string>
#include <vector>

#include "../../support/await.h"
#include "../threads/running_base.h"

namespace spate::dropin {
namespace {

constexpr int kThreads = 3;

template <class F>
void in_threads(F work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

struct FreeBuffer {
  void operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
};
using Buffer = std::unique_ptr<evbuffer, FreeBuffer>;

Buffer make_locked() {
  evthread_use_pthreads();
  Buffer buffer(evbuffer_new());
  EXPECT_EQ(evbuffer_enable_locking(buffer.get(), nullptr), 0);
  return buffer;
}

// Returns the number of bytes until the end of the stream.
std::size_t read_to_end(int fd) {
  std::array<char, 4096> bytes;
  std::size_t total = 0;
  for (;;) {
    testing::await(fd, POLLIN);
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got <= 0) return total;
    total += static_cast<std::size_t>(got);
  }
}

// A bufferevent with pending callbacks outlives its base, as libevent's does.
void wait_until_idle(event_base* base) {
  while (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE) != 0) std::this_thread::yield();
}

TEST(ThreadSafeEvBuffer, LosesNothingBetweenThreads) {
  Buffer buffer = make_locked();
  std::atomic<std::size_t> taken{0};
  in_threads([&](int) {
    for (int round = 0; round < 2000; ++round) {
      char bytes[7];
      evbuffer_add(buffer.get(), "0123456", 7);
      const int got = evbuffer_remove(buffer.get(), bytes, 5);
      taken += static_cast<std::size_t>(got);
    }
  });
  EXPECT_EQ(taken + evbuffer_get_length(buffer.get()), kThreads * 2000 * 7U);
}

TEST(ThreadSafeEvBuffer, MovesDataBetweenTwoBuffersInBothDirections) {
  Buffer one = make_locked();
  Buffer other = make_locked();
  evbuffer_add(one.get(), "0123456789", 10);
  in_threads([&](int number) {
    evbuffer* from = number % 2 == 0 ? one.get() : other.get();
    evbuffer* to = number % 2 == 0 ? other.get() : one.get();
    for (int round = 0; round < 2000; ++round) {
      evbuffer_remove_buffer(from, to, 3);
      evbuffer_add_buffer(to, from);
    }
  });
  EXPECT_EQ(evbuffer_get_length(one.get()) + evbuffer_get_length(other.get()), 10U);
}

TEST(ThreadSafeEvBuffer, AllowsAnyThreadToDropViews) {
  std::atomic<int> given_back{0};
  for (int round = 0; round < 100; ++round) {
    Buffer source = make_locked();
    evbuffer_add_reference(
        source.get(), "lent", 4,
        [](const void*, std::size_t, void* count) { ++*static_cast<std::atomic<int>*>(count); },
        &given_back);
    std::vector<Buffer> views;
    for (int i = 0; i < kThreads; ++i) {
      views.push_back(make_locked());
      evbuffer_add_buffer_reference(views.back().get(), source.get());
    }
    source.reset();
    in_threads([&](int number) { views[static_cast<std::size_t>(number)].reset(); });
  }
  EXPECT_EQ(given_back, 100);
}

// The original gives the filter no event when the underlying socket has connected.
TEST(Filter, ReportsResultOfConnecting) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  ASSERT_EQ(::bind(listener, name, size), 0);
  ::getsockname(listener, name, &size);
  event_base* base = event_base_new();
  for (const bool listens : {false, true}) {
    if (listens) ASSERT_EQ(::listen(listener, 5), 0);
    bufferevent* below = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    bufferevent* bev =
        bufferevent_filter_new(below, nullptr, nullptr, BEV_OPT_CLOSE_ON_FREE, nullptr, nullptr);
    int reported = 0;
    const auto on_event = [](bufferevent*, short what, void* all) {
      *static_cast<int*>(all) |= what;
    };
    bufferevent_setcb(bev, nullptr, nullptr, on_event, &reported);
    EXPECT_EQ(bufferevent_socket_connect(bev, name, static_cast<int>(size)), 0);
    for (int i = 0; i < 5; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
    EXPECT_EQ(reported, listens ? BEV_EVENT_CONNECTED : BEV_EVENT_ERROR);
    bufferevent_free(bev);
    event_base_loop(base, EVLOOP_NONBLOCK);
  }
  ::close(listener);
  event_base_free(base);
}

TEST(ThreadSafeBufferevent, SendsDataOfAllThreads) {
  RunningBase base(make_base("epoll"));
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const int options = BEV_OPT_THREADSAFE | BEV_OPT_CLOSE_ON_FREE;
  bufferevent* bev = bufferevent_socket_new(base.get(), ends[0], options);
  std::size_t arrived = 0;
  std::thread reader([&] { arrived = read_to_end(ends[1]); });
  in_threads([bev](int) {
    for (int round = 0; round < 500; ++round) bufferevent_write(bev, "0123456789", 10);
  });
  for (bool is_empty = false; !is_empty; std::this_thread::yield()) {
    bufferevent_lock(bev);
    is_empty = evbuffer_get_length(bufferevent_get_output(bev)) == 0;
    bufferevent_unlock(bev);
  }
  bufferevent_free(bev);
  reader.join();
  EXPECT_EQ(arrived, kThreads * 500 * 10U);
  ::close(ends[1]);
}

// The peer sees the end of each: none is leaked, and none is used after it was freed.
TEST(ThreadSafeBufferevent, MayBeFreedByAnyThreadDuringRead) {
  for (const int more : {0, static_cast<int>(BEV_OPT_DEFER_CALLBACKS),
                         BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS}) {
    RunningBase base(make_base("epoll"));
    in_threads([&base, more](int) {
      for (int round = 0; round < 100; ++round) {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        bufferevent* bev = bufferevent_socket_new(
            base.get(), ends[0], BEV_OPT_THREADSAFE | BEV_OPT_CLOSE_ON_FREE | more);
        bufferevent_setcb(
            bev,
            [](bufferevent* self, void*) {
              evbuffer_add_buffer(bufferevent_get_output(self), bufferevent_get_input(self));
            },
            nullptr, [](bufferevent*, short, void*) {}, nullptr);
        bufferevent_enable(bev, EV_READ);
        EXPECT_EQ(::write(ends[1], "hello", 5), 5);
        if (round % 3 == 0) std::this_thread::yield();
        bufferevent_free(bev);
        read_to_end(ends[1]);
        ::close(ends[1]);
      }
    });
  }
}

TEST(ThreadSafeBufferevent, AllowsTwoThreadsToWriteAndFreePair) {
  RunningBase base(make_base("epoll"));
  for (int round = 0; round < 50; ++round) {
    bufferevent* pair[2];
    ASSERT_EQ(bufferevent_pair_new(base.get(), BEV_OPT_THREADSAFE, pair), 0);
    for (bufferevent* end : pair) {
      bufferevent_setcb(
          end, [](bufferevent* self, void*) { evbuffer_drain(bufferevent_get_input(self), 1000); },
          nullptr, nullptr, nullptr);
      bufferevent_enable(end, EV_READ);
    }
    const auto use = [](bufferevent* end) {
      for (int i = 0; i < 50; ++i) bufferevent_write(end, "0123456789", 10);
      bufferevent_pair_get_partner(end);
      bufferevent_free(end);
    };
    std::thread one(use, pair[0]);
    std::thread other(use, pair[1]);
    one.join();
    other.join();
  }
  wait_until_idle(base.get());
}

TEST(ThreadSafeBufferevent, RespectsGroupLimitAcrossTwoBases) {
  RunningBase one(make_base("epoll"));
  RunningBase other(make_base("epoll"));
  const timeval tick{0, 1000};
  ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(4096, 4096, 4096, 4096, &tick);
  bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(one.get(), rates);
  in_threads([&](int number) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    event_base* base = number % 2 == 0 ? one.get() : other.get();
    bufferevent* bev =
        bufferevent_socket_new(base, ends[0], BEV_OPT_THREADSAFE | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(
        bev, nullptr, [](bufferevent* self, void*) { bufferevent_free(self); }, nullptr, nullptr);
    const std::string bytes(20'000, 'x');
    bufferevent_lock(bev);  // With an empty output, the write callback may free it.
    bufferevent_add_to_rate_limit_group(bev, group);
    bufferevent_write(bev, bytes.data(), bytes.size());
    bufferevent_unlock(bev);
    EXPECT_EQ(read_to_end(ends[1]), bytes.size());
    ::close(ends[1]);
  });
  ev_uint64_t written = 0;
  bufferevent_rate_limit_group_get_totals(group, nullptr, &written);
  EXPECT_EQ(written, kThreads * 20'000U);
  one.stop();
  other.stop();
  bufferevent_rate_limit_group_free(group);
  ev_token_bucket_cfg_free(rates);
}

TEST(ThreadSafeListener, MayBeFreedByAnotherThreadDuringAccepts) {
  RunningBase base(make_base("epoll"));
  for (int round = 0; round < 30; ++round) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::atomic<int> accepted{0};
    evconnlistener* listener = evconnlistener_new_bind(
        base.get(),
        [](evconnlistener*, int fd, sockaddr*, int, void* count) {
          ++*static_cast<std::atomic<int>*>(count);
          ::close(fd);
        },
        &accepted, LEV_OPT_THREADSAFE | LEV_OPT_CLOSE_ON_FREE, -1,
        reinterpret_cast<sockaddr*>(&address), sizeof address);
    ASSERT_NE(listener, nullptr);
    socklen_t size = sizeof address;
    ::getsockname(evconnlistener_get_fd(listener), reinterpret_cast<sockaddr*>(&address), &size);
    for (int i = 0; i < 3; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
      ::close(fd);
    }
    evconnlistener_free(listener);
    const int at_return = accepted;
    std::this_thread::yield();
    EXPECT_EQ(accepted, at_return);
  }
}

}  // namespace
}  // namespace spate::dropin
