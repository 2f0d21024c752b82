// The client over HTTP/1.1: the bytes that it sends, and its handling of those that it receives.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ClientHttp1 : public HttpClientTest {
 protected:
  Outcome outcome_;
  Hearer listener_;
};

// ---- requests

TEST_F(ClientHttp1, RequestContainsMethodTargetAndFields) {
  EXPECT_EQ(sent("http://a.example:8080/x%20y?z=1#part",
                 {.method = Method::del, .fields = fields_of({{"X-A", "1"}})}),
            "DELETE /x%20y?z=1 HTTP/1.1\r\nHost: a.example:8080\r\nX-A: 1\r\n\r\n");
}

TEST_F(ClientHttp1, TeFieldIsSentIfTrailersAreAccepted) {
  EXPECT_EQ(sent(kUrl, {.accept_trailers = true}),
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: TE\r\nTE: trailers\r\n\r\n");
}

TEST_F(ClientHttp1, ProxyReceivesAbsoluteFormOfCustomTarget) {
  const http::Proxy proxy = must(http::Proxy::parse("http://proxy.example:3128"));
  EXPECT_THAT(sent(kUrl, {.target = "/a/../b", .proxy = proxy}),
              StartsWith("GET http://a.example/a/../b HTTP/1.1\r\n"));
  EXPECT_THAT(sent(kUrl, {.method = Method::options, .target = "*", .proxy = proxy}),
              StartsWith("OPTIONS http://a.example HTTP/1.1\r\n"));
}

class ClientHttp1Uploads : public ClientHttp1 {
 protected:
  http::Call upload(std::uint64_t size, http::CallOptions options = {}) {
    options.method = Method::post;
    options.upload = size;
    return client_.send(kUrl, listener_, std::move(options));
  }
};

TEST_F(ClientHttp1Uploads, UploadOfUnknownSizeIsSentInChunks) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  EXPECT_THAT(peer().heard(), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_TRUE(call.write("abc"));
  turns();
  EXPECT_EQ(peer().heard(), "3\r\nabc\r\n");
  EXPECT_TRUE(call.write(""));
  EXPECT_TRUE(call.end());
  turns();
  EXPECT_EQ(peer().heard(), "0\r\n\r\n");
  EXPECT_FALSE(call.write("more"));
  peer().answer(kOk);
  turns();
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1Uploads, ChunksEndWithTrailers) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  peer().heard();
  EXPECT_TRUE(call.write("abc"));
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "6"}})));
  turns();
  EXPECT_EQ(peer().heard(), "3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n");
}

TEST_F(ClientHttp1Uploads, EarlyResponseClosesConnection) {
  http::Call call = upload(10);
  call.write("abc");
  turns();
  peer().answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("upload", "413", "closed"));
  EXPECT_FALSE(listener_.error);
  EXPECT_FALSE(call.write("def"));
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1Uploads, BodyWaitsFor100Continue) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  EXPECT_THAT(peer().received, HasSubstr("Expect: 100-continue\r\n"));
  EXPECT_THAT(peer().heard(), EndsWith("\r\n\r\n"));
  peer().answer("HTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_EQ(peer().heard(), "body");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome.status(), 200);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1Uploads, BodyIsSentAfterContinueTimeout) {
  http::Call call = upload(4, {.expect_continue = 1s});
  call.write("body");
  turns();
  peer().heard();
  pass(900ms);
  EXPECT_THAT(peer().heard(), IsEmpty());
  pass(200ms);
  EXPECT_EQ(peer().heard(), "body");
}

TEST_F(ClientHttp1Uploads, BodyIsNotSentIfServerRefusesIt) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  peer().heard();
  peer().answer("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_EQ(outcome.status(), 401);
  EXPECT_THAT(peer().heard(), IsEmpty());
  // The server cannot know whether the body follows, so the connection cannot be used again.
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1Uploads, Second100ContinueIsIgnored) {
  const http::Call call = upload(3, {.expect_continue = 1s});
  turns();
  peer().answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("upload"));
}

// The response is in the same bytes as the permission to send the body.
TEST_F(ClientHttp1Uploads, BeginAfter100ContinueBeforeResponse) {
  const http::Call call = upload(3, {.expect_continue = 1s});
  turns();
  peer().answer("HTTP/1.1 100 Continue\r\n\r\n" + std::string(kOk));
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("upload", "200", "body", "end", "closed"));
}

// ---- responses

TEST_F(ClientHttp1, ResponseHasReasonAndVersion) {
  ask_and_answer(outcome_, "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n");
  ASSERT_EQ(outcome_.status(), 201);
  EXPECT_EQ((*outcome_.result)->reason(), "Made");
  EXPECT_EQ((*outcome_.result)->version(), http::Version::http_1_1);
}

TEST_F(ClientHttp1, ResponsesMayBeSplitAnywhere) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
      "X-Sum: 7\r\n\r\n";
  const http::Call call = fetch(outcome_);
  turns();
  for (const char c : answer) {
    peer().answer(std::string_view(&c, 1));
    turns(3);
  }
  EXPECT_EQ(outcome_.text(), "abcde");
  EXPECT_EQ((*outcome_.result)->trailers()["X-Sum"], "7");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1, Unexpected100ContinueIsNotReported) {
  const http::Call call = client_.send(kUrl, listener_);
  turns();
  peer().answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("103"));
}

