// What the tests of streams share: two connected ends of any kind, and handlers that note what they
// are told.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "spate/loop.h"
#include "spate/net/stream.h"
#include "spate/timer.h"
#include "support/running.h"
#include "support/scripted.h"

namespace spate::testing {

// Notes everything; the functions, where set, are asked what to do.
class Recorder final : public StreamHandler {
 public:
  std::size_t on_data(Bytes bytes) override {
    ++data_calls;
    const std::size_t used = use ? use(bytes) : bytes.size();
    received.append(text_of(bytes.first(used)));
    return used;
  }
  void on_end() override {
    log += "end ";
    if (when_ended) when_ended();
  }
  void on_drained() override {
    log += "drained ";
    if (when_drained) when_drained();
  }
  void on_closed(std::error_code why) override {
    log += "closed ";
    ++closed_calls;
    error = why;
    if (when_closed) when_closed();
  }

  std::function<std::size_t(Bytes)> use;
  std::function<void()> when_ended;
  std::function<void()> when_drained;
  std::function<void()> when_closed;
  std::string received;
  std::string log;
  std::error_code error;
  int data_calls = 0;
  int closed_calls = 0;
};

// Echoes; owns itself.
class Echo final : public StreamHandler {
 public:
  explicit Echo(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  std::size_t on_data(Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { delete this; }

 private:
  ~Echo() = default;
  Stream stream_;
};

// Runs until `done`, or fails after so long that something must have been lost.
inline void run_until(Loop& loop, const std::function<bool()>& done) {
  bool late = false;
  Timer limit(loop, [&late] { late = true; });
  while (!limit.start(std::chrono::seconds(30))) {  // Some tests take the memory away.
  }
  loop.unref();
  while (!done() && !late) {
    if (loop.run(Run::once)) break;
  }
  loop.ref();
  EXPECT_TRUE(done());
}

inline void run_turns(Loop& loop, int turns) {
  for (int i = 0; i < turns; ++i) loop.run(Run::no_wait);
}

// Letters that tell where in it a byte belongs.
inline std::string pattern(std::size_t size) {
  std::string bytes(size, ' ');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i % 26 + i / 1000 % 3);
  return bytes;
}

// An open file without a name.
inline int file_with(std::string_view content) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<long>(content.size()));
  return fd;
}

enum class Kind { memory, local, tcp, tls_memory, tls_local };
inline std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  static constexpr const char* kNames[] = {"memory", "local", "tcp", "tls_memory", "tls_local"};
  return kNames[static_cast<int>(info.param)];
}
inline auto all_kinds() {
  return ::testing::Values(Kind::memory, Kind::local, Kind::tcp, Kind::tls_memory, Kind::tls_local);
}
// What differs over TLS:
//   release(), send_descriptors()    EOPNOTSUPP
//   fd(), socket options             those of the socket below
//   a reset, or a peer that is gone  is always known: a unix socket's looks like an end otherwise
inline bool is_tls(Kind kind) { return kind == Kind::tls_memory || kind == Kind::tls_local; }
// What is below TLS.
inline Kind plain(Kind kind) {
  if (!is_tls(kind)) return kind;
  return kind == Kind::tls_memory ? Kind::memory : Kind::local;
}

// Two ends of a connection of any kind.
Result<std::pair<Stream, Stream>> make_pair(Loop& loop, Kind kind);

// A test of each kind, and what it may expect of that.
class KindTest : public ::testing::TestWithParam<Kind> {
 protected:
  bool is_tls() const { return testing::is_tls(GetParam()); }
  // Whether the end tells that the peer has lost something. A unix socket knows that only when
  // input was left unread.
  bool knows_resets() const { return GetParam() != Kind::local; }
  bool is_reset(std::error_code error) const {
    return error == std::errc::connection_reset || (is_tls() && error == Error::tls_truncated);
  }
  // One that can be given away.
  bool has_bare_socket() const { return !is_in_memory() && !is_tls(); }
  bool is_in_memory() const { return plain(GetParam()) == Kind::memory; }
};

// Two ends of a connection, `left` and `right`, each with a Recorder that has been started.
class StreamTest : public KindTest {
 protected:
  explicit StreamTest(const LoopOptions& options = {});

  std::unique_ptr<Loop> owned_;
  Loop& loop_;
  Stream left_;
  Stream right_;
  Recorder left_log_;
  Recorder right_log_;
};

// An idle timeout, and the patience with a peer that does not end, may be so much late.
inline constexpr Nanos kTicks{3'000'000};

struct OwnClock {
  ScriptedClock clock_;
};

// While it lives, the kernel takes nothing more: of itself it goes on for as long as it has memory,
// and moves bytes when it finds the time.
class FullKernel {
 public:
  FullKernel() { plan_.fail_nth(SystemCall::send, 1, EAGAIN, UINT64_MAX); }

 private:
  FaultPlan plan_;
  FaultScope scope_{plan_};
};

// For a clock that stands still: waiting would be for ever.
inline void turn_until(Loop& loop, const std::function<bool()>& done) {
  const auto begin = std::chrono::steady_clock::now();
  while (!done() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
    run_turns(loop, 20);
  EXPECT_TRUE(done());
}

// On a clock that the test moves.
class TimedStreamTest : protected OwnClock, public StreamTest {
 protected:
  TimedStreamTest() : StreamTest({.clock = &clock_}) {}

  void pass(Nanos time) {
    clock_.advance(time);
    turns();
  }
  void turns() { run_turns(loop_, 20); }
  void turn_until(const std::function<bool()>& done) { testing::turn_until(loop_, done); }
};

}  // namespace spate::testing
