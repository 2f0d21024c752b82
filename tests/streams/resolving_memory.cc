// resolve() when c-ares runs out of memory: at its first allocation, its second, its third ...
// until a scenario runs without a failure. There is one result each time, and nothing leaks.
#include <ares.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "tests/support/name_server.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class Memory {
 public:
  // The allocations `first` to `last` from now on fail.
  static void fail(std::uint64_t first, std::uint64_t last) {
    count_ = 0;
    first_ = first;
    last_ = last;
  }
  static void fail_no_more() { fail(0, 0); }
  static bool has_failed() { return count_ >= first_; }
  static void give_to_cares() {
    ares_library_init_mem(ARES_LIB_INIT_ALL, &allocate, &std::free, &reallocate);
  }
  static void take_from_cares() {
    ares_library_init_mem(ARES_LIB_INIT_ALL, &std::malloc, &std::free, &std::realloc);
  }

 private:
  static bool is_short() { return ++count_ >= first_ && count_ <= last_; }
  static void* allocate(std::size_t size) { return is_short() ? nullptr : std::malloc(size); }
  static void* reallocate(void* block, std::size_t size) {
    return is_short() ? nullptr : std::realloc(block, size);
  }

  static inline std::uint64_t count_ = 0;
  static inline std::uint64_t first_ = 0;
  static inline std::uint64_t last_ = 0;
};

class ResolvingMemoryTest : public ::testing::Test {
 protected:
  ResolvingMemoryTest() { Memory::give_to_cares(); }
  ~ResolvingMemoryTest() override { Memory::take_from_cares(); }

  // Returns true if the expected result was found.
  static bool resolve_on_a_new_loop(std::string_view host, Nanos timeout) {
    const std::unique_ptr<Loop> loop = *Loop::create();
    NameServer server(*loop);
    server.names["both.test"] = {.ipv6 = {"2001:db8::1", "::1"}, .ipv4 = {"192.0.2.1"}};
    server.names["long.test"] = {.ipv4 = {"192.0.2.1"}, .alias = "both.test", .is_long = true};
    const ResolverOptions options{.servers = {server.address()},
                                  .resolv_conf = "/dev/null",
                                  .hosts = "/dev/null",
                                  .timeout = timeout,
                                  .tries = 1};
    std::error_code error = configure_resolver(*loop, options);
    if (error) {
      EXPECT_EQ(error, std::errc::not_enough_memory);
      return false;
    }
    int results = 0;
    const Resolving resolving = resolve(*loop, host, 80, [&](auto result) {
      ++results;
      error = result ? std::error_code() : result.error();
    });
    run_until(*loop, [&] { return results > 0; });
    for (int i = 0; i < 3; ++i) loop->run(Run::no_wait);
    EXPECT_EQ(results, 1);
    return !error;
  }
};

TEST_F(ResolvingMemoryTest, HasOneResultWhicheverAllocationFails) {
  for (const std::string_view host : {"both.test", "long.test", "nobody.test"}) {
    for (const std::uint64_t times : {1u, 3u, 1000u}) {
      bool failed = true;
      for (std::uint64_t nth = 1; failed; ++nth) {
        ASSERT_LT(nth, 2000u) << "does it ever get by?";
        SCOPED_TRACE(::testing::Message() << host << ": " << nth << ", " << times << " times");
        Memory::fail(nth, nth + times - 1);
        resolve_on_a_new_loop(host, 1ms);
        failed = Memory::has_failed();
        if (HasFailure()) return Memory::fail_no_more();
      }
    }
  }
  Memory::fail_no_more();
  EXPECT_TRUE(resolve_on_a_new_loop("both.test", 1min));
}

}  // namespace
}  // namespace spate::testing
