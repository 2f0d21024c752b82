// Shared by the tests of Workers.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "spate/net/connect.h"
#include "spate/net/workers.h"
#include "spate/timer.h"
#include "tests/support/balances.h"

namespace spate::testing {

using namespace std::chrono_literals;

// Echoes until the peer ends. It belongs to its thread, and is destroyed with it at the latest.
class Echo final : public StreamHandler {
 public:
  static inline std::atomic<int> alive{0};

  explicit Echo(Stream stream) : stream_(std::move(stream)) {
    ++alive;
    stream_.start(*this);
  }
  std::size_t on_data(Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override {
    own().remove_if([this](const auto& one) { return one.get() == this; });
  }
  static void make(Stream stream) { own().push_back(std::make_unique<Echo>(std::move(stream))); }
  ~Echo() { --alive; }

 private:
  static std::list<std::unique_ptr<Echo>>& own() {
    thread_local std::list<std::unique_ptr<Echo>> sessions;
    return sessions;
  }

  Stream stream_;
};

// Connects, sends, waits for the echo, and keeps the connection.
class Client final : public StreamHandler {
 public:
  Client(Loop& loop, const Address& address, int& echoed) : echoed_(echoed) {
    connecting_ = connect(loop, address, [this](Result<Stream> made) {
      ASSERT_TRUE(made) << made.error().message();
      stream_ = std::move(*made);
      stream_.start(*this);
      stream_.write("hello");
    });
  }
  std::size_t on_data(Bytes bytes) override {
    received_ += text_of(bytes);
    if (is_served()) ++echoed_;
    return bytes.size();
  }
  bool is_served() const { return received_ == "hello"; }
  void on_closed(std::error_code) override { ++closed; }
  int closed = 0;

 private:
  int& echoed_;
  Connecting connecting_;
  Stream stream_;
  std::string received_;
};

class WorkersTest : public ::testing::TestWithParam<Balance> {
 protected:
  void run_until(const std::function<bool()>& done) {
    bool late = false;
    Timer limit(*loop_, [&late] { late = true; });
    limit.start(30s);
    Timer look(*loop_, [] {});  // Polls, since other threads do not wake this loop.
    look.start(2ms, 2ms);
    while (!done() && !late) loop_->run(Run::once);
    EXPECT_TRUE(done());
  }
  std::size_t connections(const Workers& workers) {
    std::size_t sum = 0;
    for (unsigned i = 0; i < workers.count(); ++i) sum += workers.connections(i);
    return sum;
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
};

inline const auto kEcho = [](Stream stream, const Address&) { Echo::make(std::move(stream)); };

}  // namespace spate::testing
