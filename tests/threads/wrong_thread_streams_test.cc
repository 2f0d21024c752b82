// A Stream belongs to its loop's thread. In debug builds, a call from another thread while the loop
// runs aborts the process.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

class Sink final : public StreamHandler {
 public:
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override {}
};

struct StreamMisuse {
  const char* name;
  void (*does)(Stream& stream);
};
void PrintTo(const StreamMisuse& misuse, std::ostream* out) { *out << misuse.name; }

// Calls it on a second thread while the loop is inside run().
void misuse_while_it_runs(const StreamMisuse& misuse) {
  const auto loop = std::move(*Loop::create());
  auto pair = std::move(*Stream::socket_pair(*loop));
  Sink sink;
  pair.first.start(sink);
  std::atomic<bool> runs{false};
  Idle idle(*loop, [&runs] { runs.store(true); });
  idle.start();
  std::thread other([&] {
    while (!runs.load()) std::this_thread::yield();
    misuse.does(pair.first);
    loop->post([&loop] { loop->stop(); });
  });
  loop->run();
  other.join();
}

const StreamMisuse kStreamMisuses[] = {
    {"Start",
     [](Stream& stream) {
       Sink sink;
       stream.start(sink);
     }},
    {"StartWithFunctions", [](Stream& stream) { (void)stream.start(StreamCallbacks{}); }},
    {"Configure", [](Stream& stream) { stream.configure({.half_open = true}); }},
    {"ConnectAnew",
     [](Stream& stream) {
       Sink sink;
       (void)stream.connect(stream.loop(), Address::loopback_ipv4(9), sink);
     }},
    {"IsConnecting", [](Stream& stream) { (void)stream.is_connecting(); }},
    {"IsOpen", [](Stream& stream) { (void)stream.is_open(); }},
    {"IsWritable", [](Stream& stream) { (void)stream.is_writable(); }},
    {"Write", [](Stream& stream) { stream.write("x"); }},
    {"WriteABuffer", [](Stream& stream) { stream.write(Buffer()); }},
    {"WritePieces", [](Stream& stream) { stream.write(std::span<const Bytes>()); }},
    {"SendFile", [](Stream& stream) { (void)stream.send_file(0, 0, 1); }},
    {"SendDescriptors", [](Stream& stream) { (void)stream.send_descriptors({}, {}); }},
    {"Queued", [](Stream& stream) { (void)stream.queued(); }},
    {"IsFull", [](Stream& stream) { (void)stream.is_full(); }},
    {"SetLimits", [](Stream& stream) { stream.set_limits({}); }},
    {"Pause", [](Stream& stream) { stream.pause(); }},
    {"Resume", [](Stream& stream) { stream.resume(); }},
    {"IsPaused", [](Stream& stream) { (void)stream.is_paused(); }},
    {"Want", [](Stream& stream) { stream.want(2); }},
    {"Unread", [](Stream& stream) { (void)stream.unread(); }},
    {"SetReceiveDescriptors", [](Stream& stream) { stream.set_receive_descriptors(true); }},
    {"SetRateLimits", [](Stream& stream) { stream.set_rate_limits({}); }},
    {"Join", [](Stream& stream) { stream.join(nullptr); }},
    {"End", [](Stream& stream) { stream.end(); }},
    {"Close", [](Stream& stream) { stream.close(); }},
    {"Abort", [](Stream& stream) { stream.abort(); }},
    {"SetHalfOpen", [](Stream& stream) { stream.set_half_open(true); }},
    {"SetDeadline", [](Stream& stream) { stream.set_deadline(Nanos{1}); }},
    {"SetIdleTimeout", [](Stream& stream) { stream.set_idle_timeout(Nanos{1}); }},
    {"SetReadTimeout", [](Stream& stream) { stream.set_read_timeout(Nanos{1}); }},
    {"SetWriteTimeout", [](Stream& stream) { stream.set_write_timeout(Nanos{1}); }},
    {"Loop", [](Stream& stream) { (void)stream.loop(); }},
    {"Fd", [](Stream& stream) { (void)stream.fd(); }},
    {"LocalAddress", [](Stream& stream) { (void)stream.local_address(); }},
    {"PeerAddress", [](Stream& stream) { (void)stream.peer_address(); }},
    {"SetAnOption", [](Stream& stream) { (void)stream.set_no_delay(true); }},
    {"SetKernelBuffers", [](Stream& stream) { (void)stream.set_kernel_buffers(0, 0); }},
    {"Release", [](Stream& stream) { (void)stream.release(); }},
    {"MoveAnotherThere", [](Stream& stream) { stream = Stream(); }},
    {"Destroy", [](Stream& stream) { const Stream gone = std::move(stream); }},
};

class StreamThreadDeathTest : public ::testing::TestWithParam<StreamMisuse> {
 protected:
  StreamThreadDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

INSTANTIATE_TEST_SUITE_P(, StreamThreadDeathTest, ::testing::ValuesIn(kStreamMisuses),
                         ::testing::PrintToStringParamName());

TEST_P(StreamThreadDeathTest, MisuseTraps) {
  EXPECT_DEATH(misuse_while_it_runs(GetParam()), "another thread is running this loop");
}

TEST(StreamThread, MayChangeBetweenRuns) {
  const auto loop = std::move(*Loop::create());
  auto pair = std::move(*Stream::socket_pair(*loop));
  Sink sink;
  pair.first.start(sink);
  loop->run(Run::no_wait);
  std::thread([&] { EXPECT_TRUE(pair.first.write("x")); }).join();
  loop->run(Run::no_wait);
}

}  // namespace
}  // namespace spate

#endif
