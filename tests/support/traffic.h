// Some traffic of each kind in a loop, with an account of it: for tests that make the system fail
// meanwhile.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>

#include "spate/async.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/signal.h"
#include "spate/timer.h"

namespace spate::testing {

// Bytes through a socket, a timer, tasks and sends of another thread, signals. Ends by itself when
// everything has arrived; a spurious callback is allowed, a lost one keeps the loop from ending.
class Traffic {
 public:
  static constexpr int kBytes = 200'000;
  static constexpr int kTicks = 10;
  static constexpr int kPosts = 500;
  static constexpr int kSignals = 5;

  explicit Traffic(Loop& loop) : loop_(loop) {
    ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets_);
    reader_.set(sockets_[0], Events::read);
    writer_.set(sockets_[1], Events::write);
  }
  ~Traffic() {
    if (producer_.joinable()) producer_.join();
    reader_.stop();
    writer_.stop();
    ::close(sockets_[0]);
    ::close(sockets_[1]);
  }

  bool start() {
    if (signal_.start(SIGUSR1)) return false;
    if (!reader_.start() || !writer_.start() || !ticker_.start(kTick, kTick) || !async_.start())
      return false;
    started_ = loop_.now();
    guard_.start(std::chrono::seconds{20});
    loop_.unref();
    producer_ = std::thread([this] { produce(); });
    ::raise(SIGUSR1);
    return true;
  }
  // Runs until everything has arrived, whatever errors the waits return.
  void run() {
    while (!is_through() && !gave_up) {
      if (loop_.run()) ++errors;
    }
    loop_.ref();
    guard_.stop();
  }

  bool is_through() const {
    return received == kBytes && ticks == kTicks && posts == kPosts && saw_last_send &&
           signals == kSignals;
  }

  int received = 0;
  int ticks = 0;
  int posts = 0;
  int sends_seen = 0;
  int signals = 0;
  int errors = 0;
  bool saw_last_send = false;
  bool in_order = true;
  bool early = false;
  bool gave_up = false;

 private:
  static constexpr Nanos kTick{1'300'000};

  void read() {
    unsigned char buffer[3000];
    const ssize_t size = ::read(sockets_[0], buffer, sizeof(buffer));
    for (ssize_t i = 0; i < size; ++i) {
      in_order = in_order && buffer[i] == static_cast<unsigned char>(received * 7);
      ++received;
    }
    if (received == kBytes) reader_.stop();
  }
  void write() {
    unsigned char buffer[5000];
    int size = 0;
    for (; size < 5000 && sent_ + size < kBytes; ++size) {
      buffer[size] = static_cast<unsigned char>((sent_ + size) * 7);
    }
    const ssize_t written = ::write(sockets_[1], buffer, static_cast<std::size_t>(size));
    if (written > 0) sent_ += static_cast<int>(written);
    if (sent_ == kBytes) writer_.stop();
  }
  void tick() {
    early = early || loop_.now() < started_ + kTick * (ticks + 1);
    if (++ticks == kTicks) ticker_.stop();
  }
  void on_signal() {
    if (++signals == kSignals) {
      signal_.stop();
    } else {
      ::raise(SIGUSR1);
    }
  }
  void on_async() {
    ++sends_seen;
    saw_last_send = all_sent_.load();
    if (saw_last_send) async_.stop();
  }
  void on_post(int i) {
    in_order = in_order && posts == i;
    ++posts;
  }
  void produce() {
    for (int i = 0; i < kPosts; ++i) {
      while (!loop_.post([this, i] { on_post(i); })) {
      }
      async_.send();
    }
    all_sent_.store(true);
    async_.send();
  }

  Loop& loop_;
  int sockets_[2];
  int sent_ = 0;
  Nanos started_{0};
  std::atomic<bool> all_sent_{false};
  std::thread producer_;
  Io reader_{loop_, bind<&Traffic::read>(this)};
  Io writer_{loop_, bind<&Traffic::write>(this)};
  Timer ticker_{loop_, bind<&Traffic::tick>(this)};
  Signal signal_{loop_, bind<&Traffic::on_signal>(this)};
  Async async_{loop_, bind<&Traffic::on_async>(this)};
  Timer guard_{loop_, [this] {
                 gave_up = true;
                 loop_.stop_all();
               }};
};

}  // namespace spate::testing
