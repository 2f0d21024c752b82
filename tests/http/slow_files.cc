// Files on a slow disk: the pool opens and reads them, and the loop handles other events meanwhile.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "http/files_harness.h"
#include "spate/timer.h"
#include "support/slow_disk.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class SlowFiles : public FilesOfAnOldKernel {
 protected:
  SlowFiles() { tree_.write("large", large_); }

  void serve_as_on_old_kernel(http::FilesOptions options) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::open, 2, ENOSYS);
    const FaultScope scope(plan);
    options.pool = &*pool_;
    serve_as(std::move(options));
  }
  std::unique_ptr<RawClient> request(const std::string& path) {
    auto client = connect();
    client->send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    turns();
    return client;
  }
  // Expects that a timer's callback is called while the disk does not respond.
  void expect_timer_while_waiting(SlowDisk& disk) {
    Timer timer(loop_, [&] { disk.respond(); });
    ASSERT_TRUE(timer.start(kSecond));
    EXPECT_TRUE(works_in_pool(loop_));
    pass(kSecond);
    EXPECT_FALSE(timer.is_active());
    EXPECT_EQ(disk.calls_on_loop, 0);
    settle();
  }

  const std::string large_ = std::string(3 * 1024 * 1024, 'x') + "end";
  std::optional<ThreadPool> pool_{std::in_place};
};

TEST_F(SlowFiles, OpenDoesNotDelayTimers) {
  SlowDisk disk(SystemCall::open, 1);
  const auto client = request("/a.txt");
  EXPECT_EQ(client->received, "");
  expect_timer_while_waiting(disk);
  EXPECT_THAT(client->received, EndsWith("\r\n\r\nhello\n"));
}

TEST_F(SlowFiles, ReadOfSmallFileDoesNotDelayTimers) {
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request("/a.txt");
  EXPECT_EQ(client->received, "");
  expect_timer_while_waiting(disk);
  EXPECT_THAT(client->received, EndsWith("\r\n\r\nhello\n"));
}

TEST_F(SlowFiles, ReadOfLargeFileDoesNotDelayTimers) {
  SlowDisk disk(SystemCall::read, 200);
  const auto client = request("/large");
  while (client->received.empty()) loop_.run(Run::once);
  expect_timer_while_waiting(disk);
  EXPECT_EQ(body(client->received), large_);
}

TEST_F(SlowFiles, ReadOfRangesDoesNotDelayTimers) {
  SlowDisk disk(SystemCall::read, 2);
  const auto client = connect();
  client->send("GET /large HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0,-3\r\n\r\n");
  while (client->received.empty()) loop_.run(Run::once);
  expect_timer_while_waiting(disk);
  EXPECT_THAT(client->received, ::testing::HasSubstr("\r\n\r\nend\r\n--"));
}

TEST_F(SlowFiles, OtherRequestsAreServedMeanwhile) {
  EXPECT_EQ(status_of("/a.txt"), "200");  // It is kept.
  serve_as_on_old_kernel({});
  EXPECT_EQ(status_of("/a.txt"), "200");
  SlowDisk disk(SystemCall::open, 1);
  const auto waiting = request("/large");
  const auto other = request("/a.txt");
  EXPECT_THAT(other->received, EndsWith("hello\n"));
  EXPECT_EQ(waiting->received, "");
  disk.respond();
  settle();
  EXPECT_EQ(body(waiting->received), large_);
}

TEST_F(SlowFiles, ClientMayDisconnectMeanwhile) {
  serve_as_on_old_kernel({});
  const auto before = open_fds();
  for (const SystemCall call : {SystemCall::open, SystemCall::read}) {
    pool_.emplace();
    serve_as_on_old_kernel({});
    SlowDisk disk(call, 1);
    const auto client = request("/large");
    while (call == SystemCall::read && client->received.empty()) loop_.run(Run::once);
    client->stream().abort();
    turns();
    EXPECT_FALSE(works_in_pool(loop_));
    disk.respond();
    files_.reset();
    server_ = {};
    pool_.emplace();  // Waits for the thread.
  }
  serve_as_on_old_kernel({});
  EXPECT_EQ(open_fds(), before);
}

