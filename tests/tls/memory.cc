// Memory that runs out inside OpenSSL, and inside the transport: each failure is reported, and
// nothing is lost or leaked.
#include <malloc.h>
#include <openssl/crypto.h>

#include <atomic>
#include <cstdlib>

#include "support/sanitizers.h"
#include "tls/harness.h"
#include "tls/identity.h"

namespace spate::testing {
namespace {

// The number of OpenSSL's allocation that fails; 0: none fails.
std::atomic<long> failing{0};
std::atomic<long> made{0};
std::atomic<long> in_use{0};  // Bytes.

bool fails() {
  const long number = ++made;
  return number == failing.load();
}
long size_of(void* block) { return static_cast<long>(::malloc_usable_size(block)); }
void* counted(void* block) {
  in_use += size_of(block);
  return block;
}
void* allocate(std::size_t size, const char*, int) {
  return fails() ? nullptr : counted(std::malloc(size));
}
void* change(void* block, std::size_t size, const char*, int) {
  if (fails()) return nullptr;
  in_use -= size_of(block);
  return counted(std::realloc(block, size));
}
void release(void* block, const char*, int) {
  in_use -= size_of(block);
  std::free(block);
}

// Set before OpenSSL's first allocation.
const int kIsOurs = CRYPTO_set_mem_functions(&allocate, &change, &release);

// How many of thousands of allocations are made to fail; SPATE_EACH_ALLOCATION selects all.
constexpr long kSamples = kIsSanitized ? 25 : 150;

long stride(long needed) {
  return std::getenv("SPATE_EACH_ALLOCATION") != nullptr ? 1 : 1 + needed / kSamples;
}

class TlsMemory : public TlsTest {
 protected:
  ~TlsMemory() override { failing = 0; }

