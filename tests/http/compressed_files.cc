// Compressed responses from files, over HTTP/1 and HTTP/2: the pool reads bytes that are not in
// memory, and the loop compresses them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <latch>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/fault.h"
#include "http/http2_harness.h"
#include "spate/error.h"
#include "spate/http/compression.h"
#include "spate/offload.h"
#include "spate/timer.h"
#include "support/pool_work.h"
#include "support/random.h"
#include "support/slow_disk.h"
#include "support/system_error.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::FieldId;
using http::Fields;
using http::Status;

enum class Protocol : std::uint8_t { http1, http2 };
void PrintTo(Protocol protocol, std::ostream* out) {
  *out << (protocol == Protocol::http1 ? "http1" : "http2");
}

std::string lines(std::size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) text += "line " + std::to_string(i) + "\n";
  text.resize(size);
  return text;
}

// Returns a text that compression does not shorten much.
std::string noise(std::size_t size) {
  Random random(1);
  std::string text(size, '\0');
  for (char& each : text) each = static_cast<char>(random.next());
  return text;
}

// A file without a name.
int file_of(std::string_view text) {
  char name[] = "/tmp/spate_compressed_XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

enum class ClientReads : bool { no, yes };

// A compressed response reads its file in pieces of this size.
constexpr std::uint64_t kPiece = 16 * 1024;

// A request that accepts gzip, and the response that has arrived.
class Request {
 public:
  explicit Request(std::unique_ptr<RawClient> client) : one_(std::move(client)) {
    one_->send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  }
  explicit Request(std::unique_ptr<Http2Client> client)
      : two_(std::move(client)), id_(two_->get("/", {{"accept-encoding", "gzip"}})) {}

  Stream& stream() { return one_ != nullptr ? one_->stream() : two_->stream(); }
  // Returns whether the response has ended as it should.
  bool is_whole() {
    return one_ != nullptr ? one_->received.ends_with("\r\n0\r\n\r\n") || has_trailers()
                           : two_->answers[id_].is_ended;
  }
  bool is_reset() {
    return one_ != nullptr ? one_->error == std::errc::connection_reset
                           : two_->answers[id_].is_closed && !two_->answers[id_].is_ended;
  }
  bool has_trailers() {
    return one_ != nullptr ? one_->received.ends_with("\r\n0\r\nx: y\r\n\r\n")
                           : two_->answers[id_].trailers["x"] == "y";
  }
  // Returns the decompressed part of the body.
  std::string body() {
    auto decompressor = must(http::Decompressor::make(http::Coding::gzip, 100'000'000));
    const std::string coded = coded_body();
    Bytes bytes = bytes_of(coded);
    Buffer target;
    decompressor.next(bytes, target);
    return std::string(text_of(target.flat(target.size())));
  }

 private:
  std::string coded_body() {
    if (two_ != nullptr) return two_->answers[id_].body;
    std::string_view rest = one_->received;
    const std::size_t end = rest.find("\r\n\r\n");
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 4);
    std::string body;
    while (rest.contains("\r\n")) {
      const std::size_t size = std::stoul(std::string(rest.substr(0, 8)), nullptr, 16);
      if (size == 0) break;
      rest.remove_prefix(rest.find("\r\n") + 2);
      body += rest.substr(0, size);
      rest.remove_prefix(std::min(size + 2, rest.size()));
    }
    return body;
  }

  std::unique_ptr<RawClient> one_;
  std::unique_ptr<Http2Client> two_;
  std::int32_t id_ = 0;
};

class CompressedFiles : public Http2ServerTest, public ::testing::WithParamInterface<Protocol> {
 protected:
  CompressedFiles() {
    fields_.set(FieldId::content_type, "text/plain");
    http::ServerOptions options;
    options.compression = http::Compression::by_type;
    serve2(std::move(options));
  }

  std::unique_ptr<Request> request(ClientReads reads = ClientReads::yes) {
    auto made = GetParam() == Protocol::http1 ? std::make_unique<Request>(connect())
                                              : std::make_unique<Request>(connect2());
    if (reads == ClientReads::no) made->stream().pause();
    turns();
    return made;
  }
  void finish() {
    finish_in_pool(loop_, [this] { turns(100); });
  }
  // The next exchange is kept, and its response is a file.
  void respond_with(std::string text, std::uint64_t size, ThreadPool& pool = ThreadPool::shared()) {
    on_request = [this, text = std::move(text), size, &pool](Exchange exchange) {
      kept_ = std::make_unique<Kept>(std::move(exchange));
      EXPECT_TRUE(kept_->exchange.begin(Status::ok, fields_));
      EXPECT_FALSE(kept_->exchange.send_file(file_of(text), 0, size, pool));
      if (ends_) EXPECT_TRUE(kept_->exchange.end());
    };
  }
  void respond_with(const std::string& text) { respond_with(text, text.size()); }

