// An event base whose loop runs on another thread, and descriptors and events that are freed
// automatically.
#pragma once

#include <event2/event.h>
#include <event2/thread.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <semaphore>
#include <string_view>
#include <thread>
#include <utility>

namespace spate::dropin {

struct FreeEvent {
  void operator()(event* ev) const { event_free(ev); }
};
using Event = std::unique_ptr<event, FreeEvent>;

struct FreeBase {
  void operator()(event_base* base) const { event_base_free(base); }
};
using Base = std::unique_ptr<event_base, FreeBase>;

// Sets locks for the bases that are created after this. `method` is one of libevent's, or
// "changelist".
inline Base make_base(std::string_view method) {
  evthread_use_pthreads();
  event_config* config = event_config_new();
  if (method == "changelist") event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
  if (method == "poll" || method == "select") event_config_avoid_method(config, "epoll");
  if (method == "select") event_config_avoid_method(config, "poll");
  Base base(event_base_new_with_config(config));
  event_config_free(config);
  return base;
}

class RunningBase {
 public:
  explicit RunningBase(Base base) : base_(std::move(base)) {
    // A break before the loop runs would be forgotten.
    event_base_once(
        get(), -1, EV_TIMEOUT,
        [](int, short, void* turns) { static_cast<std::binary_semaphore*>(turns)->release(); },
        &turns_, nullptr);
    thread_ = std::thread([this] { event_base_loop(get(), EVLOOP_NO_EXIT_ON_EMPTY); });
    turns_.acquire();
  }
  ~RunningBase() { stop(); }
  RunningBase(const RunningBase&) = delete;
  RunningBase& operator=(const RunningBase&) = delete;

  event_base* get() const { return base_.get(); }
  void stop() {
    if (!thread_.joinable()) return;
    event_base_loopbreak(get());
    thread_.join();
  }

 private:
  Base base_;
  std::binary_semaphore turns_{0};
  std::thread thread_;
};

class SocketPair {
 public:
  SocketPair() { ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()); }
  ~SocketPair() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  int watched() const { return ends_[0]; }
  void send() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
  void drain() const {
    std::array<char, 64> bytes;
    while (::read(ends_[0], bytes.data(), bytes.size()) > 0) {
    }
  }

 private:
  std::array<int, 2> ends_{};
};

inline timeval micros(long value) { return {value / 1'000'000, value % 1'000'000}; }

}  // namespace spate::dropin
