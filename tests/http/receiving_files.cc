// receive_to_file(): the body of a request becomes a file, completely or not at all.
#include "spate/http/receive_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <optional>
#include <utility>

#include "base/fault.h"
#include "http/harness.h"
#include "spate/offload.h"
#include "support/own_tree.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReceivingFiles : public HttpServerTest {
 protected:
  ReceivingFiles() {
    options_.file.pool = &*pool_;
    on_request = [this](Exchange exchange) {
      receive_to_file(
          std::move(exchange), tree_.at("a"),
          [this](Exchange received, const Result<std::uint64_t>& size) {
            ++calls_;
            size_ = size;
            received.respond(size ? Status::created : Status::insufficient_storage);
          },
          options_);
    };
  }

  static std::string head(std::size_t size) {
    return "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  }
  // Runs the loop until the response has begun.
  void wait_for_response(const RawClient& client) {
    while (client.received.empty()) ASSERT_FALSE(loop_.run(Run::once));
    turns();
  }
  std::string contents() {
    std::ifstream file(tree_.at("a"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t count_of_files() {
    const std::filesystem::directory_iterator entries(tree_.root());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  OwnTree tree_;
  std::optional<ThreadPool> pool_{std::in_place, ThreadPoolOptions{.max_threads = 1}};
  http::ReceiveFileOptions options_;
  Result<std::uint64_t> size_ = 0;
  int calls_ = 0;
};

TEST_F(ReceivingFiles, BodyBecomesFile) {
  const std::string body(100'000, 'x');
  const auto client = connect();
  client->send(head(body.size()) + body);
  wait_for_response(*client);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 201"));
  EXPECT_EQ(size_, body.size());
  EXPECT_EQ(contents(), body);
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_F(ReceivingFiles, RequestWithoutBodyMakesEmptyFile) {
  const auto client = connect();
  client->send("PUT /a HTTP/1.1\r\nHost: a\r\n\r\n");
  wait_for_response(*client);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 201"));
  EXPECT_EQ(size_, 0u);
  EXPECT_TRUE(std::filesystem::exists(tree_.at("a")));
}

TEST_F(ReceivingFiles, SlowDiskPausesClient) {
  std::latch reached(1);
  std::latch held(1);
  FaultPlan plan;
  plan.before_nth(SystemCall::file_write, 1, [&] {
    reached.count_down();
    held.wait();
  });
  const FaultScope scope(plan);
  const auto client = connect();
  const std::string body(8 << 20, 'y');
  client->send(head(body.size()) + body.substr(0, 1'000));
  turns();
  reached.wait();
  client->send(std::string_view(body).substr(1'000));
  turns(200);
  EXPECT_GT(client->stream().queued(), std::size_t{4 << 20}) << "the server did not stop reading";
  held.count_down();
  wait_for_response(*client);
  EXPECT_EQ(size_, body.size());
  EXPECT_EQ(contents(), body);
}

TEST_F(ReceivingFiles, DisconnectedClientLeavesOldFile) {
  tree_.write("a", "old");
  auto client = connect();
  client->send(head(1'000) + "begin");
  turns();
  client->stream().abort();
  turns();
  pool_.reset();  // Waits for the running operation.
  turns();
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(count_of_files(), 1u);
}

TEST_F(ReceivingFiles, LongBodyIsRefused) {
  tree_.write("a", "old");
  options_.most = 10;
  EXPECT_THAT(talk(head(11)), StartsWith("HTTP/1.1 413"));
  const auto client = connect();
  client->send("PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  client->send("6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n");
  wait_for_response(*client);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(contents(), "old");
}

TEST_F(ReceivingFiles, FullDiskIsReported) {
  tree_.write("a", "old");
  for (const SystemCall call : {SystemCall::open, SystemCall::file_write, SystemCall::rename}) {
    FaultPlan plan;
    plan.fail_nth(call, 1, ENOSPC);
    const FaultScope scope(plan);
    const auto client = connect();
    client->send(head(5) + "hello");
    wait_for_response(*client);
    EXPECT_THAT(client->received, StartsWith("HTTP/1.1 507"));
    EXPECT_EQ(size_.error(), std::error_code(ENOSPC, std::system_category()));
    EXPECT_EQ(contents(), "old");
    EXPECT_EQ(count_of_files(), 1u);
  }
}

}  // namespace
}  // namespace spate::testing