TEST_F(ClientHttp1, UnsolicitedUpgradeIsError) {
  ask_and_answer(outcome_, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1, HeadResponseHasNoBodyDespiteItsLength) {
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                 {.method = http::Method::head});
  EXPECT_EQ(outcome_.status(), 200);
  EXPECT_EQ(outcome_.text(), "");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1, NotModifiedHasNoBody) {
  ask_and_answer(outcome_, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(outcome_.status(), 304);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1, BodyWithoutLengthExtendsToEof) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\n\r\nall of");
  turns();
  EXPECT_FALSE(outcome_.is_there());
  peer().answer(" it");
  peer().stream().end();
  turns();
  EXPECT_EQ(outcome_.text(), "all of it");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1, ResetIsErrorDuringBodyWithoutLength) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\n\r\nall of");
  turns();
  peer().stream().abort();
  turns();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
}

TEST_F(ClientHttp1, TruncatedBodyIsError) {
  for (const std::string_view answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"}) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    peers.back()->answer(answer);
    peers.back()->stream().end();
    turns();
    EXPECT_EQ(outcome.error(), HttpError::response_truncated) << answer;
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientHttp1, MissingResponseIsReportedAsReset) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().stream().end();
  turns();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
}

TEST_F(ClientHttp1, MalformedOrAmbiguousResponseIsError) {
  for (const std::string_view answer :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    Outcome outcome;
    ask_and_answer(outcome, answer);
    EXPECT_EQ(outcome.error(), HttpError::malformed_response) << answer;
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientHttp1, TooLongHeaderSectionIsError) {
  make_client({.max_head = 100});
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x'));
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
}

TEST_F(ClientHttp1, UnsolicitedDataAfterResponseClosesConnection) {
  ask_and_answer(outcome_, std::string(kOk) + "HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1, ChunkSizesMayBePadded) {
  ask_and_answer(outcome_,
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "5    \r\nhello\r\n6 ;a=b\r\n world\r\n0   \r\n\r\n");
  EXPECT_EQ(outcome_.text(), "hello world");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp1, TooLongBodyClosesConnection) {
  const http::Call call = fetch(outcome_, {.max_body = 4});
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfiv\r\n2\r\ne!\r\n");
  turns();
  EXPECT_EQ(outcome_.error(), HttpError::body_too_long);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// ---- redirects, retries and deadlines

TEST_F(ClientHttp1, RedirectWithLongBodyUsesAnotherConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  peer().answer("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1000000\r\n\r\n");
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /b "));
}

TEST_F(ClientHttp1, RedirectWithUnboundedBodyUsesAnotherConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  peer().answer("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n");
  const std::string piece(40'000, 'x');
  peer().answer(piece);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  peer().answer(piece);
  turns();
  EXPECT_EQ(peers.size(), 2u);
}

TEST_F(ClientHttp1, TruncatedResponseOfFetchIsRetried) {
  std::vector<std::error_code> errors;
  make_client({.retry = {.attempts = 2, .first_delay = 1ns},
               .on_retry = [&](const http::Retry& retry) { errors.push_back(retry.error); }});
  const http::Call call = fetch(outcome_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  peer().stream().end();
  turns();
  EXPECT_THAT(errors, ElementsAre(HttpError::response_truncated));
  pass(1ns);
  peers.back()->answer(kOk);
  turns();
  EXPECT_EQ(outcome_.text(), "ok");
}

TEST_F(ClientHttp1, DeadlineEndsCallInHeaderSection) {
  const http::Call call = fetch(outcome_, {.deadline = 10s});
  turns();
  pass(6s);
  peer().answer("HTTP/1.1 200 OK\r\nContent-Le");
  pass(3900ms);
  EXPECT_FALSE(outcome_.is_there());
  pass(200ms);
  EXPECT_EQ(outcome_.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp1, CancelledCallResetsItsConnection) {
  http::Call call = fetch(outcome_);
  turns();
  call.cancel();
  turns();
  EXPECT_TRUE(peer().is_closed);
  EXPECT_EQ(peer().error, std::errc::connection_reset);
  EXPECT_FALSE(outcome_.is_there());
}

// ---- pausing

TEST_F(ClientHttp1, PausedCallReceivesNoFurtherChunk) {
  http::Call call = client_.send(kUrl, listener_);
  listener_.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n");
  peer().answer("0\r\n\r\n");
  turns();
  EXPECT_EQ(listener_.body, "abc");
  call.resume();
  EXPECT_EQ(listener_.body, "abc");  // Never from inside a call.
  turns();
  EXPECT_EQ(listener_.body, "abcdef");
  call.resume();
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "body", "end", "closed"));
}

TEST_F(ClientHttp1, CompleteResponseIsNotLostWithConnection) {
  http::Call call =
      client_.send(kUrl, listener_, {.method = http::Method::post, .upload = http::kUnknownSize});
  listener_.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  peer().answer(kOk);
  turns();
  peer().stream().abort();
  call.write("nothing reads it");
  turns();
  EXPECT_EQ(listener_.told.back(), "body");
  call.resume();
  turns();
  EXPECT_EQ(listener_.told.back(), "closed");
  EXPECT_FALSE(listener_.error) << listener_.error.message();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// Unsolicited bytes after a response are not the response to the next call.
TEST_F(ClientHttp1, CompleteResponseReleasesConnection) {
  for (const bool is_followed : {false, true}) {
    const std::size_t index = peers.size();
    make_client({.max_per_origin = 1});
    Outcome outcome;
    http::Call call = client_.send(kUrl, listener_);
    const http::Call waiting = fetch(outcome);
    listener_.on_told = [&](const std::string& what) {
      if (what == "body") call.pause();
    };
    turns();
    peer(index).answer(std::string(kOk) + std::string(is_followed ? kOk : ""));
    turns();
    call.cancel();
    turns();
    EXPECT_EQ(peers.size(), index + (is_followed ? 2u : 1u));
    EXPECT_FALSE(outcome.is_there());
    peers.back()->answer(kOk);
    turns();
    EXPECT_EQ(outcome.text(), "ok");
  }
}

}  // namespace
}  // namespace spate::testing
