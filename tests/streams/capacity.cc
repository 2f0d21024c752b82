// Many connections, many of them one after another, and a peer that does not keep up: memory is
// freed, and nothing grows.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "support/make_loop.h"
#include "support/missing.h"
#include "support/sanitizers.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

// Returns the bytes that the program has allocated. A sanitizer replaces malloc, and does not
// count.
std::size_t allocated() { return ::mallinfo2().uordblks; }

// Raises the limit of descriptors to the system's, while it exists.
class MoreDescriptors {
 public:
  MoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit max{.rlim_cur = before_.rlim_max, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &max);
  }
  ~MoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  bool has(rlim_t count) const { return before_.rlim_max >= count; }

 private:
  rlimit before_{};
};

// Connects, sends a line if `greets`, waits for it, and then stays or closes.
class Visitor final : public StreamHandler {
 public:
  struct Count {
    int ready = 0;
    int failed = 0;
    std::error_code error;
  };

  Visitor(Loop& loop, const Address& address, Count& count, bool greets) : count_(count) {
    const auto on_made = [this, greets](Result<Stream> made) {
      if (!made) return fail(made.error());
      stream_ = std::move(*made);
      stream_.start(*this);
      if (!greets) {
        ++count_.ready;
      } else {
        send();
      }
    };
    connecting_ = connect(loop, address, on_made);
  }
  std::size_t on_data(Bytes bytes) override {
    if (bytes.size() < 5) return 0;
    ++count_.ready;
    return bytes.size();
  }
  void on_closed(std::error_code error) override { fail(error); }
  void send() { stream_.write("hello"); }
  // With a reset: an orderly close keeps the port busy for a minute.
  void leave() { stream_.abort(); }

 private:
  void fail(std::error_code error) {
    ++count_.failed;
    count_.error = error;
  }

  Count& count_;
  Connecting connecting_;
  Stream stream_;
};

Listener listen(Loop& loop, const Address& address) {
  Result<Listener> made = Listener::create(
      loop, address, [](Stream stream, const Address&) { new Echo(std::move(stream)); });
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

TEST(Capacity, HoldsAsManyConnectionsAsThereAreDescriptors) {
  constexpr int kConnections = kIsSanitized ? 2000 : 9900;
  const MoreDescriptors descriptors;
  if (!descriptors.has(2 * kConnections + 100))
    GTEST_SKIP() << too_few_descriptors(2 * kConnections + 100);
  const std::vector<int> before = open_fds();
  {
    const std::unique_ptr<Loop> loop = *Loop::create();
    const Listener listener = listen(*loop, Address::loopback_ipv4(0));
    const Address address = listener.address();
    Visitor::Count count;
    std::list<Visitor> clients;
    while (clients.size() < kConnections && !::testing::Test::HasFailure()) {
      for (int i = 0; i < 100; ++i) clients.emplace_back(*loop, address, count, true);
      const auto so_far = static_cast<int>(clients.size());
      run_until(*loop, [&] { return count.ready + count.failed == so_far; });
    }
    EXPECT_EQ(count.failed, 0) << count.error.message();
    EXPECT_EQ(listener.connections(), std::size_t{kConnections});
    for (Visitor& client : clients) client.send();
    run_until(*loop, [&] { return count.ready == 2 * kConnections; });
    for (Visitor& client : clients) client.leave();
    run_until(*loop, [&] { return listener.connections() == 0; });
  }
  EXPECT_EQ(open_fds(), before);
}

// Alternately over TCP and over a unix socket.
TEST(Capacity, ReleasesAllMemoryAfterHundredThousandConnections) {
  constexpr int kCycles = kIsSanitized ? 5'000 : 100'000;
  constexpr int kAtOnce = 50;
  const std::unique_ptr<Loop> loop = *Loop::create();
  const Listener tcp = listen(*loop, Address::loopback_ipv4(0));
  const Listener local =
      listen(*loop, *Address::abstract("spate capacity " + std::to_string(tcp.address().port())));
  const auto run_cycles = [&](int cycles) {
    Visitor::Count count;
    for (int done = 0; done < cycles && !::testing::Test::HasFailure(); done += kAtOnce) {
      const Listener& listener = done / kAtOnce % 2 == 0 ? tcp : local;
      const Address address = listener.address();
      std::list<Visitor> clients;
      const bool greets = done % 1000 == 0;
      for (int i = 0; i < kAtOnce; ++i) clients.emplace_back(*loop, address, count, greets);
      run_until(*loop, [&] { return count.ready + count.failed == done + kAtOnce; });
      run_until(*loop, [&] { return listener.connections() == kAtOnce || count.failed > 0; });
      for (Visitor& client : clients) client.leave();
      clients.clear();
      run_until(*loop, [&] { return listener.connections() == 0; });
    }
    EXPECT_EQ(count.failed, 0) << count.error.message();
  };
  run_cycles(1000);
  const std::vector<int> fds = open_fds();
  const std::size_t memory = allocated();
  run_cycles(kCycles);
  EXPECT_EQ(open_fds(), fds);
  // Less than a byte for each: lists of the loop that grow once in a burst are not a leak.
  EXPECT_LT(allocated(), memory + kCycles);
}

using Backpressure = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Backpressure, all_kinds(), name_of);

