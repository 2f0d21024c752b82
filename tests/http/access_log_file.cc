// AccessLog: the formats, hostile values, slow readers, and reopening.
#include "spate/http/access_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "http/harness.h"
#include "spate/http/router.h"

namespace spate::testing {
namespace {

using http::AccessLogFormat;
using http::Exchange;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The address of a connection in memory is unknown, and the clock stands still.
constexpr std::string_view kBegin = "- - - [14/Nov/2023:22:13:20 +0000] ";

class AccessLogFile : public HttpServerTest {
 protected:
  AccessLogFile() {
    char name[] = "/tmp/spate_log_XXXXXX";
    directory_ = ::mkdtemp(name);
    path_ = directory_ + "/access.log";
  }
  ~AccessLogFile() override {
    for (const std::string& each : {path_, path_ + ".1"}) ::unlink(each.c_str());
    ::rmdir(directory_.c_str());
  }

  void serve_logged(const http::AccessLog& log, std::size_t max_body = SIZE_MAX) {
    http::ServerOptions options;
    options.max_body = max_body;
    options.log = log.writer();
    serve_with(std::move(options));
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns the lines for one request.
  std::string lines(AccessLogFormat format, std::string_view request, std::size_t max_body = 10) {
    ::unlink(path_.c_str());
    {
      const http::AccessLog log = must(http::AccessLog::open(path_, {.format = format}));
      serve_logged(log, max_body);
      talk(request);
    }
    return content(path_);
  }

  std::string directory_;
  std::string path_;
};

TEST_F(AccessLogFile, CommonLineHasRequest) {
  EXPECT_EQ(lines(AccessLogFormat::common, kGet),
            std::string(kBegin) + "\"GET / HTTP/1.1\" 200 6\n");
}

TEST_F(AccessLogFile, CombinedLineHasTwoMoreFields) {
  EXPECT_EQ(lines(AccessLogFormat::combined,
                  "GET /a?b HTTP/1.1\r\nHost: a\r\nReferer: http://b/\r\nUser-Agent: me/1\r\n\r\n"),
            std::string(kBegin) + "\"GET /a?b HTTP/1.1\" 200 6 \"http://b/\" \"me/1\"\n");
  EXPECT_THAT(lines(AccessLogFormat::combined, kGet), ::testing::EndsWith(" 200 6 \"-\" \"-\"\n"));
}

TEST_F(AccessLogFile, JsonLineIsObject) {
  EXPECT_EQ(lines(AccessLogFormat::json, "GET /a HTTP/1.1\r\nHost: b\r\nUser-Agent: me\r\n\r\n"),
            R"({"time":"2023-11-14T22:13:20.000Z","peer":"","method":"GET","target":"/a",)"
            R"("host":"b","version":"HTTP/1.1","status":200,"sent":6,"received":0,)"
            R"("duration_us":0,"referer":"","user_agent":"me"})"
            "\n");
}

TEST_F(AccessLogFile, RefusedRequestHasItsReason) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n";
  const std::string json = lines(AccessLogFormat::json, post);
  EXPECT_THAT(json, HasSubstr(R"("status":413)"));
  EXPECT_THAT(json, HasSubstr(R"("reason":"the body is too long")"));
  EXPECT_THAT(json, HasSubstr(R"("error":"Message too long")"));
  EXPECT_THAT(lines(AccessLogFormat::common, "nonsense\r\n\r\n"), HasSubstr("] \"-\" 400 "));
}

TEST_F(AccessLogFile, RouteIsLogged) {
  http::Router router;
  router.get("/users/:id", [](Exchange exchange) { exchange.respond("one"); });
  {
    const auto log = must(http::AccessLog::open(path_, {.format = AccessLogFormat::json}));
    http::ServerOptions options;
    options.log = log.writer();
    server_ = must(http::Server::create(loop_, router, std::move(options)));
    talk("GET /users/7 HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  EXPECT_THAT(content(path_), HasSubstr(R"("target":"/users/7")"));
  EXPECT_THAT(content(path_), HasSubstr(R"("route":"/users/:id")"));
}

// ---- hostile values

TEST_F(AccessLogFile, PlainValueIsEscaped) {
  EXPECT_EQ(lines(AccessLogFormat::combined,
                  "GET / HTTP/1.1\r\nHost: a\r\nReferer: \" 200 0 \"\\\r\n"
                  "User-Agent: a\tb\xc3\xa4\x9b[31m\r\n\r\n"),
            std::string(kBegin) + "\"GET / HTTP/1.1\" 200 6 \"\\\" 200 0 \\\"\\\\\" "
                                  "\"a\\x09b\\xc3\\xa4\\x9b[31m\"\n");
}

TEST_F(AccessLogFile, JsonValueIsEscaped) {
  EXPECT_THAT(lines(AccessLogFormat::json,
                    "GET / HTTP/1.1\r\nHost: a\r\nReferer: \",\"status\":0,\"x\":\"\\\r\n"
                    "User-Agent: a\tb\xc3\xa4\x9b\r\n\r\n"),
              HasSubstr("\"referer\":\"\\\",\\\"status\\\":0,\\\"x\\\":\\\"\\\\\","
                        "\"user_agent\":\"a\\u0009b\xc3\xa4\\ufffd\"}\n"));
}

// ---- the file

TEST_F(AccessLogFile, RenamedFileIsLeftAfterReopen) {
  http::AccessLog log = must(http::AccessLog::open(path_));
  serve_logged(log);
  talk("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  talk("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
  log.reopen();
  talk("GET /third HTTP/1.1\r\nHost: a\r\n\r\n");
  log = http::AccessLog();
  EXPECT_THAT(content(path_ + ".1"), HasSubstr("/first"));
  EXPECT_THAT(content(path_ + ".1"), HasSubstr("/second"));
  EXPECT_THAT(content(path_), HasSubstr("/third"));
  EXPECT_THAT(content(path_), Not(HasSubstr("/second")));
}

TEST_F(AccessLogFile, OldFileIsUsedIfReopenFails) {
  http::AccessLog log = must(http::AccessLog::open(path_));
  serve_logged(log);
  ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  log.reopen();
  while (!log.error()) ::usleep(1000);
  EXPECT_EQ(log.error(), std::errc::is_a_directory);
  talk(kGet);
  log = http::AccessLog();
  ::rmdir(path_.c_str());
  EXPECT_THAT(content(path_ + ".1"), HasSubstr("\"GET / HTTP/1.1\""));
}

TEST_F(AccessLogFile, FileIsAppendedTo) {
  std::ofstream(path_) << "before\n";
  {
    const http::AccessLog log = must(http::AccessLog::open(path_));
    serve_logged(log);
    talk(kGet);
  }
  EXPECT_THAT(content(path_), StartsWith("before\n- - - ["));
}

// As when the disk is full, and later has room again.
TEST_F(AccessLogFile, LineIsWholeAfterCutLine) {
  http::AccessLog log = must(http::AccessLog::open(path_, {.format = AccessLogFormat::common}));
  serve_logged(log);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit tight = limit;
  tight.rlim_cur = 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  talk(kGet);
  while (!log.error()) ::usleep(1000);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(log.error(), std::errc::file_too_large);
  EXPECT_EQ(log.dropped(), 1u);
  talk(kGet);
  log = http::AccessLog();
  const std::string line = std::string(kBegin) + "\"GET / HTTP/1.1\" 200 6\n";
  EXPECT_EQ(content(path_), line.substr(0, 20) + "\n" + line);
}

TEST_F(AccessLogFile, MissingDirectoryIsError) {
  EXPECT_EQ(http::AccessLog::open(path_ + "/a").error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(http::AccessLog::to_descriptor(-1).error(), std::errc::bad_file_descriptor);
}

TEST_F(AccessLogFile, WriterMayOutliveLog) {
  serve_logged(must(http::AccessLog::open(path_)));
  EXPECT_THAT(talk(kGet), HasSubstr("hello"));
  EXPECT_EQ(content(path_), "");
  serve_logged(http::AccessLog());
  EXPECT_THAT(talk(kGet), HasSubstr("hello"));
}

// While the test does not read the pipe, lines beyond its size and that of the queue are dropped,
// and the server answers. Then all others arrive.
TEST_F(AccessLogFile, SlowReaderLosesWholeLines) {
  constexpr std::size_t kRequests = 1000;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_GE(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  {
    const http::AccessLog log = must(http::AccessLog::to_descriptor(ends[1], {.max_queued = 8192}));
    serve_logged(log);
    const auto client = connect();
    for (std::size_t i = 0; i < kRequests; ++i) {
      client->received.clear();
      client->send(kGet);
      turns(5);
      ASSERT_THAT(client->received, HasSubstr("hello"));
    }
    const std::uint64_t dropped = log.dropped();
    EXPECT_GT(dropped, kRequests / 2);
    std::string text;
    char bytes[4096];
    while (std::ranges::count(text, '\n') < static_cast<std::ptrdiff_t>(kRequests - dropped)) {
      const ssize_t size = ::read(ends[0], bytes, sizeof(bytes));
      ASSERT_GT(size, 0);
      text.append(bytes, static_cast<std::size_t>(size));
    }
    const std::string line = std::string(kBegin) + "\"GET / HTTP/1.1\" 200 6 \"-\" \"-\"\n";
    std::string all;
    while (all.size() < text.size()) all += line;
    EXPECT_EQ(text, all);
    EXPECT_EQ(log.dropped(), dropped);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

// A FIFO holds less than the requests' lines, so that some are queued when the log is destroyed.
TEST_F(AccessLogFile, QueuedLinesAreWrittenAndFileIsClosedByDestructor) {
  constexpr std::size_t kPipe = 4096;
  constexpr std::size_t kQueued = 8192;
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(::fcntl(reader, F_SETPIPE_SZ, kPipe), static_cast<int>(kPipe));
  http::AccessLog log = must(http::AccessLog::open(
      path_, {.format = AccessLogFormat::common, .max_queued = kQueued}));
  serve_logged(log);
  const auto client = connect();
  const std::string line = std::string(kBegin) + "\"GET / HTTP/1.1\" 200 6\n";
  std::size_t sent = 0;
  for (; (sent - log.dropped()) * line.size() <= kPipe + kQueued; ++sent) {
    client->send(kGet);
    turns(5);
  }
  const std::size_t expected = (sent - log.dropped()) * line.size();
  ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
  std::string text;
  char bytes[512];
  std::thread reading([&] {
    for (ssize_t size = 1; size > 0 && text.size() < expected;) {
      size = ::read(reader, bytes, sizeof(bytes));
      if (size > 0) text.append(bytes, static_cast<std::size_t>(size));
    }
  });
  log = http::AccessLog();
  reading.join();
  EXPECT_EQ(text.size(), expected);
  EXPECT_THAT(text, ::testing::EndsWith(line));
  ASSERT_EQ(::fcntl(reader, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(::read(reader, bytes, sizeof(bytes)), 0) << "the file is open, as the server's writer";
  ::close(reader);
}

// The pipe blocks: O_NONBLOCK is not set.
TEST_F(AccessLogFile, PipeThatIsNeverReadDoesNotBlockEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_GE(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  http::AccessLog log = must(http::AccessLog::to_descriptor(ends[1]));
  serve_logged(log);
  const std::string request = "GET /" + std::string(3000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int i = 0; i < 5; ++i) EXPECT_THAT(talk(request), HasSubstr("hello"));
  log = http::AccessLog();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(AccessLogFile, LostReaderIsError) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const http::AccessLog log = must(http::AccessLog::to_descriptor(ends[1]));
  serve_logged(log);
  EXPECT_THAT(talk(kGet), HasSubstr("hello"));
  while (log.dropped() == 0 || !log.error()) ::usleep(1000);
  EXPECT_EQ(log.error(), std::errc::broken_pipe);
  ::close(ends[1]);
}

}  // namespace
}  // namespace spate::testing
