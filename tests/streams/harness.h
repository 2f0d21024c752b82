// Shared by the tests of streams: two connected ends of any kind, and handlers that record their
// callbacks.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
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

// True in the program that runs these tests in a World, which simulates the loop, the clock and the
// sockets. Pipes, files and other processes cannot reach them.
inline bool in_a_world = false;

// Records all callbacks; the functions, where set, decide the reaction.
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

// Runs until `done`, or fails after a time by which an event must have been lost.
inline void run_until(Loop& loop, const std::function<bool()>& done) {
  bool late = false;
  Timer limit(loop, [&late] { late = true; });
  while (!limit.start(std::chrono::seconds(30))) {  // Some tests make memory run out.
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

// A write of this size leaves bytes in the queue of a Stream whose peer does not read.
inline constexpr std::size_t kMoreThanAKernelTakes = 8'000'000;

// Returns letters that depend on their position.
inline std::string pattern(std::size_t size) {
  std::string bytes(size, ' ');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i % 26 + i / 1000 % 3);
  return bytes;
}

// Opens a file without a name.
inline int file_with(std::string_view content) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<long>(content.size()));
  return fd;
}

enum class Kind { memory, local, tcp, tls_memory, tls_local };
inline constexpr Kind kKinds[] = {Kind::memory, Kind::local, Kind::tcp, Kind::tls_memory,
                                  Kind::tls_local};
inline void PrintTo(Kind kind, std::ostream* out) {
  static constexpr const char* kNames[] = {"memory", "local", "tcp", "tls_memory", "tls_local"};
  *out << kNames[static_cast<int>(kind)];
}
inline std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  return ::testing::PrintToString(info.param);
}

// Differences over TLS:
//   release(), send_descriptors()    EOPNOTSUPP
//   fd(), socket options             those of the socket below
//   a reset, or a peer that is gone  is always reported; on a unix socket it looks like EOF
constexpr bool is_tls(Kind kind) { return kind == Kind::tls_memory || kind == Kind::tls_local; }
// Returns the transport below TLS.
constexpr Kind plain(Kind kind) {
  if (!is_tls(kind)) return kind;
  return kind == Kind::tls_memory ? Kind::memory : Kind::local;
}
constexpr bool is_in_memory(Kind kind) { return plain(kind) == Kind::memory; }
constexpr bool has_socket(Kind kind) { return !is_in_memory(kind); }
// Returns whether release() succeeds.
constexpr bool has_bare_socket(Kind kind) { return has_socket(kind) && !is_tls(kind); }
// Returns whether the peer can distinguish a reset from an end. A unix socket reports a reset only
// if input was left unread.
constexpr bool knows_resets(Kind kind) { return kind != Kind::local; }

// Generators of parameters. A test that some kinds cannot pass belongs to a separate suite, which
// is instantiated with the others, so that a missing combination is not a skipped test.
inline auto all_kinds() { return ::testing::ValuesIn(kKinds); }
inline auto kinds_where(bool (*holds)(Kind kind)) {
  std::vector<Kind> kinds;
  std::ranges::copy_if(kKinds, std::back_inserter(kinds), holds);
  return ::testing::ValuesIn(kinds);
}

// Two ends of a connection of any kind.
Result<std::pair<Stream, Stream>> make_pair(Loop& loop, Kind kind);

// A test of each kind, with predicates for its properties.
class KindTest : public ::testing::TestWithParam<Kind> {
 protected:
  bool is_tls() const { return testing::is_tls(GetParam()); }
  bool is_in_memory() const { return testing::is_in_memory(GetParam()); }
  bool has_bare_socket() const { return testing::has_bare_socket(GetParam()); }
  bool knows_resets() const { return testing::knows_resets(GetParam()); }
  bool is_reset(std::error_code error) const {
    return error == std::errc::connection_reset || (is_tls() && error == Error::tls_truncated);
  }
};

// Two ends of a connection, `left` and `right`, each with a started Recorder.
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

// How late an idle timeout, and the timeout of a peer that does not end, may be.
inline constexpr Nanos kTicks{3'000'000};

struct OwnClock {
  ScriptedClock clock_;
};

// While it exists, the kernel's send() accepts nothing. A real kernel accepts bytes as long as it
// has memory, so a test cannot fill it reliably.
class FullKernel {
 public:
  FullKernel() { plan_.fail_nth(SystemCall::send, 1, EAGAIN, UINT64_MAX); }

 private:
  FaultPlan plan_;
  FaultScope scope_{plan_};
};

// For a clock that stands still: waiting would never end.
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