  Fields fields_;
  bool ends_ = false;  // The kept exchange ends its response at once.
  std::unique_ptr<Kept> kept_;
};

TEST_P(CompressedFiles, SlowDiskDoesNotDelayLoop) {
  const std::string text = lines(300'000);
  respond_with(text);
  SlowDisk disk(SystemCall::read, 1);
  const auto slow = request();
  EXPECT_TRUE(works_in_pool(loop_));
  on_request = [this](Exchange exchange) {
    exchange.begin(Status::ok, fields_);
    exchange.write("fast");
    exchange.end();
  };
  EXPECT_EQ(request()->body(), "fast");
  Timer timer(loop_, [&disk] { disk.respond(); });
  ASSERT_TRUE(timer.start(kSecond));
  pass(kSecond);
  EXPECT_TRUE(kept_->exchange.end());
  finish();
  EXPECT_TRUE(slow->body() == text);
  EXPECT_TRUE(slow->is_whole());
  EXPECT_EQ(disk.calls_on_loop, 0);
}

TEST_P(CompressedFiles, BytesAndTrailersFollow) {
  for (const bool is_slow : {false, true}) {
    on_request = [this](Exchange exchange) {
      EXPECT_TRUE(exchange.begin(Status::ok, fields_));
      EXPECT_TRUE(exchange.write("<"));
      EXPECT_FALSE(exchange.send_file(file_of("0123456789"), 2, 5));
      Buffer buffer;
      buffer.append("|");
      EXPECT_TRUE(exchange.write(std::move(buffer)));
      EXPECT_FALSE(exchange.send_file(file_of("file"), 0, 4));
      EXPECT_TRUE(exchange.write(">"));
      Fields trailers;
      trailers.set("x", "y");
      EXPECT_TRUE(exchange.end(trailers));
      EXPECT_FALSE(exchange.is_open());
      EXPECT_FALSE(exchange.write("late"));
      EXPECT_FALSE(exchange.end());
    };
    std::optional<SlowDisk> disk;
    if (is_slow) disk.emplace(SystemCall::read, 1);
    const auto client = request();
    EXPECT_EQ(client->is_whole(), !is_slow);
    if (is_slow) disk->respond();
    finish();
    EXPECT_EQ(client->body(), "<23456|file>");
    EXPECT_TRUE(client->is_whole() && client->has_trailers());
  }
}

TEST_P(CompressedFiles, NextRequestIsServedAfterwards) {
  respond_with(lines(100'000));
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request();
  EXPECT_TRUE(kept_->exchange.end());
  kept_.reset();
  turns();
  EXPECT_FALSE(client->is_whole());
  disk.respond();
  finish();
  EXPECT_TRUE(client->is_whole());
  EXPECT_EQ(client->body().size(), 100'000u);
}

TEST_P(CompressedFiles, DestroyedExchangeResetsItsResponse) {
  respond_with(lines(100'000));
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request();
  kept_.reset();
  turns();
  EXPECT_TRUE(client->is_reset());
}

TEST_P(CompressedFiles, TruncatedFileResetsResponse) {
  respond_with(lines(5000), 5001);
  const auto client = request();
  turns();
  EXPECT_TRUE(kept_->is_closed);
  EXPECT_EQ(kept_->error, system_error(ENODATA));
  EXPECT_FALSE(kept_->exchange.is_open());
  EXPECT_TRUE(client->is_reset());
}

TEST_P(CompressedFiles, ReadErrorResetsResponse) {
  for (const bool ends : {false, true}) {
    ends_ = ends;
    respond_with(lines(5000));
    FaultPlan plan;
    plan.fail_nth(SystemCall::read_at_once, 1, EAGAIN).fail_nth(SystemCall::read, 1, EIO);
    const FaultScope scope(plan);
    const auto client = request();
    finish();
    EXPECT_EQ(kept_->error, system_error(EIO));
    EXPECT_TRUE(client->is_reset());
  }
}

TEST_P(CompressedFiles, PoolThatRefusesResetsResponse) {
  std::latch latch(1);
  ThreadPool pool({.max_threads = 1, .max_queued = 0});
  Offloading busy = must(offload(loop_, [&latch] { latch.wait(); }, [] {}, pool));
  respond_with(lines(5000), 5000, pool);
  FaultPlan plan;
  plan.fail_nth(SystemCall::read_at_once, 1, EAGAIN);
  const FaultScope scope(plan);
  const auto client = request();
  EXPECT_EQ(kept_->error, Error::queue_full);
  EXPECT_TRUE(client->is_reset());
  latch.count_down();
  busy.cancel();
}

TEST_P(CompressedFiles, BadArgumentsAreRefused) {
  on_request = [this](Exchange exchange) {
    EXPECT_TRUE(exchange.begin(Status::ok, fields_));
    EXPECT_EQ(exchange.send_file(-1, 0, 1), std::errc::bad_file_descriptor);
    EXPECT_EQ(exchange.send_file(0, UINT64_MAX, 1), std::errc::invalid_argument);
    EXPECT_TRUE(exchange.write("whole"));
    EXPECT_TRUE(exchange.end());
  };
  const auto client = request();
  EXPECT_EQ(client->body(), "whole");
  EXPECT_TRUE(client->is_whole());
}

TEST_P(CompressedFiles, LongFileIsCompressedInSeveralTurns) {
  const std::string text(16'000'000, 'x');
  respond_with(text);
  const auto client = request();
  turns(2);
  EXPECT_GT(kept_->exchange.queued(), 0u);
  EXPECT_TRUE(kept_->exchange.end());
  turns(200);
  EXPECT_TRUE(client->body() == text);
}

TEST_P(CompressedFiles, FileIsReadOnlyAsClientReads) {
  const std::string text = noise(8'000'000);
  respond_with(text);
  FaultPlan plan;
  const FaultScope scope(plan);
  const auto client = request(ClientReads::no);
  turns(200);
  const std::uint64_t pieces = plan.calls(SystemCall::read_at_once);
  EXPECT_GT(pieces, 0u);
  EXPECT_LT(pieces * kPiece, 1'000'000u);
  EXPECT_GT(kept_->exchange.queued(), text.size() - 1'000'000);
  EXPECT_EQ(kept_->drained, 0);
  turns(200);
  EXPECT_EQ(plan.calls(SystemCall::read_at_once), pieces);
  client->stream().resume();
  turns(2'000);
  EXPECT_EQ(kept_->drained, 1);
  EXPECT_TRUE(kept_->exchange.end());
  turns();
  EXPECT_TRUE(client->is_whole());
  EXPECT_TRUE(client->body() == text);
}

TEST_P(CompressedFiles, EndedResponseContinuesWhenClientReadsAgain) {
  const std::string text = noise(8'000'000);
  ends_ = true;
  respond_with(text);
  FaultPlan plan;
  const FaultScope scope(plan);
  const auto client = request(ClientReads::no);
  turns(200);
  EXPECT_LT(plan.calls(SystemCall::read_at_once) * kPiece, 1'000'000u);
  client->stream().resume();
  turns(2'000);
  EXPECT_TRUE(client->is_whole());
  EXPECT_TRUE(client->body() == text);
  EXPECT_FALSE(kept_->error);
}

TEST_P(CompressedFiles, QueueOfBytesBehindFileIsLimited) {
  respond_with(lines(5000));
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request();
  const std::string piece(8 * 1024 * 1024, 'x');
  int count = 0;
  while (kept_->exchange.write(piece)) ++count;
  EXPECT_EQ(count, 8);
  turns();
  EXPECT_TRUE(client->is_reset());
}

TEST_P(CompressedFiles, LostClientClosesFile) {
  const auto before = open_fds();
  {
    ThreadPool pool;
    respond_with(lines(5000), 5000, pool);
    SlowDisk disk(SystemCall::read, 1);
    const auto client = request();
    client->stream().abort();
    turns();
    EXPECT_TRUE(kept_->is_closed);
    EXPECT_FALSE(works_in_pool(loop_));
    disk.respond();
  }
  kept_.reset();
  EXPECT_LE(open_fds().size(), before.size());
}

TEST_P(CompressedFiles, ServerMayBeDestroyedMeanwhile) {
  respond_with(lines(5000));
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request();
  server_ = {};
  turns();
  EXPECT_FALSE(works_in_pool(loop_));
  EXPECT_FALSE(client->is_whole());
}

// The parent has the thread.
TEST_P(CompressedFiles, ChildOfForkReadsItself) {
  const std::string text = lines(50'000);
  respond_with(text);
  SlowDisk disk(SystemCall::read, 1);
  const auto client = request();
  EXPECT_TRUE(kept_->exchange.end());
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    disk.respond();
    if (loop_.after_fork()) ::_exit(1);
    while (!client->is_whole()) loop_.run(Run::no_wait);
    ::_exit(client->body() == text ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  disk.respond();
  finish();
  EXPECT_TRUE(client->body() == text);
}

INSTANTIATE_TEST_SUITE_P(Protocols, CompressedFiles,
                         ::testing::Values(Protocol::http1, Protocol::http2),
                         [](const auto& suite) {
                           return suite.param == Protocol::http1 ? "Http1" : "Http2";
                         });

}  // namespace
}  // namespace spate::testing
