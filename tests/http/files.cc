// Files: those beneath a directory, whole and in part; and those that must not be served.
#include "spate/http/files.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "http/files_harness.h"
#include "spate/http/router.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Files;
using http::FilesOptions;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(FilesServed, HaveTypeETagAndLastModified) {
  const std::string answer = get("/a.txt");
  EXPECT_THAT(answer,
              StartsWith("HTTP/1.1 200 OK\r\n" + std::string(kDateLine) + "Content-Length: 6\r\n"));
  EXPECT_EQ(field(answer, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(field(answer, "Last-Modified"), "Mon, 13 Nov 2023 10:00:00 GMT");
  EXPECT_EQ(field(answer, "Accept-Ranges"), "bytes");
  EXPECT_THAT(field(answer, "ETag"), AllOf(StartsWith("\""), EndsWith("\"")));
  EXPECT_EQ(body(answer), "hello\n");
}

TEST_F(FilesServed, OmitBodyForHead) {
  const std::string answer = ask("HEAD /a.txt");
  EXPECT_EQ(status(answer), "200");
  EXPECT_EQ(field(answer, "Content-Length"), "6");
  EXPECT_EQ(body(answer), "");
}

TEST_F(FilesServed, MayBeEmpty) {
  const std::string answer = get("/empty");
  EXPECT_EQ(status(answer), "200");
  EXPECT_EQ(field(answer, "Content-Length"), "0");
  EXPECT_EQ(status(get("/empty", "Range: bytes=0-0\r\n")), "200");
}

TEST_F(FilesServed, ArriveWholeForAnySize) {
  for (const std::size_t size : {8 * 1024 - 1, 8 * 1024, 8 * 1024 + 1, 1024 * 1024}) {
    std::string text(size, 'x');
    text.back() = 'y';
    tree_.write("big", text);
    const auto client = connect();
    client->send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    settle();
    EXPECT_EQ(body(client->received), text) << size;
    EXPECT_THAT(ask("HEAD /big"), HasSubstr("Content-Length: " + std::to_string(size) + "\r\n"));
  }
}

TEST_F(FilesServed, ArePipelinedOnOneConnection) {
  tree_.write("big", std::string(100'000, 'x'));
  const auto client = connect();
  client->send("GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  EXPECT_THAT(client->received, EndsWith("hello\n"));
}

TEST_F(FilesServed, HaveETagThatChangesWithFile) {
  const std::string before = field(get("/a.txt"), "ETag");
  EXPECT_EQ(field(get("/a.txt"), "ETag"), before);
  tree_.write("a.txt", "longer than before\n");
  const std::string longer = field(get("/a.txt"), "ETag");
  EXPECT_NE(longer, before);
  tree_.set_time("a.txt", OwnTree::kWritten - 1);
  EXPECT_NE(field(get("/a.txt"), "ETag"), longer);
}

TEST_F(FilesServed, ModifiedInCurrentSecondHaveNoLastModified) {
  tree_.set_time("a.txt", 1'700'000'000);  // That of the clock.
  EXPECT_EQ(field(get("/a.txt"), "Last-Modified"), "");
  tree_.set_time("a.txt", 1'700'000'001);
  EXPECT_EQ(field(get("/a.txt"), "Last-Modified"), "");
  tree_.set_time("a.txt", 1'699'999'999);
  EXPECT_EQ(field(get("/a.txt"), "Last-Modified"), "Tue, 14 Nov 2023 22:13:19 GMT");
}

TEST_F(FilesServed, AreNotSentAgainIfUnmodified) {
  const std::string first = get("/a.txt", "");
  const std::string tag = field(first, "ETag");
  const std::string again = get("/a.txt", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(status(again), "304");
  EXPECT_EQ(body(again), "");
  EXPECT_EQ(field(again, "ETag"), tag);
  EXPECT_EQ(status(get("/a.txt", "If-None-Match: \"x\"\r\nIf-None-Match: " + tag + "\r\n")), "304");
  EXPECT_EQ(status(get("/a.txt", "If-None-Match: \"x\"\r\n")), "200");
  EXPECT_EQ(status(get("/a.txt", "If-Modified-Since: Mon, 13 Nov 2023 10:00:00 GMT\r\n")), "304");
  EXPECT_EQ(status(get("/a.txt", "If-Modified-Since: Mon, 13 Nov 2023 09:59:59 GMT\r\n")), "200");
  EXPECT_EQ(status(ask("HEAD /a.txt", "If-None-Match: *\r\n")), "304");
}

TEST_F(FilesServed, AreNotSentIfPreconditionFails) {
  const std::string tag = field(get("/a.txt"), "ETag");
  EXPECT_EQ(status(get("/a.txt", "If-Match: \"x\"\r\n")), "412");
  EXPECT_EQ(status(get("/a.txt", "If-Match: \"x\"\r\nIf-Match: " + tag + "\r\n")), "200");
  EXPECT_EQ(status(get("/a.txt", "If-Unmodified-Since: Mon, 13 Nov 2023 09:59:59 GMT\r\n")), "412");
}

TEST_F(FilesServed, SupportSingleRange) {
  const std::string answer = get("/a.txt", "Range: bytes=1-3\r\n");
  EXPECT_EQ(status(answer), "206");
  EXPECT_EQ(field(answer, "Content-Range"), "bytes 1-3/6");
  EXPECT_EQ(field(answer, "Content-Length"), "3");
  EXPECT_EQ(body(answer), "ell");
  EXPECT_EQ(body(get("/a.txt", "Range: bytes=-2\r\n")), "o\n");
  EXPECT_EQ(body(get("/a.txt", "Range: bytes=4-\r\n")), "o\n");
  EXPECT_EQ(body(get("/a.txt", "Range: lines=1-2\r\n")), "hello\n");
  EXPECT_EQ(status(ask("HEAD /a.txt", "Range: bytes=1-3\r\n")), "200");
}

TEST_F(FilesServed, SupportRangesOfLargeFiles) {
  std::string text(200'000, 'x');
  text[100'000] = 'a';
  text[150'000] = 'b';
  tree_.write("big", text);
  const auto client = connect();
  client->send("GET /big HTTP/1.1\r\nHost: a\r\nRange: bytes=100000-150000\r\n\r\n");
  settle();
  EXPECT_EQ(body(client->received), text.substr(100'000, 50'001));
}

TEST_F(FilesServed, RejectRangesBeyondEndOfFile) {
  const std::string answer = get("/a.txt", "Range: bytes=6-\r\n");
  EXPECT_EQ(status(answer), "416");
  EXPECT_EQ(field(answer, "Content-Range"), "bytes */6");
}

TEST_F(FilesServed, SupportMultipleRanges) {
  const std::string answer = get("/a.txt", "Range: bytes=0-0,2-3\r\n");
  EXPECT_EQ(status(answer), "206");
  const std::string type = field(answer, "Content-Type");
  ASSERT_THAT(type, StartsWith("multipart/byteranges; boundary="));
  const std::string boundary = type.substr(type.find('=') + 1);
  EXPECT_EQ(body(answer), "--" + boundary +
                              "\r\nContent-Type: text/plain; charset=utf-8\r\n"
                              "Content-Range: bytes 0-0/6\r\n\r\nh\r\n--" +
                              boundary +
                              "\r\nContent-Type: text/plain; charset=utf-8\r\n"
                              "Content-Range: bytes 2-3/6\r\n\r\nll\r\n--" +
                              boundary + "--\r\n");
  EXPECT_EQ(field(answer, "Content-Length"), std::to_string(body(answer).size()));
  EXPECT_EQ(field(answer, "Content-Range"), "");
}

TEST_F(FilesServed, AreSentWholeIfIfRangeDoesNotMatch) {
  const std::string tag = field(get("/a.txt"), "ETag");
  const std::string range = "Range: bytes=1-3\r\n";
  EXPECT_EQ(status(get("/a.txt", range + "If-Range: " + tag + "\r\n")), "206");
  EXPECT_EQ(status(get("/a.txt", range + "If-Range: \"x\"\r\n")), "200");
  EXPECT_EQ(status(get("/a.txt", range + "If-Range: W/" + tag + "\r\n")), "200");
}

TEST_F(FilesServed, RejectOtherMethods) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    const std::string answer = ask(std::string(method) + " /a.txt");
    EXPECT_EQ(status(answer), "405") << method;
    EXPECT_EQ(field(answer, "Allow"), "GET, HEAD") << method;
  }
}

// ---- the root

TEST_F(FilesServed, ExcludePathsOutsideRoot) {
  for (const char* path : {"/../secret", "/dir/../../secret", "/%2e%2e/secret", "/..%2fsecret",
                           "/dir/..%2f..%2fsecret", "//../secret", "/nothing", "/a.txt%00",
                           "/a.txt/", "/a.txt/b", "/dir/nothing", "/a%2etxt%2f"})
    EXPECT_EQ(status_of(path), "404") << path;
  EXPECT_EQ(status_of("/dir/../a.txt"), "200");
  EXPECT_EQ(status_of("//a.txt"), "200");
  EXPECT_EQ(status_of("/%61.txt"), "200");
}

TEST_F(FilesServed, FollowLinksOnlyBeneathRoot) {
  tree_.link("inside", "dir/index.html");
  tree_.link("outside", "../secret");
  tree_.link("absolute", tree_.at("../secret"));
  tree_.link("up", "..");
  tree_.link("endless", "endless");
  tree_.link("self", "/proc/self/root");
  EXPECT_EQ(status_of("/inside"), "200");
  for (const char* path : {"/outside", "/absolute", "/up/secret", "/endless", "/self/etc/passwd"})
    EXPECT_EQ(status_of(path), "404") << path;
}

TEST_F(FilesServed, StayInOpenedRootAfterRename) {
  std::filesystem::rename(tree_.at(""), tree_.at("../elsewhere"));
  tree_.write("a.txt", "another");
  EXPECT_EQ(body(get("/a.txt")), "hello\n");
}

TEST_F(FilesServed, AreRegularFilesOnly) {
  ASSERT_EQ(::mkfifo(tree_.at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(status_of("/pipe"), "404");
}

TEST_F(FilesServed, ExcludeHiddenFiles) {
  tree_.write(".htpasswd", "x");
  tree_.write(".git/config", "x");
  tree_.write("dir/.hidden", "x");
  tree_.write(".well-known/x", "x");
  tree_.write(".well-known/.y", "x");
  tree_.write(".well-known-not/x", "x");
  const auto hidden = {"/.htpasswd",   "/.git/config",    "/dir/.hidden",
                       "/%2ehtpasswd", "/.well-known/.y", "/.well-known-not/x"};
  for (const char* path : hidden) EXPECT_EQ(status_of(path), "404") << path;
  EXPECT_EQ(status_of("/.well-known/x"), "200");
  serve_files({.hidden = true});
  for (const char* path : hidden) EXPECT_EQ(status_of(path), "200") << path;
}

TEST_F(FilesOfAnOldKernel, AreResolvedComponentByComponent) {
  tree_.write("dir/deep/er", "er");
  EXPECT_EQ(body(get("/a.txt")), "hello\n");
  EXPECT_EQ(body(get("/dir/deep/er")), "er");
  EXPECT_EQ(body(get("/dir/")), "<p>index");
  EXPECT_EQ(status_of("/"), "200");
  EXPECT_EQ(status_of("/dir/deep/"), "200");
  EXPECT_EQ(status_of("/nothing"), "404");
  EXPECT_EQ(status_of("/a.txt/"), "404");
}

TEST_F(FilesOfAnOldKernel, RejectAllLinks) {
  tree_.link("inside", "a.txt");
  tree_.link("outside", "../secret");
  tree_.link("up", "..");
  tree_.link("beside", "dir");
  for (const char* path :
       {"/inside", "/outside", "/up/secret", "/beside/index.html", "/../secret", "/beside/"})
    EXPECT_EQ(status_of(path), "404") << path;
}

// ---- directories

TEST_F(FilesServed, IncludeIndexOfDirectory) {
  EXPECT_EQ(body(get("/dir/")), "<p>index");
  EXPECT_EQ(field(get("/dir/"), "Content-Type"), "text/html; charset=utf-8");
  serve_files({.index = ""});
  EXPECT_EQ(status_of("/dir/"), "403");
  serve_files({.index = "a.txt"});
  EXPECT_EQ(body(get("/")), "hello\n");
}

TEST_F(FilesServed, RedirectDirectoriesToTrailingSlash) {
  const std::string answer = get("/dir?a=b");
  EXPECT_EQ(status(answer), "301");
  EXPECT_EQ(field(answer, "Location"), "/dir/?a=b");
  EXPECT_EQ(field(get("/dir"), "Location"), "/dir/");
}

TEST_F(FilesServed, AreNotRedirectedToAnotherHost) {
  std::filesystem::create_directories(tree_.at("evil.example"));
  std::filesystem::create_directories(tree_.at("\\evil.example"));
  EXPECT_EQ(field(get("//evil.example"), "Location"), "/evil.example/");
  EXPECT_EQ(field(get("/%5Cevil.example"), "Location"), "/%5Cevil.example/");
  EXPECT_EQ(status_of("/dir/.."), "403");
}

TEST_F(FilesServed, AreListedIfListingIsEnabled) {
  EXPECT_EQ(status_of("/"), "403");
  tree_.write("<b> &\".txt", "x");
  tree_.write(".hidden", "x");
  serve_files({.listing = true});
  const std::string answer = get("/");
  EXPECT_EQ(status(answer), "200");
  EXPECT_EQ(field(answer, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(answer, HasSubstr("<a href=\"a.txt\">a.txt</a><td>6<td>"
                                "Mon, 13 Nov 2023 10:00:00 GMT\n"));
  EXPECT_THAT(answer, HasSubstr("<a href=\"dir/\">dir/</a><td><td>"));
  EXPECT_THAT(answer, HasSubstr("<a href=\"%3Cb%3E%20%26%22.txt\">&lt;b&gt; &amp;&quot;.txt</a>"));
  EXPECT_LT(answer.find("dir/"), answer.find("a.txt"));  // Directories first.
  EXPECT_THAT(answer, Not(HasSubstr("hidden")));
  EXPECT_THAT(answer, Not(HasSubstr("../")));
  EXPECT_THAT(get("/dir/"), EndsWith("<p>index"));
  serve_files({.listing = true, .hidden = true});
  EXPECT_THAT(get("/"), HasSubstr("<a href=\".hidden\">"));
}

TEST_F(FilesServed, AreListedWithParentLink) {
  tree_.write("sub/dir/x", "x");
  serve_files({.listing = true});
  const std::string answer = get("/sub/");
  EXPECT_THAT(answer, HasSubstr("<h1>/sub/</h1>"));
  EXPECT_THAT(answer, HasSubstr("<a href=\"../\">"));
  EXPECT_THAT(answer, HasSubstr("<a href=\"dir/\">"));
}

// ---- options

TEST_F(FilesServed, SendCacheControl) {
  serve_files({.cache_control = "max-age=60"});
  EXPECT_EQ(field(get("/a.txt"), "Cache-Control"), "max-age=60");
  EXPECT_EQ(field(get("/a.txt", "If-None-Match: *\r\n"), "Cache-Control"), "max-age=60");
  EXPECT_EQ(field(get("/nothing"), "Cache-Control"), "");
}

class FilesPrecompressed : public FilesServed {
 protected:
  FilesPrecompressed() {
    tree_.write("a.txt.gz", "gzip");
    tree_.write("a.txt.br", "brotli");
    tree_.write("dir/index.html.gz", "index");
    tree_.write("photo.jpg", "photo");
    tree_.write("photo.jpg.gz", "gzip");
    serve_files({.precompressed = true});
  }
};

TEST_F(FilesPrecompressed, AreSentToClientsThatAcceptThem) {
  const std::string answer = get("/a.txt", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(body(answer), "gzip");
  EXPECT_EQ(field(answer, "Content-Encoding"), "gzip");
  EXPECT_EQ(field(answer, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(field(answer, "Vary"), "Accept-Encoding");
  EXPECT_NE(field(answer, "ETag"), field(get("/a.txt"), "ETag"));
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: gzip, br\r\n")), "brotli");
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: gzip, br;q=0.5\r\n")), "gzip");
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: br;q=0\r\nAccept-Encoding: gzip\r\n")), "gzip");
  EXPECT_EQ(body(get("/dir/", "Accept-Encoding: gzip, br\r\n")), "index");
}

TEST_F(FilesPrecompressed, AreNotSentWithoutAcceptableCoding) {
  for (const char* fields :
       {"", "Accept-Encoding: identity\r\n", "Accept-Encoding: deflate\r\n",
        "Accept-Encoding: gzip;q=0, br;q=0\r\n", "Accept-Encoding: identity, gzip;q=0.5\r\n"}) {
    const std::string answer = get("/a.txt", fields);
    EXPECT_EQ(body(answer), "hello\n") << fields;
    EXPECT_EQ(field(answer, "Content-Encoding"), "") << fields;
    EXPECT_EQ(field(answer, "Vary"), "Accept-Encoding") << fields;
  }
  const std::string photo = get("/photo.jpg", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(body(photo), "photo");
  EXPECT_EQ(field(photo, "Vary"), "");
  serve_files({});
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: gzip\r\n")), "hello\n");
}

TEST_F(FilesPrecompressed, AreNotSentIfOlderOrNotRegular) {
  tree_.set_time("a.txt.br", OwnTree::kWritten - 1);
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: gzip, br\r\n")), "gzip");
  std::filesystem::remove(tree_.at("a.txt.gz"));
  std::filesystem::create_directories(tree_.at("a.txt.gz"));
  EXPECT_EQ(body(get("/a.txt", "Accept-Encoding: gzip, br\r\n")), "hello\n");
}

TEST_F(FilesPrecompressed, SupportRanges) {
  const std::string answer = get("/a.txt", "Accept-Encoding: gzip\r\nRange: bytes=1-2\r\n");
  EXPECT_EQ(body(answer), "zi");
  EXPECT_EQ(field(answer, "Content-Range"), "bytes 1-2/4");
  EXPECT_EQ(field(answer, "Content-Encoding"), "gzip");
}

// ---- by a route

TEST_F(FilesServed, MayBeServedByRoute) {
  http::Router router;
  router.get("/static/*path", [&](Exchange exchange) {
    const std::string path = exchange.request().param("path");
    files_->serve(std::move(exchange), path);
  });
  server_ = must(http::Server::create(loop_, router));
  tree_.write("a%41.txt", "not decoded twice");
  EXPECT_EQ(body(get("/static/a.txt")), "hello\n");
  EXPECT_EQ(body(get("/static/a%2541.txt")), "not decoded twice");
  EXPECT_EQ(field(get("/static/dir"), "Location"), "/static/dir/");
  EXPECT_EQ(status_of("/static/"), "403");
  for (const char* path : {"/static/../secret", "/static/..%2fsecret", "/static/%2e%2e%2fsecret",
                           "/static/a.txt%00", "/static/dir%2f..%2f..%2fsecret"})
    EXPECT_NE(status_of(path), "200") << path;
}

// ---- failures of the system

TEST_F(FilesServed, RequireDirectoryAsRoot) {
  EXPECT_EQ(Files::open(tree_.at("nothing")).error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(Files::open(tree_.at("a.txt")).error(), std::errc::not_a_directory);
}

TEST_F(FilesServed, MapErrnoToStatus) {
  const std::map<int, std::string> expected{
      {EACCES, "403"}, {EPERM, "403"}, {EMFILE, "503"}, {ENFILE, "503"}, {ENOMEM, "503"},
      {EIO, "500"},    {EXDEV, "404"}, {ELOOP, "404"},  {ENXIO, "404"},  {ENAMETOOLONG, "404"}};
  for (const auto& [error, status] : expected) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::open, 1, error, 2);  // On the loop, then in the pool.
    const FaultScope scope(plan);
    EXPECT_EQ(status_of("/a.txt"), status) << error;
  }
}

TEST_F(FilesServed, RetryOpenWhileDirectoriesAreMoved) {
  // The first attempt is made on the loop, if the file system permits it; four in the pool.
  for (const auto& [times, expected] : {std::pair(3, "200"), std::pair(5, "503")}) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::open, 1, EAGAIN, static_cast<std::uint64_t>(times));
    const FaultScope scope(plan);
    EXPECT_EQ(status_of("/a.txt"), expected) << times;
  }
}

TEST_F(FilesServed, ThatCannotBeReadCauseInternalError) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::read, 1, EIO).fail_nth(SystemCall::read_at_once, 1, EIO);
  const FaultScope scope(plan);
  EXPECT_EQ(status_of("/a.txt"), "500");
}

TEST_F(FilesServed, LeakNoDescriptors) {
  tree_.write("big", std::string(20'000, 'x'));
  tree_.write("sub/x", "x");
  serve_files({.listing = true, .precompressed = true});
  const auto ask_all = [&] {
    for (const char* path : {"/a.txt", "/big", "/dir/", "/dir", "/sub/", "/nothing", "/../secret"})
      get(path, "Accept-Encoding: gzip\r\n");
    get("/big", "Range: bytes=0-0,2-3\r\n");
    settle();
  };
  ask_all();
  const auto before = open_fds();
  ask_all();
  EXPECT_EQ(open_fds(), before);
}

TEST_F(FilesServed, ResetConnectionIfReadingFailsLater) {
  tree_.write("big", std::string(20'000, 'x'));
  FaultPlan plan;
  plan.fail_nth(SystemCall::read, 2, EIO).fail_nth(SystemCall::read_at_once, 2, EIO);
  const FaultScope scope(plan);
  const auto client = connect();
  client->send("GET /big HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0,2-3\r\n\r\n");
  settle();
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

}  // namespace
}  // namespace spate::testing