TEST_F(SlowFiles, ServerMayBeDestroyedMeanwhile) {
  serve_as_on_old_kernel({});
  SlowDisk disk(SystemCall::open, 1);
  const auto client = request("/a.txt");
  server_ = {};
  files_.reset();
  turns();
  EXPECT_FALSE(works_in_pool(loop_));
  EXPECT_TRUE(client->is_ended || client->is_closed);
  EXPECT_EQ(client->received, "");
}

TEST_F(SlowFiles, MayBeDestroyedMeanwhile) {
  serve([this](http::Exchange exchange) { files_->serve(std::move(exchange)); });
  SlowDisk disk(SystemCall::open, 1);
  const auto client = request("/a.txt");
  files_.reset();
  disk.respond();
  settle();
  EXPECT_THAT(client->received, EndsWith("\r\n\r\nhello\n"));
}

TEST_F(SlowFiles, DrainWaitsForThem) {
  SlowDisk disk(SystemCall::open, 1);
  auto client = request("/a.txt");
  bool is_drained = false;
  server_.drain(60 * kSecond, [&] { is_drained = true; });
  turns();
  EXPECT_FALSE(is_drained);
  disk.respond();
  settle();
  EXPECT_THAT(client->received, EndsWith("\r\n\r\nhello\n"));
  client.reset();
  settle();
  EXPECT_TRUE(is_drained);
}

TEST_F(SlowFiles, FullPoolIsReportedAsUnavailable) {
  pool_.emplace(ThreadPoolOptions{.max_threads = 1, .max_queued = 0});
  serve_as_on_old_kernel({});
  SlowDisk disk(SystemCall::open, 1);
  const auto first = request("/a.txt");
  const auto second = request("/a.txt");
  EXPECT_THAT(second->received, StartsWith("HTTP/1.1 503"));
  disk.respond();
  settle();
  EXPECT_THAT(first->received, StartsWith("HTTP/1.1 200"));
}

// ---- what the loop's thread tries first

TEST_F(FilesServed, NameThatIsNotInCacheIsLeftToPool) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::open, 1, EAGAIN);
  const FaultScope scope(plan);
  EXPECT_EQ(body(get("/a.txt")), "hello\n");
}

TEST_F(FilesServed, BytesThatAreNotInMemoryAreLeftToPool) {
  for (const char* path : {"/a.txt", "/large"}) {
    tree_.write("large", std::string(2'000'000, 'x') + "hello\n");
    SlowDisk disk(SystemCall::read, 1);
    const auto client = connect();
    client->send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    turns();
    EXPECT_TRUE(works_in_pool(loop_)) << path;
    disk.respond();
    settle();
    EXPECT_EQ(disk.calls_on_loop, 0);
    EXPECT_THAT(client->received, EndsWith("hello\n"));
  }
}

// ---- files that change, and missing descriptors

TEST_F(FilesServed, TruncatedWhileSentResetsConnection) {
  tree_.write("large", std::string(3 * 1024 * 1024, 'x'));
  const auto client = connect();
  client->stream().pause();
  client->send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  std::filesystem::resize_file(tree_.at("large"), 1024 * 1024);
  client->stream().resume();
  settle();
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

TEST_F(FilesServed, LargeFileIsSentWithoutSpareDescriptors) {
  const std::string text = std::string(3 * 1024 * 1024, 'x') + "end";
  tree_.write("large", text);
  FaultPlan plan;
  plan.fail_nth(SystemCall::duplicate, 1, EMFILE, 1'000);
  const FaultScope scope(plan);
  EXPECT_EQ(body(get("/large")), text);
}

TEST_F(FilesServed, AreUnavailableWithoutDescriptorsUnlessInMemory) {
  tree_.write("b.txt", "b");
  serve_as({});
  EXPECT_EQ(status_of("/a.txt"), "200");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string in_memory = status_of("/a.txt");
  const std::string other = status_of("/b.txt");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(in_memory, "200");
  EXPECT_EQ(other, "503");
  EXPECT_EQ(status_of("/b.txt"), "200");
}

}  // namespace
}  // namespace spate::testing
