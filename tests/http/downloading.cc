// download(): the body of a response becomes a file, completely or not at all.
#include "spate/http/download.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <optional>
#include <string>

#include "base/fault.h"
#include "http/client_pair_harness.h"
#include "spate/offload.h"
#include "support/own_tree.h"

namespace spate::testing {
namespace {

using http::Download;
using http::Status;

class Downloading : public ClientProtocolTest {
 protected:
  Downloading() { tree_.write("a", "old"); }

  Download begin(http::CallOptions options = {}) {
    auto handle = http::download(client_, kUrl, tree_.at("a"),
                                 [this](Result<Status> status) {
                                   ++calls_;
                                   result_ = status;
                                 },
                                 std::move(options), {.pool = &*pool_});
    EXPECT_EQ(calls_, 0);
    turns();
    return handle;
  }
  // Runs the loop until the download has ended.
  void wait_for_end() {
    while (calls_ == 0) ASSERT_FALSE(loop_.run(Run::once));
  }
  std::string contents() {
    std::ifstream file(tree_.at("a"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t count_of_files() {
    const std::filesystem::directory_iterator entries(tree_.root());
    return static_cast<std::size_t>(std::distance(std::filesystem::begin(entries), {}));
  }
  // Begins a response of this size, and sends a part of its body.
  void answer_in_part(std::size_t size, std::string_view part) {
    EXPECT_TRUE(kept_.back()->exchange.begin(Status::ok, {}, size));
    EXPECT_TRUE(kept_.back()->exchange.write(part));
    turns();
  }

  OwnTree tree_;
  std::optional<ThreadPool> pool_{std::in_place, ThreadPoolOptions{.max_threads = 1}};
  Result<Status> result_ = Status::ok;
  int calls_ = 0;
};

TEST_P(Downloading, BodyBecomesFile) {
  const Download download = begin();
  const std::string body(200'000, 'd');
  answer(Status::ok, body);
  wait_for_end();
  EXPECT_EQ(result_, Status::ok);
  EXPECT_EQ(contents(), body);
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_P(Downloading, OtherStatusLeavesOldFile) {
  const Download download = begin();
  answer(Status::not_found, "none");
  wait_for_end();
  EXPECT_EQ(result_, Status::not_found);
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_P(Downloading, CutOffBodyLeavesOldFile) {
  const Download download = begin();
  answer_in_part(100, "begin");
  kept_.back()->exchange.abort();
  wait_for_end();
  EXPECT_FALSE(result_);
  pool_.reset();  // Waits for the running operation.
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_P(Downloading, LongBodyLeavesOldFile) {
  http::CallOptions options;
  options.max_body = 3;
  const Download download = begin(std::move(options));
  answer(Status::ok, "four");
  wait_for_end();
  EXPECT_FALSE(result_);
  EXPECT_EQ(contents(), "old");
}

TEST_P(Downloading, FailedWriteIsReported) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::file_write, 1, ENOSPC);
  const FaultScope scope(plan);
  const Download download = begin();
  answer(Status::ok, "hello");
  wait_for_end();
  EXPECT_EQ(result_.error(), std::error_code(ENOSPC, std::system_category()));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_P(Downloading, CancelledDownloadLeavesNothing) {
  std::latch reached(1);
  std::latch held(1);
  FaultPlan plan;
  plan.before_nth(SystemCall::file_write, 1, [&] {
    reached.count_down();
    held.wait();
  });
  const FaultScope scope(plan);
  Download download = begin();
  answer_in_part(100, "hello");
  reached.wait();
  EXPECT_EQ(count_of_files(), 2u);
  download.cancel();
  held.count_down();
  pool_.reset();  // Waits for the running operation.
  turns();
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_P(Downloading, SlowDiskPausesServer) {
  std::latch reached(1);
  std::latch held(1);
  FaultPlan plan;
  plan.before_nth(SystemCall::file_write, 1, [&] {
    reached.count_down();
    held.wait();
  });
  const FaultScope scope(plan);
  const Download download = begin();
  const std::string body(8 << 20, 'z');
  answer_in_part(body.size(), body.substr(0, 1'000));
  reached.wait();
  http::Exchange& exchange = kept_.back()->exchange;
  EXPECT_TRUE(exchange.write(std::string_view(body).substr(1'000)));
  turns(200);
  EXPECT_GT(exchange.queued(), std::size_t{4 << 20}) << "the client did not stop reading";
  EXPECT_TRUE(exchange.end());
  held.count_down();
  wait_for_end();
  EXPECT_EQ(result_, Status::ok);
  EXPECT_EQ(contents(), body);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Downloading, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
