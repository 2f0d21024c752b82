// The cache of Files: responses from memory, and changes of files that they must show.
#include <filesystem>
#include <string>

#include "http/files_harness.h"

namespace spate::testing {
namespace {

using ::testing::HasSubstr;

// Counts the reads of files by any thread.
std::uint64_t reads_of(const FaultPlan& plan) {
  return plan.calls(SystemCall::read) + plan.calls(SystemCall::read_at_once);
}

class KeptFiles : public FilesServed {
 protected:
  KeptFiles() {
    tree_.write("medium", medium_);
    serve_as({});
  }
  // Returns how many files were opened or read for the response, whose body is `expected`.
  std::uint64_t calls_for(const std::string& path, const std::string& expected) {
    FaultPlan plan;
    const FaultScope scope(plan);
    EXPECT_EQ(body(get(path)), expected);
    return plan.calls(SystemCall::open) + reads_of(plan);
  }
  // Returns whether the content was read for the response.
  bool reads(const std::string& path, const std::string& expected) {
    FaultPlan plan;
    const FaultScope scope(plan);
    EXPECT_EQ(body(get(path)), expected);
    return reads_of(plan) != 0;
  }
  // Replaces the file as programs do: under another name first.
  void replace(const std::string& name, const std::string& text) {
    tree_.write(name + ".new", text);
    std::filesystem::rename(tree_.at(name + ".new"), tree_.at(name));
  }