  // Sends both ways, to the end of both sides. Returns whether everything worked.
  bool talk(const TlsContext& at_client, const TlsContext& at_server, std::size_t size = 40'000) {
    Handshake shaken = shake(at_client, at_server);
    EXPECT_EQ(shaken.calls, 2);
    if (!shaken.client || !shaken.server) return false;
    Recorder left, right;
    bool has_failed = false;
    right.use = [&](Bytes bytes) {
      has_failed = has_failed || !shaken.server->write(bytes);
      if (has_failed) shaken.server->set_deadline(Nanos{-1});
      return bytes.size();
    };
    const std::string sent = pattern(size);
    left.use = [&](Bytes bytes) {
      if (left.received.size() + bytes.size() == sent.size()) shaken.client->end();
      return bytes.size();
    };
    shaken.client->start(left);
    shaken.server->start(right);
    shaken.client->write(sent);
    run_until(*loop_, [&] { return left.closed_calls + right.closed_calls == 2; });
    EXPECT_TRUE(sent.starts_with(left.received));
    EXPECT_TRUE(left.error || has_failed || left.received == sent);
    return !left.error && !right.error;
  }
  template <class T>
  static bool is_made(const TlsResult<T>& result) {
    failing = 0;
    if (result) return true;
    EXPECT_TRUE(result.error().code);
    EXPECT_FALSE(result.error().text.empty());
    return false;
  }
  bool shows(const TlsContext& at_client, const TlsContext& at_server, std::string_view subject) {
    const Handshake shaken = shake(at_client, at_server);
    EXPECT_TRUE(shaken.client) << shaken.client.error().text;
    EXPECT_TRUE(shaken.server) << shaken.server.error().text;
    return shaken.client && shaken.server && tls_info(*shaken.client)->subject == subject;
  }
  // Repeats `work`, each time with another of its allocations failing. `work` checks that failures
  // are reported; this function checks that it works again afterwards, and that nothing is left.
  void expect_failures_told(const std::function<bool()>& work, int fewest) {
    ASSERT_EQ(kIsOurs, 1);
    EXPECT_TRUE(work());
    const long before = made;
    EXPECT_TRUE(work());
    const long needed = made - before;
    const long held = in_use;
    int failures = 0;
    for (long nth = 1; nth <= needed; nth += stride(needed)) {
      SCOPED_TRACE(nth);
      failing = made + nth;
      failures += work() ? 0 : 1;
      failing = 0;
      if (HasFailure()) return;
    }
    EXPECT_GE(failures, fewest) << "of " << needed;
    EXPECT_TRUE(work());
    constexpr long kKept = 64 * 1024;  // Sessions, and buffers that are freed later.
    EXPECT_LT(in_use, held + kKept);
    RecordProperty("allocations", std::to_string(needed));
    RecordProperty("failures", std::to_string(failures));
  }
};

TEST_F(TlsMemory, OpenSslUsesOurAllocator) {
  ASSERT_EQ(kIsOurs, 1);
  const long before = made;
  EXPECT_TRUE(talk(client(), server()));
  EXPECT_GT(made - before, 100);
}

TEST_F(TlsMemory, IsReleasedByIdleConnection) {
  ASSERT_EQ(kIsOurs, 1);
  ScriptedClock clock;
  loop_ = std::move(*Loop::create({.clock = &clock}));
  const TlsContext at_client = client();
  const TlsContext at_server = server();
  EXPECT_TRUE(talk(at_client, at_server));
  constexpr int kPairs = 20;
  const long without = in_use;
  std::vector<Handshake> all;
  std::vector<std::unique_ptr<Recorder>> logs;
  const auto start = [&](TlsResult<Stream>& side) {
    logs.push_back(std::make_unique<Recorder>());
    side->start(*logs.back());
    side->write("hello");
  };
  for (int i = 0; i < kPairs; ++i) {
    all.push_back(shake(at_client, at_server));
    start(all.back().client);
    start(all.back().server);
    run_turns(*loop_, 5);
  }
  const long busy = (in_use - without) / kPairs;
  for (int i = 0; i < 3; ++i) {
    clock.advance(std::chrono::seconds(1));
    run_turns(*loop_, 3);
  }
  const long idle = (in_use - without) / kPairs;
  RecordProperty("bytes_of_a_busy_pair", std::to_string(busy));
  RecordProperty("bytes_of_an_idle_pair", std::to_string(idle));
  EXPECT_GT(busy, 60'000);
  EXPECT_LT(idle, 40'000) << "busy: " << busy;
  all.front().client->write("still there");
  run_until(*loop_, [&] { return logs[1]->received == "hellostill there"; });
}

TEST_F(TlsMemory, ExhaustionIsHandledInConnection) {
  const TlsContext at_client = client({.max_sessions = 0});
  const TlsContext at_server = server();
  EXPECT_TRUE(talk(at_client, at_server));  // The loop's contexts are made.
  expect_failures_told([&] { return talk(at_client, at_server); }, kSamples / 4);
}

// The sessions come from an earlier connection, so that each is resumed or, if that fails, is not.
TEST_F(TlsMemory, ExhaustionIsHandledInResumption) {
  const TlsContext at_client = client();
  const TlsContext at_server = server();
  EXPECT_TRUE(talk(at_client, at_server));
  expect_failures_told([&] { return talk(at_client, at_server, 4'000); }, kSamples / 8);
}

TEST_F(TlsMemory, ExhaustionIsHandledWithClientCertificate) {
  const TlsContext at_client = client({.identity = test_server().identity()});
  const TlsContext at_server = server({.alpn = {"h2"},
                                       .client_check = TlsClientCheck::required,
                                       .client_ca = test_root().pem(),
                                       .tickets = 0});
  EXPECT_TRUE(talk(at_client, at_server));
  expect_failures_told([&] { return talk(at_client, at_server, 4'000); }, kSamples / 8);
}

// A loop makes its own context with its first handshake.
TEST_F(TlsMemory, ExhaustionIsHandledInFirstHandshakeOfLoop) {
  const TlsContext at_client = client();
  const TlsContext at_server = server();
  const auto talk_first = [&] {
    loop_ = must(Loop::create());
    return talk(at_client, at_server, 4'000);
  };
  EXPECT_TRUE(talk_first());
  expect_failures_told(talk_first, kSamples / 8);
}

// A context that is made despite the failure must work fully.
TEST_F(TlsMemory, ExhaustionIsHandledInContext) {
  const TlsServerOptions options{.identities = {test_server().identity()},
                                 .alpn = {"h2"},
                                 .client_check = TlsClientCheck::required,
                                 .client_ca = test_root().pem()};
  const TlsClientOptions ours{.system_cas = false,
                              .ca = test_root().pem(),
                              .identity = test_server().identity(),
                              .alpn = {"h2"}};
  const TlsContext at_client = must_be(TlsContext::client(ours));
  const TlsContext at_server = must_be(TlsContext::server(options));
  expect_failures_told(
      [&] {
        const auto context = TlsContext::server(options);
        return is_made(context) && shows(at_client, *context, "CN = server");
      },
      1);
  expect_failures_told(
      [&] {
        const auto context = TlsContext::client(ours);
        return is_made(context) && shows(*context, at_server, "CN = server");
      },
      1);
}

// A certificate without its key would be trusted, and verify no peer.
TEST_F(TlsMemory, ExhaustionIsHandledInTrustedCertificate) {
  const auto is_whole = [] {
    const OwnStore store(X509_STORE_new());
    if (store == nullptr || !trust(*store, test_root().pem(), {})) return false;
    failing = 0;
    X509_OBJECT* only = sk_X509_OBJECT_value(X509_STORE_get0_objects(store.get()), 0);
    EXPECT_NE(X509_get0_pubkey(X509_OBJECT_get0_X509(only)), nullptr);
    return true;
  };
  expect_failures_told(is_whole, 1);
}

TEST_F(TlsMemory, ExhaustionIsHandledInReload) {
  const Certificate other({.subject = "other", .names = {"localhost"}}, &test_root());
  const TlsContext at_client = client();
  const TlsContext at_server = server();
  bool is_other = false;
  expect_failures_told(
      [&] {
        const Certificate& next = is_other ? test_server() : other;
        const bool is_done =
            is_made(at_server.reload(TlsServerOptions{.identities = {next.identity()}}));
        if (is_done) is_other = !is_other;
        EXPECT_TRUE(shows(at_client, at_server, is_other ? "CN = other" : "CN = server"));
        return is_done;
      },
      1);
}

// The transport's own allocations fail. A new loop has kept no memory except the blocks that hold
// Streams.
TEST_F(TlsMemory, ExhaustionIsHandledInTransport) {
  const TlsContext at_client = client();
  const TlsContext at_server = server();
  const auto talk_anew = [&](FaultPlan& plan) {
    loop_ = must(Loop::create());
    shake(at_client, at_server);
    const FaultScope scope(plan);
    return talk(at_client, at_server, 1'000'000);
  };
  FaultPlan counting;
  EXPECT_TRUE(talk_anew(counting));
  const std::uint64_t needed = counting.calls(SystemCall::allocate);
  EXPECT_GT(needed, 0u);
  const auto step = static_cast<std::uint64_t>(stride(static_cast<long>(needed)));
  for (std::uint64_t nth = 1; nth <= needed; nth += step) {
    SCOPED_TRACE(nth);
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    talk_anew(plan);
    if (HasFailure()) return;
  }
}

// ---- the queue of handshakes

// Failed handshakes, in a queue that is never empty.
class TlsQueueMemory : public TlsTest {
 protected:
  void begin_one() {
    auto pair = must(Stream::memory_pair(*loop_));
    auto client = std::make_shared<Stream>(std::move(pair.first));
    client->write("GET / HTTP/1.1\r\n\r\n");
    accept_tls_unattended(std::move(pair.second), context_, [this, client](TlsResult<Stream>) {
      client->abort();
      ++ended_;
      if (ended_ < limit_) begin_one();
    });
  }
  void run_until_ended(int count) {
    run_until(*loop_, [&] { return ended_ >= count; });
  }

  const TlsContext context_ = server();
  const int limit_ = 6'000;
  int ended_ = 0;
};

TEST_F(TlsQueueMemory, DoesNotGrowWithNumberOfHandshakes) {
  if (kIsSanitized) GTEST_SKIP() << "skipped: the allocator of a sanitizer keeps what is freed";
  for (int i = 0; i < 64; ++i) begin_one();
  run_until_ended(1'000);
  const std::size_t before = ::mallinfo2().uordblks;
  run_until_ended(5'000);
  const std::size_t after = ::mallinfo2().uordblks;
  EXPECT_LT(after, before + 16 * 1024);
  run_until_ended(limit_);
}

}  // namespace
}  // namespace spate::testing