TEST_P(Backpressure, BoundsMemoryOfProducerWithSlowReader) {
  constexpr std::size_t kSize = kIsSanitized ? 10'000'000 : 100'000'000;
  constexpr std::size_t kHigh = 256 * 1024;
  const std::string chunk = pattern(16 * 1024);
  std::size_t written = 0;
  std::size_t read = 0;
  std::size_t max = 0;
  const auto produce = [&] {
    while (written < kSize && !left_.is_full()) {
      ASSERT_TRUE(left_.write(chunk));
      written += chunk.size();
    }
  };
  left_log_.when_drained = produce;
  right_log_.use = [&](Bytes bytes) {
    read += bytes.size();
    right_.pause();
    right_log_.received.clear();
    return bytes.size();
  };
  const std::size_t memory = allocated();
  produce();
  run_until(loop_, [&] {
    EXPECT_LE(left_.queued(), kHigh + chunk.size());
    max = std::max(max, allocated());
    right_.resume();
    return read == written && written >= kSize;
  });
  if (!kIsSanitized) {
    EXPECT_LT(max, memory + 2'000'000) << "of " << kSize << " bytes";
  }
}

// ---- handles that outlive their loop keep its state, and free it

constexpr int kOfABatch = 20;
constexpr std::ptrdiff_t kSlack = kOfABatch * 64;  // Less than the smallest state takes.

// Makes a loop and a handle of it, and destroys the loop first, in batches. Returns the number of
// bytes that the best batch leaves allocated: caches of malloc fill up, but a leak grows each time.
template <class Make>
std::ptrdiff_t kept_by(Make make) {
  std::ptrdiff_t least = PTRDIFF_MAX;
  for (int batch = 0; batch < 40 && least >= kSlack; ++batch) {
    const std::size_t before = allocated();
    for (int i = 0; i < kOfABatch; ++i) {
      std::unique_ptr<Loop> loop = make_loop();
      const auto handle = make(*loop);
      loop.reset();
    }
    least = std::min(least, static_cast<std::ptrdiff_t>(allocated() - before));
  }
  return least;
}

TEST(OutlivedLoops, FreeAllMemoryAfterLastHandle) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer replaces malloc";
  const Address address = Address::loopback_ipv4(0);
  EXPECT_LT(kept_by([&](Loop& loop) { return *Client::create(loop, address, [](auto) {}); }),
            kSlack);
  EXPECT_LT(kept_by([&](Loop& loop) {
              return *Listener::create(loop, address, [](Stream, const Address&) {});
            }),
            kSlack);
  EXPECT_LT(kept_by([&](Loop& loop) { return *Datagram::create(loop, address); }), kSlack);
  const TlsContext context = *TlsContext::client();
  EXPECT_LT(kept_by([&](Loop& loop) {
              auto [ours, theirs] = *Stream::memory_pair(loop);
              Connecting handshake = start_tls(std::move(ours), context, "a.test", [](auto) {});
              EXPECT_TRUE(handshake.is_pending());
              return std::pair(std::move(handshake), std::move(theirs));
            }),
            kSlack);
}

class OutlivedLoop : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, OutlivedLoop, all_kinds(), name_of);

TEST_P(OutlivedLoop, FreesAllMemoryAfterLastStream) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer replaces malloc";
  EXPECT_LT(kept_by([](Loop& loop) { return *make_pair(loop, GetParam()); }), kSlack);
}

}  // namespace
}  // namespace spate::testing