  const std::string medium_ = std::string(200'000, 'm') + "end";
};

TEST_F(KeptFiles, SmallFileIsServedFromMemoryAfterOneRequest) {
  EXPECT_NE(calls_for("/a.txt", "hello\n"), 0u);
  EXPECT_EQ(calls_for("/a.txt", "hello\n"), 0u);
  EXPECT_NE(calls_for("/dir/", "<p>index"), 0u);
  EXPECT_EQ(calls_for("/dir/", "<p>index"), 0u);
}

TEST_F(KeptFiles, LargerFileIsServedFromMemoryAfterTwoRequests) {
  EXPECT_NE(calls_for("/medium", medium_), 0u);
  EXPECT_NE(calls_for("/medium", medium_), 0u);
  EXPECT_EQ(calls_for("/medium", medium_), 0u);
}

TEST_F(KeptFiles, ReplacedFileIsServedAfterCheck) {
  const std::string before = get("/a.txt");
  replace("a.txt", "HELLO\n");  // The size and the time are those of the old one.
  EXPECT_EQ(get("/a.txt"), before);
  pass(kSecond);
  EXPECT_EQ(body(get("/a.txt")), "HELLO\n");
  replace("a.txt", "another\n");
  pass(kSecond);
  const std::string longer = get("/a.txt");
  EXPECT_EQ(body(longer), "another\n");
  EXPECT_EQ(field(longer, "Content-Length"), "8");
  EXPECT_NE(field(longer, "ETag"), field(before, "ETag"));
}

TEST_F(KeptFiles, RewrittenFileIsServedAfterCheck) {
  get("/medium");
  get("/medium");
  tree_.write("medium", "short");
  pass(kSecond);
  EXPECT_EQ(body(get("/medium")), "short");
}

TEST_F(KeptFiles, RemovedFileIsMissingAfterCheck) {
  EXPECT_EQ(status_of("/a.txt"), "200");
  std::filesystem::remove(tree_.at("a.txt"));
  pass(kSecond);
  EXPECT_EQ(status_of("/a.txt"), "404");
  tree_.write("a.txt", "again");
  EXPECT_EQ(body(get("/a.txt")), "again");
}

TEST_F(KeptFiles, UnchangedFileIsNotReadAgain) {
  EXPECT_TRUE(reads("/a.txt", "hello\n"));
  for (int i = 0; i < 3; ++i) {
    pass(kSecond);
    EXPECT_FALSE(reads("/a.txt", "hello\n"));
    EXPECT_EQ(calls_for("/a.txt", "hello\n"), 0u);
  }
}

TEST_F(KeptFiles, FileThatChangedLatelyIsNotKept) {
  for (const std::int64_t time : {1'700'000'000, 1'699'999'999, 1'800'000'000}) {
    tree_.write("new", "one", time);
    EXPECT_EQ(body(get("/new")), "one");
    tree_.write("new", "two", time);
    EXPECT_EQ(body(get("/new")), "two");
  }
  tree_.write("new", "one", 1'699'999'998);
  EXPECT_EQ(body(get("/new")), "one");
  tree_.write("new", "two", 1'699'999'998);
  EXPECT_EQ(body(get("/new")), "one");
}

TEST_F(KeptFiles, RangesAndConditionsAreThoseOfFile) {
  const auto requests = {std::pair("", ""),
                         {"Range: bytes=5-9\r\n", ""},
                         {"Range: bytes=-3\r\n", ""},
                         {"Range: bytes=200003-\r\n", ""},
                         {"If-Modified-Since: Mon, 13 Nov 2023 10:00:00 GMT\r\n", ""}};
  for (const auto& [fields, unused] : requests) {
    serve_as({.cache_size = 0});
    const std::string expected = get("/medium", fields);
    const std::string expected_head = ask("HEAD /medium", fields);
    serve_as({});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(get("/medium", fields), expected) << fields;
      EXPECT_EQ(ask("HEAD /medium", fields), expected_head) << fields;
    }
  }
}

TEST_F(KeptFiles, SeveralRangesAreSentFromMemory) {
  for (int i = 0; i < 3; ++i) {
    const std::string answer = get("/medium", "Range: bytes=0-1,100-1099,-4\r\n");
    EXPECT_EQ(status(answer), "206");
    EXPECT_EQ(field(answer, "Content-Length"), std::to_string(body(answer).size()));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nmm\r\n--"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\n" + std::string(1'000, 'm') + "\r\n--"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nmend\r\n--"));
  }
}

TEST_F(KeptFiles, CodingsAreKeptSeparately) {
  tree_.write("a.txt.gz", "gzip");
  serve_as({.precompressed = true});
  for (int i = 0; i < 3; ++i) {
    const std::string coded = get("/a.txt", "Accept-Encoding: gzip\r\n");
    EXPECT_EQ(body(coded), "gzip");
    EXPECT_EQ(field(coded, "Content-Encoding"), "gzip");
    const std::string plain = get("/a.txt");
    EXPECT_EQ(body(plain), "hello\n");
    EXPECT_EQ(field(plain, "Content-Encoding"), "");
    EXPECT_EQ(field(plain, "Vary"), "Accept-Encoding");
  }
}

TEST_F(KeptFiles, ContentIsSentWholeIfFileIsTruncatedMeanwhile) {
  get("/medium");
  get("/medium");
  const auto client = connect();
  client->stream().pause();
  client->send("GET /medium HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  std::filesystem::resize_file(tree_.at("medium"), 3);
  client->stream().resume();
  settle();
  EXPECT_EQ(body(client->received), medium_);
}

TEST_F(KeptFiles, ManyFilesAreServedFromSmallCache) {
  serve_as({.cache_size = 20'000});
  for (int i = 0; i < 10'000; ++i) tree_.write("many/" + std::to_string(i), std::to_string(i));
  for (int i = 0; i < 10'000; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(body(get("/many/" + number)), number);
  }
  EXPECT_EQ(calls_for("/many/9999", "9999"), 0u);
  EXPECT_NE(calls_for("/many/0", "0"), 0u);
}

TEST_F(KeptFiles, FileAboveHalfOfCacheDropsNoOther) {
  serve_as({.cache_size = 300'000});
  get("/a.txt");
  for (int i = 0; i < 4; ++i) EXPECT_NE(calls_for("/medium", medium_), 0u);
  EXPECT_EQ(calls_for("/a.txt", "hello\n"), 0u);
}

TEST_F(KeptFiles, NothingIsKeptWithoutCache) {
  serve_as({.cache_size = 0});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reads("/a.txt", "hello\n"));
}

}  // namespace
}  // namespace spate::testing
